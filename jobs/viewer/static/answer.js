// The answer of a trace, what it rests on and what it cost, in one card.

import { copier, el } from "viewer/dom.js";
import { amount, clock, letter, plural, span, spoken } from "viewer/words.js";

/** What ended a run, by the name of the budget that was spent. */
const SPENT = new Map([
  ["rounds", "no further round was allowed"],
  ["frames", "no further frame was allowed"],
  ["tokens", "no more tokens were allowed"],
  ["seconds", "the time was up"],
  ["cost", "the money was spent"],
]);

export function answer({ trace, truth }, titles) {
  const { answer: given, agent, question, models } = trace;
  const names = [...new Set(Object.values(models))].join(", ");
  const videos = Object.values(titles);
  const on = videos.length > 3 ? `${videos.length} videos` : videos.join(", ");
  if (!given)
    return el(
      "section",
      { class: "card pad answer" },
      el("p", { class: "quiet" }, el("b", {}, agent), ` with ${names} on ${on}`),
      el("p", { class: "big" }, "This run was cut short: there is no answer."),
    );
  const bill = given.ledger;
  const facts = [
    [`of ${amount(bill.index_frames)} frames shown`, amount(bill.frames)],
    [given.rounds === 1 ? "round" : "rounds", amount(given.rounds)],
    [bill.calls === 1 ? "call" : "calls", amount(bill.calls)],
    ...(bill.input_tokens + bill.output_tokens ? [["tokens", amount(bill.input_tokens + bill.output_tokens)]] : []),
    ...(bill.cost ? [["cost", amount(bill.cost)]] : []),
    ["seconds", bill.seconds.toFixed(2)],
  ];
  const chosen = given.option === null ? "" : `${letter(given.option)}. `;
  return el(
    "section",
    { class: "card pad answer" },
    el("p", { class: "quiet" }, el("b", {}, agent), ` with ${names} on ${on}`),
    el("p", { class: "big" }, `${chosen}${given.text ?? "(no answer)"} `, verdict(given, truth, question)),
    given.status === "answered"
      ? null
      : el("p", { class: "warn" }, spoken(given.status), given.reason ? `: ${SPENT.get(given.reason) ?? given.reason}` : ""),
    el(
      "ul",
      { class: "figures-line" },
      facts.map(([what, value]) => el("li", {}, el("b", {}, value), ` ${what}`)),
    ),
    evidence(given.evidence, titles),
  );
}

function verdict(given, truth, question) {
  if (!truth || truth.option === null || !question.options.length) return null;
  return given.option === truth.option
    ? el("span", { class: "tag good" }, "right")
    : el("span", { class: "tag bad" }, "wrong");
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
      return copier(position, name, "good");
    }),
  );
}
