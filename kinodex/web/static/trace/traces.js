// One trace, or several of the same question side by side.

import { keep } from "viewer/shared/address.js";
import { el } from "viewer/shared/dom.js";
import { load } from "viewer/shared/source.js";
import { trace } from "viewer/trace/trace.js";
import { letter } from "viewer/shared/words.js";

const LONG = 160;

/** `wanted` are the rounds to begin with, from the address. */
export async function traces(keys, wanted) {
  const data = await Promise.all(keys.map((key) => load(`traces/${key}`)));
  const moved = () => keep(`#/trace/${keys}/${columns.map((column) => column.round())}`);
  const columns = data.map((each) => trace(each, moved));
  const rounds = wanted?.split(",").map(Number) ?? [];
  const { question } = data[0].trace;
  const same = data.every((each) => JSON.stringify(each.trace.question) === JSON.stringify(question));
  const element = el(
    "div",
    {},
    same ? [el("h1", { class: question.text.length > LONG ? "long" : null }, question.text), options(question, data)] : null,
    el(
      "div",
      { class: data.length > 1 ? "side-by-side" : "" },
      columns.map((column, at) => [column.element, same ? null : named(column, data[at])]),
    ),
    columns.some((column) => column.rounds.length > 1) &&
      el(
        "p",
        { class: "quiet keys" },
        "← and → go from round to round, Home and End to the first and the last, + and 0 zoom in and out.",
        data.some((each) => each.trace.nodes.length)
          ? " In the tree, the arrow keys go from segment to segment."
          : null,
      ),
  );
  return {
    title: question.text,
    element,
    onKey: (event) => move(event, columns),
    ready: () => columns.forEach((column, at) => column.ready(rounds[at])),
  };
}

/** Moves all columns by rounds, whatever rounds each of them has. */
function move(event, columns) {
  const rounds = [...new Set(columns.flatMap((column) => column.rounds))].sort((a, b) => a - b);
  const now = Math.max(...columns.map((column) => column.round()));
  const to = {
    ArrowLeft: rounds.findLast((round) => round < now),
    ArrowRight: rounds.find((round) => round > now),
    Home: rounds[0],
    End: rounds.at(-1),
  };
  if (event.key === "+") columns.forEach((column) => column.zoomIn());
  if (event.key === "0") columns.forEach((column) => column.zoomOut());
  if (!(event.key in to) || event.target.matches("[data-scrolls]")) return;
  event.preventDefault();
  if (to[event.key] !== undefined) columns.forEach((column) => column.goRound(to[event.key]));
}

function named(column, data) {
  column.element.prepend(el("h2", {}, data.trace.question.text), options(data.trace.question, [data]));
  return null;
}

/** The options with who chose them, and the true one where that is known. */
export function options(question, data) {
  const right = data[0].truth?.option ?? null;
  return el(
    "ol",
    { class: "options" },
    question.options.map((option, at) => {
      const by = data.filter((each) => each.trace.answer?.option === at).map((each) => each.trace.agent);
      return el(
        "li",
        { class: `${by.length ? "chosen" : ""} ${right === at ? "right" : ""}` },
        el("b", {}, letter(at)),
        ` ${option}`,
        right === at ? el("small", {}, "true") : null,
        by.length ? el("small", {}, data.length > 1 ? by.join(", ") : "the answer") : null,
      );
    }),
  );
}
