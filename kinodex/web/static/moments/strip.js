// The whole of a video as a bar, with its moments on it.

import { el } from "viewer/shared/dom.js";
import { shortClock, span } from "viewer/shared/words.js";

const LEAST_PERCENT = 0.6;
/** Nearer to each other than this, two numbers would read as one. */
const APART_PERCENT = 5;

/** The bar of `video` (`start_s`, `duration_s`) with `ranges`, each with its number; the cards below say the same. */
export function strip(video, ranges) {
  const percent = (time) => (100 * (Math.min(Math.max(time, video.start_s), video.start_s + video.duration_s) - video.start_s)) / video.duration_s;
  let last = -APART_PERCENT;
  const bars = ranges.toSorted((one, other) => one.start_s - other.start_s).map((each) => {
    const left = Math.min(percent(each.start_s), 100 - LEAST_PERCENT);
    const width = Math.max(percent(each.end_s) - left, LEAST_PERCENT);
    const isApart = left - last >= APART_PERCENT;
    if (isApart) last = left;
    return el("span", { class: "when-bar", style: { left: `${left}%`, width: `${width}%` } }, isApart ? el("small", {}, each.number) : null);
  });
  return el(
    "div",
    { class: "when", role: "img", "aria-label": `Time line of the video, with moments at ${ranges.map(span).join(", ")}` },
    el("div", { class: "when-line" }, bars),
    el("small", { class: "quiet" }, shortClock(video.start_s)),
    el("small", { class: "quiet" }, shortClock(video.start_s + video.duration_s)),
  );
}
