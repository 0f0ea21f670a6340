// The answer of a trace, its evidence and its cost, in one card.

import { el } from "viewer/shared/dom.js";
import { evidence } from "viewer/trace/evidence.js";
import { term } from "viewer/shared/terms.js";
import { verdict } from "viewer/trace/verdict.js";
import { amount, letter, money } from "viewer/shared/words.js";

export function answer(data, titles) {
  const { answer: final, question } = data.trace;
  const chosen = final && final.option !== null ? `${letter(final.option)}. ` : "";
  return el(
    "section",
    { class: "card pad answer" },
    asked(data.trace, titles),
    final
      ? [
          el("p", { class: "big" }, `${chosen}${final.text ?? "No answer"} `, mark(final, data.truth, question)),
          verdict(final),
          evidence(data, titles),
          costs(final),
        ]
      : el("p", { class: "big" }, "This run was cut short: there is no answer."),
  );
}

/** Who was asked about what. */
function asked({ agent, models }, titles) {
  const names = [...new Set(Object.values(models))].join(", ");
  const videos = Object.values(titles);
  const on = videos.length > 3 ? `${videos.length} videos` : videos.join(", ");
  return el(
    "p",
    { class: "quiet" },
    term("agent", el("b", {}, agent)),
    names ? [" with the ", term("model"), ` ${names}`] : null,
    ` on ${on}`,
  );
}

function costs({ ledger: bill, rounds }) {
  const tokens = bill.input_tokens + bill.output_tokens;
  const facts = [
    [amount(bill.frames), term("frame", "frames"), ` of ${amount(bill.index_frames)} looked at`],
    [amount(rounds), term("round", rounds === 1 ? "round" : "rounds")],
    [amount(bill.calls), term("call", bill.calls === 1 ? "call" : "calls"), " to a model"],
    tokens ? [amount(tokens), term("token", "tokens"), " read and written"] : null,
    bill.cost ? [money(bill.cost), term("cost")] : null,
    [bill.seconds.toFixed(bill.seconds < 10 ? 2 : 0), "seconds"],
  ].filter(Boolean);
  return el(
    "ul",
    { class: "figures-line" },
    facts.map(([value, what, rest]) => el("li", {}, el("b", {}, value), " ", what, rest ?? "")),
  );
}

function mark(final, truth, question) {
  if (!truth || truth.option === null || !question.options.length) return null;
  return final.option === truth.option
    ? el("span", { class: "tag good" }, "right")
    : el("span", { class: "tag bad" }, "wrong");
}
