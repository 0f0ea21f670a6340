// The legend of a time line: those of its signs that a trace can show.

import { el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";
import { opensNext } from "viewer/trace/tree.js";

export function legend({ trace: { nodes, steps }, shots }, state, videoId) {
  const any = (name) => steps.some((step) => step[name].length);
  const signs = [
    ["curve", ["best ", term("match"), ", 0 to 1"], state.curves.length],
    ["dot", term("anchor"), any("anchors")],
    ["shot", ["every other ", term("shot")], shots[videoId]?.length > 1],
    ["tick", [term("frame"), " of this ", term("round")], any("shown")],
    ["looked", "looked at in this round", steps.some((step) => step.acted.some((act) => act.notes?.length))],
    ["score", [term("score"), " 0 to 1"], nodes.length],
    ["fresh", "new in this round", nodes.length],
    ["next", "opened next", steps.some((step) => opensNext(step) !== null)],
    ["divided", [term("segment"), " that was divided"], nodes.length],
  ];
  const items = signs
    .filter(([, , used]) => used)
    .map(([sign, words]) => el("span", {}, el("i", { class: sign }), words));
  return items.length ? el("p", { class: "legend quiet" }, items) : null;
}
