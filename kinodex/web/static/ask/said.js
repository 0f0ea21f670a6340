// What the model looks at now, and what it said of the frames that it saw last.

import { el } from "viewer/shared/dom.js";
import { plural, span } from "viewer/shared/words.js";

const MOST = 6;

/** The frames that a run is at: those of calls under way, else the new ones of its last round; at its end all it saw. */
export function lookedAt({ steps, answer }, looking) {
  if (looking.length) return looking;
  if (answer) return steps.flatMap((each) => each.shown).filter((each, at, all) => all.findIndex((one) => one.jpeg === each.jpeg && one.time_s === each.time_s) === at);
  const step = steps.findLast((each) => each.shown.length || each.opened.length);
  const fresh = step?.opened.flatMap((each) => each.frames) ?? [];
  return fresh.length ? fresh : (step?.shown ?? []);
}

/** The lines below the time line; `looking` are frames of calls under way. */
export function saidOfFrames({ steps, videos }, looking) {
  const step = steps.findLast((each) => each.said.length);
  const titles = videos.length > 1 ? Object.fromEntries(videos.map((each) => [each.video_id, `${each.title} `])) : {};
  const best = (step?.said ?? []).toSorted((one, other) => (other.score ?? 0) - (one.score ?? 0)).slice(0, MOST);
  return el(
    "div",
    { class: "said-of-frames" },
    looking.length
      ? el("p", { class: "looking" }, el("span", { class: "pulse", "aria-hidden": "true" }), `The model looks at ${plural(looking.length, "frame")} now.`)
      : null,
    best.length
      ? [
          el("h3", {}, step.round ? `What it said of the frames of round ${step.round}` : "What it said of the frames at first"),
          el("ul", {}, step.said.filter((each) => best.includes(each)).map((each) => line(each, titles[each.video_id] ?? ""))),
        ]
      : null,
  );
}

const line = (each, title) =>
  el(
    "li",
    {},
    el("b", {}, `${title}${span(each)}`),
    each.text ? el("q", { dir: "auto" }, each.text) : null,
    each.score === null ? null : el("span", { class: "quiet" }, `${Math.round(each.score)} of 100`),
  );
