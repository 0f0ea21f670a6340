// The evidence of an answer as pictures: a click plays the moment, the second button copies its position.

import { breakable, button, copier, el, listed } from "viewer/shared/dom.js";
import { enlarge, image } from "viewer/shared/frames.js";
import { alone, picture } from "viewer/shared/source.js";
import { takeAway } from "viewer/shared/take_away.js";
import { watch } from "viewer/trace/watch.js";
import { term } from "viewer/shared/terms.js";
import { clock, plural, span } from "viewer/shared/words.js";

const AT_FIRST = 6;

/** The evidence of a trace's answer; null without any. */
export function evidence({ library, evidence: frames = [], plays = [], trace: { answer } }, titles) {
  const ranges = (answer?.evidence ?? []).map((range, at) => ({ ...range, play: plays[at] ?? range }));
  if (!ranges.length) return null;
  const screen = library === null || alone ? null : watch(library);
  const cards = ranges.map((range, at) => card(library, range, frames[at] ?? null, titles, screen));
  const list = el("ul", { class: "evidence" });
  const more = listed(list, cards, AT_FIRST, (count) => `${plural(count, "part")} more`);
  return [
    el("h2", {}, term("evidence", "Evidence"), " ", el("span", { class: "quiet" }, plural(ranges.length, "part"))),
    screen?.element,
    list,
    more,
    menus(library, ranges, titles),
  ];
}

/** A menu of downloads for each video that has evidence. */
function menus(library, ranges, titles) {
  const ids = [...new Set(ranges.map((range) => range.video_id))];
  return ids.map((id) => {
    const title = titles[id] ?? id;
    const menu = takeAway(library, id, ranges.filter((range) => range.video_id === id).map((range) => range.play), title);
    return menu && ids.length > 1 ? el("div", { class: "row" }, el("span", { class: "quiet" }, title), menu) : menu;
  });
}

function card(library, range, frame, titles, screen) {
  const title = titles[range.video_id] ?? range.video_id;
  const name = `${title} ${span(range)}`;
  const source = frame && picture(library, range.video_id, frame.frame_no);
  const shown = image(library, { video_id: range.video_id, frame_no: frame?.frame_no ?? null });
  const place = `#/library/${library}/video/${encodeURIComponent(range.video_id)}/${range.start_s}`;
  const play = () => screen.play({ ...range, ...range.play }, title);
  const look = () => enlarge([frame], 0, library, titles);
  return el(
    "li",
    {},
    library === null || (alone && !source)
      ? el("div", { class: "moment" }, shown)
      : button([shown, alone ? null : el("span", { class: "play-sign", "aria-hidden": "true" }, "▶")], alone ? look : play, {
          class: "moment",
          "aria-label": `${alone ? "Look at" : "Play"} ${name}`,
        }),
    el("b", {}, span(range)),
    library === null || alone
      ? el("span", { class: "quiet" }, breakable(title))
      : el("a", { href: place, title: "The page of this video" }, breakable(title)),
    copier(`${title} ${clock(range.start_s)}`, "Copy"),
  );
}
