// The tree of segments in the drawing: a row for each depth, and keys that go from segment to segment.

import { button, copier, el, svg } from "viewer/shared/dom.js";
import { isOpen, present } from "viewer/trace/state.js";
import { clock, span } from "viewer/shared/words.js";

const ROW = 24;
const TREE = 336;
const LEAST_ROW = 6;

/** Draws the tree as it stands after a round; `act` holds what clicks and keys do. */
export function tree(canvas, trace, state, scores, here, act) {
  const nodes = trace.nodes.filter(here);
  if (!nodes.length) return;
  const step = trace.steps[state.at];
  const levels = Math.max(...nodes.map((node) => node.depth)) + 1;
  const row = Math.max(LEAST_ROW, Math.min(ROW, TREE / levels));
  const top = canvas.row("tree", levels * row - 4);
  const seen = present(nodes, step.round).filter(canvas.sees);
  const stop = seen.find((node) => node.number === state.selected) ?? seen[0];
  const look = { row, step, state, act, seen, stop, next: opensNext(step) };
  canvas.parts.push(
    svg(
      "g",
      { role: "group", "aria-label": "Tree" },
      seen.map((node) => segment(canvas, node, top + node.depth * row, scores.get(node.number), look)),
    ),
  );
}

/** The segment that a round's decision goes on with; null if it does not. */
export const opensNext = (step) => (step.decided?.action === "explore" ? step.decided.segment : null);

function segment(canvas, node, y, score, { row, step, state, act, seen, stop, next }) {
  const selected = node.number === state.selected;
  const classes = ["segment", isOpen(node, step.round) ? "open" : "divided"];
  if (step.opened.some((each) => each.children.includes(node.number))) classes.push("new");
  if (node.number === next) classes.push("chosen");
  if (selected) classes.push("selected");
  const bar = canvas.bar(node, y, row * 0.84, { rx: Math.min(3, row / 4) });
  const width = Number(bar.getAttribute("width"));
  const middle = Number(bar.getAttribute("x")) + width / 2;
  const words = describe(node, score);
  return svg(
    "g",
    {
      class: classes.join(" "),
      role: "button",
      tabindex: node === stop ? 0 : -1,
      "aria-pressed": String(selected),
      "aria-label": words,
      "data-number": node.number,
      "data-focus": focusOf(node.number),
      style: { "--score": `${Math.round((score?.fused ?? 0) * 100)}%` },
      onclick: () => act.select(node.number),
      ondblclick: () => act.zoom(node.number),
      onkeydown: (event) => onKey(event, node, seen, act),
    },
    bar,
    row > 15 && width > 9 * String(node.number).length
      ? svg("text", { x: middle, y: y + row * 0.6, "text-anchor": "middle" }, node.number)
      : null,
    svg("title", {}, words),
  );
}

export const focusOf = (number) => `segment ${number}`;

/** The arrow keys go to the neighbours at the same depth, to the parent and to the first child. */
function onKey(event, node, seen, act) {
  const level = seen.filter((each) => each.depth === node.depth).sort((a, b) => a.start_s - b.start_s);
  const at = level.indexOf(node);
  const moves = {
    ArrowLeft: () => level[at - 1],
    ArrowRight: () => level[at + 1],
    ArrowUp: () => seen.find((each) => each.number === node.parent),
    ArrowDown: () => seen.find((each) => each.parent === node.number),
  };
  if (event.key === "Enter" || event.key === " ") act.select(node.number);
  else if (event.key in moves) act.mark((moves[event.key]() ?? node).number);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function describe(node, score) {
  const points = [
    score?.reward === null || score?.reward === undefined ? null : `reward ${score.reward.toFixed(0)}`,
    score?.query_score === null || score?.query_score === undefined ? null : `query ${score.query_score.toFixed(2)}`,
    score ? `fused ${score.fused.toFixed(2)}` : null,
    score?.explanation,
  ].filter(Boolean);
  return `${node.number}: ${[span(node), ...points].join(", ")}`;
}

/** Facts about the selected segment, with buttons for what a touch screen has no double click for. */
export function selected(nodes, state, scores, title, act) {
  const node = nodes.find((each) => each.number === state.selected);
  if (!node) return null;
  return el(
    "p",
    { class: "about" },
    copier(`${title} ${clock(node.start_s)}`, "Copy position"),
    button("Zoom in", () => act.zoom(node.number), { class: "chip" }),
    ` Segment ${describe(node, scores[state.at]?.get(node.number))}`,
  );
}
