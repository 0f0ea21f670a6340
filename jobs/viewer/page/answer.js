// The answer of a trace, what it rests on and what it cost, in one card.

import { copy, el } from "viewer/dom.js";
import { amount, clock, letter, plural, span, spoken } from "viewer/words.js";

export function answer({ trace, truth }, titles) {
  const { answer: given, agent, question, models } = trace;
  const names = [...new Set(Object.values(models))].join(", ");
  if (!given) return el("section", { class: "card pad answer" }, el("p", { class: "quiet" }, `${agent} with ${names}`), el("p", { class: "big" }, "This run was cut short: there is no answer."));
  const bill = given.ledger;
  const facts = [
    [`of ${amount(bill.index_frames)} frames`, amount(bill.frames), "shown"],
    ["", amount(given.rounds), given.rounds === 1 ? "round" : "rounds"],
    ["", amount(bill.calls), bill.calls === 1 ? "call" : "calls"],
    ...(bill.input_tokens + bill.output_tokens ? [["", amount(bill.input_tokens + bill.output_tokens), "tokens"]] : []),
    ...(bill.cost ? [["", amount(bill.cost), "cost"]] : []),
    ["", amount(bill.seconds), "seconds"],
  ];
  const chosen = given.option === null ? "" : `${letter(given.option)}. `;
  return el(
    "section",
    { class: "card pad answer" },
    el("p", { class: "quiet" }, `${agent} with ${names}`),
    el("p", { class: "big" }, `${chosen}${given.text ?? "(no answer)"} `, verdict(given, truth, question)),
    given.status === "answered" ? null : el("p", { class: "warn" }, spoken(given.status), given.reason ? `: ${given.reason}` : ""),
    el("ul", { class: "figures-line" }, facts.map(([of, value, what]) => el("li", {}, el("b", {}, value), ` ${what} ${of}`))),
    evidence(given.evidence, titles),
  );
}

function verdict(given, truth, question) {
  if (!truth || truth.option === null || !question.options.length) return null;
  return given.option === truth.option ? el("span", { class: "tag good" }, "right") : el("span", { class: "tag bad" }, "wrong");
}

function evidence(ranges, titles) {
  if (!ranges.length) return null;
  const several = Object.keys(titles).length > 1;
  return el(
    "p",
    { class: "evidence" },
    `${plural(ranges.length, "range")} of evidence: `,
    ranges.map((each) => {
      const name = `${several ? `${titles[each.video_id] ?? each.video_id} ` : ""}${span(each)}`;
      const position = `${titles[each.video_id] ?? each.video_id} ${clock(each.start_s)}`;
      return el("button", { type: "button", class: "chip good", title: `Copy ${position}`, onclick: () => copy(position) }, name);
    }),
  );
}
