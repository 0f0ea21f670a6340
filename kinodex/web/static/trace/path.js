// The path through the video: each round as a sentence in plain words, and one for the end.

import { button, el, listed } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";

const AT_FIRST = 12;

/** The sentences as a list; `go`, with the number of a step, shows that round below. Null for a trace without rounds. */
export function path({ steps, ending }, go) {
  if (!steps.length) return null;
  const lines = steps.map((step, at) => el("li", {}, said(step.sentence, () => go(at))));
  if (ending) lines.push(el("li", { class: "end" }, ending));
  const end = lines.pop();
  const list = el("ol", { class: "path" });
  const most = lines.length > AT_FIRST + 1 ? AT_FIRST : lines.length;
  const more = listed(list, lines, most, (count) => `${count} rounds more`);
  list.append(end);
  return el(
    "section",
    { class: "card pad way" },
    el("h2", {}, "What it did ", el("span", { class: "quiet" }, "in ", term("round", "rounds"))),
    list,
    more,
  );
}

/** A sentence whose beginning, "Round 2", shows that round. */
function said(sentence, show) {
  const [, begin, rest] = /^(Round \d+|At first)([^]*)$/.exec(sentence) ?? [null, "", sentence];
  return [
    begin ? button(begin, show, { class: "link round-link", title: "Show this round below" }) : null,
    rest,
  ];
}
