// One trace, or several of the same question side by side.

import { keep } from "viewer/address.js";
import { el } from "viewer/dom.js";
import { load } from "viewer/source.js";
import { trace } from "viewer/trace.js";
import { letter } from "viewer/words.js";

const LONG = 160;

/** `asked` are the rounds to begin with, as the address holds them. */
export async function traces(keys, asked) {
  const told = await Promise.all(keys.map((key) => load(`traces/${key}`)));
  const moved = () => keep(`#/trace/${keys}/${columns.map((column) => column.round())}`);
  const columns = told.map((each) => trace(each, moved));
  const rounds = asked?.split(",").map(Number) ?? [];
  const { question } = told[0].trace;
  const same = told.every((each) => JSON.stringify(each.trace.question) === JSON.stringify(question));
  const element = el(
    "div",
    {},
    same ? [el("h1", { class: question.text.length > LONG ? "long" : null }, question.text), options(question, told)] : null,
    el(
      "div",
      { class: told.length > 1 ? "side-by-side" : "" },
      columns.map((column, at) => [column.element, same ? null : named(column, told[at])]),
    ),
    columns.some((column) => column.rounds.length > 1) &&
      el(
        "p",
        { class: "quiet keys" },
        "← and → go from round to round, Home and End to the first and the last, + and 0 zoom in and out.",
        told.some((each) => each.trace.nodes.length)
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

function named(column, told) {
  column.element.prepend(el("h2", {}, told.trace.question.text), options(told.trace.question, [told]));
  return null;
}

/** The options with who chose them, and the true one where that is known. */
function options(question, told) {
  const right = told[0].truth?.option ?? null;
  return el(
    "ol",
    { class: "options" },
    question.options.map((option, at) => {
      const by = told.filter((each) => each.trace.answer?.option === at).map((each) => each.trace.agent);
      return el(
        "li",
        { class: `${by.length ? "chosen" : ""} ${right === at ? "right" : ""}` },
        el("b", {}, letter(at)),
        ` ${option}`,
        right === at ? el("small", {}, "true") : null,
        by.length ? el("small", {}, told.length > 1 ? by.join(", ") : "the answer") : null,
      );
    }),
  );
}
