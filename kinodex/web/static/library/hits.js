// The hits of a search by video, each with the reason why it was found.

import { playButton } from "viewer/play/player.js";
import { breakable, copier, el, listed } from "viewer/shared/dom.js";
import { image } from "viewer/shared/frames.js";
import { lookButton } from "viewer/shared/look.js";
import { takeAway } from "viewer/shared/take_away.js";
import { clock, judged, plural } from "viewer/shared/words.js";

const AT_FIRST = 4;
const ALONE_AT_FIRST = 12;
const WORD = /[\p{L}\p{N}_]+/gu;

export const searchAddress = (key, fields) =>
  `#/library/${key}/search/${encodeURIComponent(new URLSearchParams(fields))}`;

/**
 * All that was found, best video first; `text` are the words that were searched, `fields` those of the address, `looks`
 * the model that can look at them, and `redraw()` is called once it has.
 */
export function hitGroups(key, found, text, fields, looks, redraw) {
  const { count, claim, groups, notes } = found;
  const noted = notes.map((each) => el("p", { class: "quiet", dir: "auto" }, `${each[0].toUpperCase()}${each.slice(1)}.`));
  if (!count) return [el("p", {}, "Nothing found."), noted, el("p", { class: "quiet" }, advice(fields))];
  const several = groups.length > 1 ? ` in ${plural(groups.length, "video")}` : "";
  return [
    el("p", { class: "claim", dir: "auto" }, `${plural(count, "hit")}${several}: ${claim}.`),
    noted,
    lookButton(key, looks, text, bestFirst(groups), (said) => redraw(Object.assign(found, { claim: said }))),
    groups.map((group) => section(key, group, text, fields, groups.length === 1 ? ALONE_AT_FIRST : AT_FIRST)),
  ];
}

/** The hits of all films in the order of the search. */
const bestFirst = (groups) => groups.flatMap(({ video_id, hits }) => hits.map((hit) => Object.assign(hit, { video_id }))).sort((one, other) => other.score - one.score);

const advice = (fields) =>
  fields.in && fields.in !== "all"
    ? "Only one place was searched: choose “pictures and words” above to search all that is seen and said."
    : "Try other words, or fewer; leave out the video and the times above, if there are any.";

function section(key, group, text, fields, atFirst) {
  const cards = group.hits.map((hit) => card(key, group, hit, text));
  const grid = el("div", { class: "grid" });
  const more = listed(grid, cards, atFirst, (count) => `${count} more in this film`);
  const alone = searchAddress(key, { ...fields, video: group.video_id });
  return el(
    "section",
    { class: "group", "aria-label": group.title },
    videoHeading(key, group),
    grid,
    more,
    group.more ? el("a", { class: "only", href: alone }, `Search only this film: ${group.more} hits more`) : null,
  );
}

/** The heading of what was found in a video. */
export const videoHeading = (key, { video_id: id, title, duration_s: length }) =>
  el(
    "h2",
    {},
    el("a", { href: `#/library/${key}/video/${encodeURIComponent(id)}` }, el("bdi", {}, breakable(title))),
    el("span", { class: "quiet" }, ` ${clock(length)}`),
  );

function card(key, group, hit, text) {
  const position = `${group.title} ${clock(hit.start_s)}`;
  return el(
    "article",
    { class: "card hit" },
    el(
      "a",
      { href: `#/library/${key}/video/${group.video_id}/${hit.start_s}`, "aria-label": `Open ${position}` },
      image(key, { ...group, ...hit }),
    ),
    el(
      "div",
      {},
      el("div", { class: "hit-line" }, copier(position, clock(hit.start_s)), judged(hit)),
      el("p", { class: "why", dir: "auto", title: hit.text ?? null }, marked(hit.why, text)),
      el(
        "div",
        { class: "hit-line" },
        playButton(key, group, position, hit.play),
        hit.frame_no === null
          ? null
          : el("a", { ...like(key, group, hit), "aria-label": `More like ${position}` }, "More like this"),
        takeAway(key, group.video_id, [hit.play], text),
      ),
    ),
  );
}

const like = (key, group, hit) => ({ class: "like", href: searchAddress(key, { like: `${group.video_id}@${hit.start_s}/${hit.frame_no}` }) });

/** A reason with the words of the search marked in what it quotes. */
function marked(why, text) {
  const words = new Set(text.toLowerCase().match(WORD) ?? []);
  const quoted = why.indexOf(": ") + 2;
  if (!words.size || quoted < 2) return why;
  const parts = [why.slice(0, quoted)];
  let from = quoted;
  for (const found of why.slice(quoted).matchAll(WORD)) {
    if (!words.has(found[0].toLowerCase())) continue;
    const at = quoted + found.index;
    parts.push(why.slice(from, at), el("mark", {}, found[0]));
    from = at + found[0].length;
  }
  return [...parts, why.slice(from)];
}
