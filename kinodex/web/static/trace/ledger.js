// The ledger: the cost of each round, adding up to the cost of the answer.

import { el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";
import { table } from "viewer/shared/table.js";
import { amount } from "viewer/shared/words.js";

const COLUMNS = {
  calls: ["Calls", "call"],
  cached_calls: ["Cached", "cached"],
  invalid_replies: ["Invalid", "invalid"],
  frames: ["New frames", "frame"],
  frame_shows: ["Frame shows", "shows"],
  input_tokens: ["Tokens in", "token"],
  output_tokens: ["Tokens out", "token"],
  cached_tokens: ["Tokens cached", "cached tokens"],
  cost: ["Cost", "cost"],
  model_seconds: ["Model seconds", "model seconds"],
};

const format = (column, value) => (column === "model_seconds" ? value.toFixed(3) : amount(value));

const headed = (shown, name) => term(name, shown);

export function ledger({ steps, elsewhere, answer }, at) {
  const total = answer?.ledger ?? steps.at(-1).so_far;
  const columns = Object.keys(COLUMNS).filter((name) => total[name] || elsewhere[name]);
  const extra = columns.some((name) => elsewhere[name]);
  const row = (name, bill, className) =>
    el(
      "tr",
      { class: className },
      el("th", { scope: "row" }, name),
      columns.map((column) => el("td", {}, format(column, bill[column] ?? 0))),
    );
  const body = el(
    "tbody",
    {},
    steps.map((step, number) =>
      row(step.round === 0 ? "before 1" : step.round, step.bill, number === at ? "now" : number > at ? "later" : ""),
    ),
    row(`up to ${steps[at].round === 0 ? "round 1" : `round ${steps[at].round}`}`, steps[at].so_far, "sum"),
    extra ? row("outside the calls", elsewhere, "") : null,
    answer ? row("the answer’s ledger", total, "sum") : null,
  );
  return [
    el("h2", {}, term("ledger", "Ledger")),
    table("Ledger", [term("round", "Round"), ...columns.map((column) => headed(...COLUMNS[column]))], body, { frame: "" }),
    answer
      ? el(
          "p",
          { class: "quiet" },
          `${amount(total.frames)} different frames of ${amount(total.index_frames)} in the index; ${total.seconds.toFixed(2)} s on the clock.`,
        )
      : null,
  ].filter(Boolean);
}
