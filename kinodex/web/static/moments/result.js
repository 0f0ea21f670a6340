// What a search for moments found: that it is there or not, and why; and each range with its first and last picture.

import { momentCard } from "viewer/moments/card.js";
import { strip } from "viewer/moments/strip.js";
import { breakable, el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";
import { clock, plural } from "viewer/shared/words.js";

const ADVICE = {
  both: "Other words may fit the pictures better: say what one would see, such as “a red boat at sea”.",
  pictures: "Only pictures were looked at: look at the words too, or say what one would see, such as “a red boat at sea”.",
  words: "Only words were looked at: look at the pictures too.",
};

/** That it is there, or not and why; `where` names what was searched ("this video"), `kind` is of `fields.in`. */
export const verdict = (found, where, kind) => (found.present ? there(found) : absent(found, where, kind));

/** The ranges as elements; `fields` are those of the address, and `seek(time)` is there on the page of a video. */
export function result(key, found, fields, seek = null) {
  const { ranges, weaker } = found;
  const least = found.least_score;
  const draw = (all) => groups(key, all, found, fields, seek);
  return [
    ...draw(ranges),
    weaker.length
      ? el(
          "details",
          { class: "weaker" },
          el("summary", {}, weakerWords(found)),
          el("p", { class: "quiet" }, found.least_evidence === null ? "The agent saw these, and does not say that it happens there." : `Their score is below ${least.toFixed(2)}, or they are no better than what comes by chance. Look before you rely on them.`),
          draw(weaker),
        )
      : null,
    found.question ? el("p", {}, el("a", { href: `#/ask/${key}/${found.question}` }, "The answer of the agent, and each of its rounds")) : null,
  ].filter(Boolean);
}

const weakerWords = ({ present, weaker }) =>
  present ? `${plural(weaker.length, "weaker place")}, not counted` : `The ${weaker.length === 1 ? "best place" : `${weaker.length} best places`} all the same`;

function there(found) {
  const videos = new Set(found.ranges.map((each) => each.video_id)).size;
  const several = videos > 1 ? ` in ${plural(videos, "video")}` : "";
  return el(
    "div",
    { class: "found" },
    el("p", {}, el("b", {}, plural(found.ranges.length, "moment")), `${several}${found.least_evidence === null || found.ranges.length === 1 ? "" : ", best first"}. `, figures(found)),
    found.least_evidence === null && found.reason ? el("blockquote", { dir: "auto" }, found.reason) : null,
  );
}

/** What stands out nowhere may be everywhere: a search alone cannot tell the two apart. */
const sentence = (found, where) =>
  found.least_evidence === null
    ? `“${found.text}” does not happen in ${where}, as far as the agent ${found.by} can tell.`
    : `Nothing in ${where} stands out as “${found.text}”: it is not there, or it is in sight nearly all the time.`;

function absent(found, where, kind) {
  const agent = found.least_evidence === null;
  return el(
    "div",
    { class: "card pad absent" },
    el("p", { class: "verdict-line" }, el("b", {}, "Not found. "), sentence(found, where)),
    found.reason ? el("p", {}, agent ? "It says: " : "Why: ", el("span", { dir: "auto" }, found.reason), ". ", meant(found)) : null,
    agent ? null : el("p", { class: "quiet" }, ADVICE[kind] ?? ADVICE.both),
  );
}

/** The figures behind a verdict, each explained where it stands. */
const figures = (found) =>
  found.least_evidence === null
    ? null
    : el(
        "span",
        { class: "quiet" },
        term("stands out", "Stands out"),
        ` by ${found.evidence.toFixed(2)}; `,
        term("it takes"),
        ` ${found.least_evidence.toFixed(2)}.`,
      );

/** The words of a search's reason, explained. */
const meant = (found) =>
  found.weaker.length && found.least_evidence !== null
    ? el("span", { class: "quiet" }, "What is meant: ", term("stands out"), ", ", term("it takes"), ".")
    : null;

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
      seek
        ? null
        : [
            el(
              "h2",
              {},
              el("a", { href: `#/library/${key}/video/${encodeURIComponent(id)}` }, el("bdi", {}, breakable(video.title))),
              el("span", { class: "quiet" }, ` ${clock(video.duration_s)}`),
            ),
            strip(video, own),
          ],
      el("div", { class: "grid moments-grid" }, own.map((each) => momentCard(key, video, each, found, fields, seek))),
    );
  });
}
