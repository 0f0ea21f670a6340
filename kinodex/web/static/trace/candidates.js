// The candidates after a round, best first: span, reward, query score, fused score and explanation.

import { button, el } from "viewer/shared/dom.js";
import { isOpen, present } from "viewer/trace/state.js";
import { term } from "viewer/shared/terms.js";
import { table } from "viewer/shared/table.js";
import { opensNext } from "viewer/trace/tree.js";
import { amount, plural, span } from "viewer/shared/words.js";

const AT_FIRST = 12;

/** The parts of the panel; null for agents that have no tree. */
export function candidates({ trace }, state, scores, act) {
  const step = trace.steps[state.at];
  if (!trace.nodes.length) return null;
  const open = present(trace.nodes, step.round).filter((node) => isOpen(node, step.round));
  const rows = open
    .map((node) => ({ node, score: scores.get(node.number) }))
    .sort((a, b) => (b.score?.fused ?? -1) - (a.score?.fused ?? -1));
  const entropy = step.scored?.entropy ?? null;
  const fused = trace.steps.some((each) => each.scored && each.scored.entropy !== null);
  const several = trace.videos.length > 1;
  const columns = fused ? [term("query score", "Query"), term("fused", "Fused")] : [term("score", "Score")];
  const names = [term("segment", "Segment"), term("reward", "Reward"), ...columns];
  const shown = state.allCandidates ? rows : rows.slice(0, AT_FIRST);
  const body = el(
    "tbody",
    {},
    shown.map((row) => line(row, { trace, step, state, act, fused, several })),
  );
  const weight = entropy === null ? null : [`query scores weigh ${entropy.toFixed(2)}, the `, term("entropy"), " of the rewards"];
  const all = () => act.allCandidates(rows[AT_FIRST].node.number);
  return [
    el("div", { class: "row" }, el("h2", {}, `${amount(open.length)} `, term("candidate", open.length === 1 ? "candidate" : "candidates")), el("span", { class: "quiet" }, weight)),
    table("Candidates", names, body, { frame: "", className: "candidates" }),
    shown.length < rows.length ? button(`${plural(rows.length - AT_FIRST, "candidate")} more`, all) : null,
  ].filter(Boolean);
}

function line({ node, score }, { trace, step, state, act, fused, several }) {
  const chosen = opensNext(step) === node.number;
  const fresh = node.made_in === step.round && step.round > 0;
  const title = several ? `${trace.videos.find((video) => video.video_id === node.video_id)?.title} ` : "";
  return el(
    "tr",
    { class: `${chosen ? "chosen" : ""} ${state.selected === node.number ? "selected" : ""}` },
    el(
      "th",
      { scope: "row" },
      button([el("b", {}, node.number), ` ${title}${span(node)}`], () => act.select(node.number), {
        class: "link",
        "data-focus": `candidate ${node.number}`,
        "aria-pressed": String(state.selected === node.number),
        ondblclick: () => act.zoom(node.number),
      }),
      chosen ? el("span", { class: "tag" }, "opened next") : null,
      fresh ? el("span", { class: "tag quiet" }, "new") : null,
      score?.explanation ? el("small", {}, score.explanation) : null,
    ),
    number(score?.reward ?? null, 100, 0),
    fused ? number(score?.query_score ?? null, 1, 2) : null,
    number(score?.fused ?? null, 1, 2),
  );
}

/** A number with a bar as long as its share of the most that it can be. */
function number(value, most, digits) {
  if (value === null) return el("td", { class: "quiet" }, "–");
  return el(
    "td",
    {},
    value.toFixed(digits),
    el("span", { class: "meter", style: { "--share": `${Math.min(100, (100 * value) / most)}%` } }),
  );
}
