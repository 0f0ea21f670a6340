// What a search for moments found: what may be said of it, and each range with its first and last picture.

import { videoHeading } from "viewer/library/hits.js";
import { momentCard } from "viewer/moments/card.js";
import { strip } from "viewer/moments/strip.js";
import { el } from "viewer/shared/dom.js";
import { plural } from "viewer/shared/words.js";

const ADVICE = "Other words may fit better: say what one would see, such as “a red boat at sea”, or look at pictures and words.";

/** What may be said of it, in the words of the server; `where` names what was searched ("this video"). */
export const verdict = (found, where) =>
  el(
    "div",
    { class: found.ranges.length ? "found" : "card pad absent" },
    el("p", { class: "verdict-line" }, el("b", {}, `“${found.text}” in ${where}: `), el("span", { dir: "auto" }, found.claim)),
    found.by === "search" && !found.ranges.length ? el("p", { class: "quiet" }, ADVICE) : null,
  );

/** The ranges as elements; `fields` are those of the address, and `seek(time)` is there on the page of a video. */
export function result(key, found, fields, seek = null) {
  const { ranges, weaker } = found;
  const draw = (all) => groups(key, all, found, fields, seek);
  const shown = found.by === "search" ? "The model looked at these, and says that it is not there." : "The agent saw these, and does not say that it happens there.";
  return [
    ...draw(ranges),
    weaker.length
      ? el("details", { class: "weaker" }, el("summary", {}, `${plural(weaker.length, "other place")}`), el("p", { class: "quiet" }, shown), draw(weaker))
      : null,
    found.question ? el("p", {}, el("a", { href: `#/ask/${key}/${found.question}` }, "The answer of the agent, and each of its rounds")) : null,
  ].filter(Boolean);
}

/** Ranges by video, in the order of each video's best; numbers lead from a card to its place on the time line. */
function groups(key, ranges, found, fields, seek) {
  const numbered = ranges.map((each, at) => ({ ...each, number: at + 1 }));
  const ids = [...new Set(numbered.map((each) => each.video_id))];
  return ids.map((id) => {
    const own = numbered.filter((each) => each.video_id === id);
    const video = { ...found.videos[id], video_id: id };
    return el(
      "section",
      { class: "group", "aria-label": video.title },
      seek ? null : [videoHeading(key, video), strip(video, own)],
      el("div", { class: "grid moments-grid" }, own.map((each) => momentCard(key, video, each, found.text, fields, seek))),
    );
  });
}
