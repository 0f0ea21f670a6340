// The candidates after a round, best first: span, reward, query score, fused score, and why.

import { el } from "viewer/dom.js";
import { isOpen, present } from "viewer/state.js";
import { plural, span } from "viewer/words.js";

const AT_FIRST = 30;

/** The parts of the panel; null for agents that have no tree. */
export function candidates({ trace }, state, scores, act) {
  const step = trace.steps[state.at];
  if (!trace.nodes.length) return null;
  const open = present(trace.nodes, step.round).filter((node) => isOpen(node, step.round));
  const rows = open
    .map((node) => ({ node, score: scores.get(node.number) }))
    .sort((a, b) => (b.score?.fused ?? -1) - (a.score?.fused ?? -1));
  const entropy = step.scored?.entropy ?? null;
  const fused = trace.steps.some((each) => each.scored && each.scored.entropy !== null);
  const several = trace.videos.length > 1;
  const body = el(
    "tbody",
    {},
    rows.slice(0, AT_FIRST).map((row) => line(row, { trace, step, state, act, fused, several })),
  );
  return [
    el(
      "div",
      { class: "row" },
      el("h2", {}, plural(open.length, "candidate")),
      entropy === null
        ? null
        : el(
            "span",
            { class: "quiet", title: "The weight that the query scores had" },
            `entropy of rewards ${entropy.toFixed(2)}`,
          ),
    ),
    el(
      "div",
      { class: "scroll" },
      el(
        "table",
        { class: "candidates" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Segment", "Reward", ...(fused ? ["Query", "Fused"] : ["Score"])].map((name) =>
              el("th", { scope: "col" }, name),
            ),
          ),
        ),
        body,
      ),
    ),
    rows.length > AT_FIRST
      ? el(
          "button",
          {
            type: "button",
            class: "plain",
            onclick: (event) => {
              body.append(...rows.slice(AT_FIRST).map((row) => line(row, { trace, step, state, act, fused, several })));
              event.target.remove();
            },
          },
          `${plural(rows.length - AT_FIRST, "candidate")} more`,
        )
      : null,
  ].filter(Boolean);
}

function line({ node, score }, { trace, step, state, act, fused, several }) {
  const chosen = step.decided?.action === "explore" && step.decided.segment === node.number;
  const fresh = node.made_in === step.round && step.round > 0;
  const title = several ? `${trace.videos.find((video) => video.video_id === node.video_id)?.title} ` : "";
  return el(
    "tr",
    { class: `${chosen ? "chosen" : ""} ${state.selected === node.number ? "selected" : ""}` },
    el(
      "th",
      { scope: "row" },
      el(
        "button",
        {
          type: "button",
          class: "link",
          "data-focus": `candidate ${node.number}`,
          "aria-pressed": String(state.selected === node.number),
          onclick: () => act.select(node.number),
          ondblclick: () => act.zoom(node.number),
        },
        el("b", {}, node.number),
        ` ${title}${span(node)}`,
      ),
      chosen ? el("span", { class: "tag" }, "opened next") : null,
      fresh ? el("span", { class: "tag quiet" }, "new") : null,
      score?.explanation ? el("small", {}, score.explanation) : null,
    ),
    number(score?.reward ?? null, 100, 0),
    fused ? number(score?.query_score ?? null, 1, 2) : null,
    number(score?.fused ?? null, 1, 2),
  );
}

/** A number with a bar as long as its share of the most that it can be. */
function number(value, most, digits) {
  if (value === null) return el("td", { class: "quiet" }, "–");
  return el(
    "td",
    {},
    value.toFixed(digits),
    el("span", { class: "meter", style: { "--share": `${Math.min(100, (100 * value) / most)}%` } }),
  );
}
