// The path through the video: each round as a sentence in plain words, and one for the end.

import { el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";

const AT_FIRST = 12;

/** The sentences as a list; `go`, with the number of a step, shows that round below. Null for a trace without rounds. */
export function path({ steps, ending }, go) {
  if (!steps.length) return null;
  const lines = steps.map((step, at) => el("li", {}, said(step.sentence, () => go(at))));
  if (ending) lines.push(el("li", { class: "end" }, ending));
  const list = el("ol", { class: "path" });
  const rest = lines.length > AT_FIRST + 2 ? lines.slice(AT_FIRST, -1) : [];
  list.append(...lines.filter((line) => !rest.includes(line)));
  const end = list.lastElementChild;
  const more = el(
    "button",
    { type: "button", class: "plain", onclick: () => (rest.forEach((line) => list.insertBefore(line, end)), more.remove()) },
    `${rest.length} rounds more`,
  );
  return el(
    "section",
    { class: "card pad way" },
    el("h2", {}, "What it did ", el("span", { class: "quiet" }, "in ", term("round", "rounds"))),
    list,
    rest.length ? more : null,
  );
}

/** A sentence whose beginning, "Round 2", shows that round. */
function said(sentence, show) {
  const [, begin, rest] = /^(Round \d+|At first)([^]*)$/.exec(sentence) ?? [null, "", sentence];
  return [
    begin ? el("button", { type: "button", class: "link round-link", title: "Show this round below", onclick: show }, begin) : null,
    rest,
  ];
}
