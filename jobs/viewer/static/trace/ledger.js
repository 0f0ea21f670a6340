// The ledger: the cost of each round, adding up to the cost of the answer.

import { el } from "viewer/shared/dom.js";
import { table } from "viewer/shared/table.js";
import { amount } from "viewer/shared/words.js";

const COLUMNS = {
  calls: "Calls",
  cached_calls: "Cached",
  invalid_replies: "Invalid",
  frames: "New frames",
  frame_shows: "Frame shows",
  input_tokens: "Tokens in",
  output_tokens: "Tokens out",
  cached_tokens: "Tokens cached",
  cost: "Cost",
  model_seconds: "Model seconds",
};

const format = (column, value) => (column === "model_seconds" ? value.toFixed(3) : amount(value));

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
    el("h2", {}, "Ledger"),
    table("Ledger", ["Round", ...columns.map((column) => COLUMNS[column])], body, { frame: "" }),
    answer
      ? el(
          "p",
          { class: "quiet" },
          `${amount(total.frames)} different frames of ${amount(total.index_frames)} in the index; ${total.seconds.toFixed(2)} s on the clock.`,
        )
      : null,
  ].filter(Boolean);
}
