// The answer of a trace, its evidence and its cost, in one card.

import { copier, el } from "viewer/shared/dom.js";
import { amount, clock, letter, plural, span, spoken } from "viewer/shared/words.js";

/** The end of a run in words, by the name of the budget that was spent. */
const SPENT = new Map([
  ["rounds", "no further round was allowed"],
  ["frames", "no further frame was allowed"],
  ["tokens", "no more tokens were allowed"],
  ["seconds", "the time was up"],
  ["cost", "the money was spent"],
]);

export function answer({ trace, truth }, titles) {
  const { answer: final, agent, question, models } = trace;
  const names = [...new Set(Object.values(models))].join(", ");
  const videos = Object.values(titles);
  const on = videos.length > 3 ? `${videos.length} videos` : videos.join(", ");
  if (!final)
    return el(
      "section",
      { class: "card pad answer" },
      el("p", { class: "quiet" }, el("b", {}, agent), ` with ${names} on ${on}`),
      el("p", { class: "big" }, "This run was cut short: there is no answer."),
    );
  const costs = final.ledger;
  const facts = [
    [`of ${amount(costs.index_frames)} frames shown`, amount(costs.frames)],
    [final.rounds === 1 ? "round" : "rounds", amount(final.rounds)],
    [costs.calls === 1 ? "call" : "calls", amount(costs.calls)],
    ...(costs.input_tokens + costs.output_tokens ? [["tokens", amount(costs.input_tokens + costs.output_tokens)]] : []),
    ...(costs.cost ? [["cost", amount(costs.cost)]] : []),
    ["seconds", costs.seconds.toFixed(2)],
  ];
  const chosen = final.option === null ? "" : `${letter(final.option)}. `;
  return el(
    "section",
    { class: "card pad answer" },
    el("p", { class: "quiet" }, el("b", {}, agent), ` with ${names} on ${on}`),
    el("p", { class: "big" }, `${chosen}${final.text ?? "(no answer)"} `, verdict(final, truth, question)),
    final.status === "answered"
      ? null
      : el("p", { class: "warn" }, spoken(final.status), final.reason ? `: ${SPENT.get(final.reason) ?? final.reason}` : ""),
    el(
      "ul",
      { class: "figures-line" },
      facts.map(([what, value]) => el("li", {}, el("b", {}, value), ` ${what}`)),
    ),
    evidence(final.evidence, titles),
  );
}

function verdict(final, truth, question) {
  if (!truth || truth.option === null || !question.options.length) return null;
  return final.option === truth.option
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
