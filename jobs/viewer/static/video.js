// One video of a library: any of its frames with what was detected, its captions and what is said.

import { keep } from "viewer/address.js";
import { breakable, copier, el } from "viewer/dom.js";
import { load, picture } from "viewer/source.js";
import { amount, clock, plural } from "viewer/words.js";

const LINES_AT_FIRST = 400;
const COLOURS = 6;
/** Above this part of a frame's height a label would stand outside the frame. */
const LABEL = 0.08;

export async function video(key, videoId) {
  const told = await load(`libraries/${key}/videos/${encodeURIComponent(videoId)}`);
  const { video: row, times_s: times } = told;
  const start = Number(location.hash.split("/")[5] ?? NaN);
  const state = { at: Number.isNaN(start) ? 0 : nearest(times, start) };
  const screen = el("div", { class: "screen" });
  const caption = el("p", { class: "row" });
  const range = el("input", {
    type: "range",
    min: 0,
    max: Math.max(0, times.length - 1),
    "aria-label": "Frame",
    oninput: (event) => move(Number(event.target.value)),
  });
  const follow = [];

  function go(at) {
    state.at = Math.min(Math.max(at, 0), times.length - 1);
    const time = times[state.at];
    range.value = state.at;
    range.setAttribute("aria-valuetext", clock(time));
    screen.replaceChildren(still(key, told, state.at));
    const position = `${row.title} ${clock(time)}`;
    caption.replaceChildren(
      copier(position, clock(time)),
      el("span", { class: "quiet" }, ` frame ${told.frame_nos[state.at]}, ${state.at + 1} of ${amount(times.length)}`),
      ...seen(told, state.at),
    );
    follow.forEach((each) => each(time));
  }

  function move(at) {
    go(at);
    keep(`#/library/${key}/video/${encodeURIComponent(videoId)}/${times[state.at]}`);
  }

  const seek = (time) => times.length && move(nearest(times, time));
  const panels = [
    panel("Captions", told.captions, (each) => each.text, seek, follow),
    panel(
      "Transcript",
      told.transcript,
      (each) => `${each.speaker ? `${each.speaker}: ` : ""}${each.text}`,
      seek,
      follow,
    ),
    labels(
      told,
      (frameNo) => move(told.frame_nos.indexOf(frameNo)),
      () => told.frame_nos[state.at],
    ),
    panel("Segments", told.captions.length ? [] : told.segments, (each) => each.kind, seek, follow),
  ].filter(Boolean);
  const element = el(
    "div",
    {},
    el("p", { class: "quiet kicker" }, el("a", { href: `#/library/${key}` }, "Library"), ` · ${row.uri}`),
    el("h1", {}, breakable(row.title)),
    el(
      "p",
      { class: "quiet" },
      [
        clock(row.duration_s),
        plural(row.frames, "frame"),
        `${row.width_px} × ${row.height_px} ${row.codec}`,
        row.video_id,
      ].join(" · "),
    ),
    el(
      "div",
      { class: "halves" },
      times.length
        ? el("section", { class: "card pad" }, screen, range, caption)
        : el(
            "section",
            { class: "card pad" },
            el("p", {}, "Only words are known of this video; there are no pictures."),
          ),
      el(
        "section",
        { class: "card pad" },
        panels.length ? panels : el("p", { class: "quiet" }, "No captions, no transcript, no segments."),
      ),
    ),
    el("p", { class: "quiet keys" }, "← and → go from frame to frame, Page Up and Page Down by ten."),
  );
  const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
  const onKey = (event) => {
    if (
      !(event.key in moves) ||
      !times.length ||
      (event.target.closest("[data-scrolls]") && event.key.startsWith("Page"))
    )
      return;
    event.preventDefault();
    move(state.at + moves[event.key]);
  };
  return { title: row.title, element, onKey, ready: () => times.length && go(state.at), here: `#/library/${key}` };
}

function nearest(times, wanted) {
  let best = 0;
  times.forEach((time, at) => {
    if (Math.abs(time - wanted) < Math.abs(times[best] - wanted)) best = at;
  });
  return best;
}

const detected = (told, at) => told.detections.filter((each) => each.frame_no === told.frame_nos[at]);

/** A frame with named boxes around what was detected in it. */
function still(key, told, at) {
  const boxes = detected(told, at).map((each) => {
    const [left, top, right, bottom] = each.box.map((part) => part * 100);
    const place = { left: `${left}%`, top: `${top}%`, width: `${right - left}%`, height: `${bottom - top}%` };
    const style = { ...place, "--colour": colourOf(told, each.label) };
    return el("div", { class: `box ${each.box[1] < LABEL ? "inward" : ""}`, title: words(each), style }, el("span", {}, each.label));
  });
  return el(
    "figure",
    { class: "still", style: { "--shape": `${told.video.width_px / told.video.height_px}` } },
    el("img", {
      src: picture(key, told.video.video_id, told.frame_nos[at]),
      alt: `Frame at ${clock(told.times_s[at])}`,
    }),
    boxes,
  );
}

const words = (each) =>
  `${each.label} ${each.score.toFixed(2)}${each.track_id === null ? "" : `, track ${each.track_id}`}`;

function colourOf(told, label) {
  told.labels ??= [...new Set(told.detections.map((each) => each.label))];
  return `var(--c${told.labels.indexOf(label) % COLOURS})`;
}

/** What was detected, by label; a click goes to the next frame that has it. */
function labels(told, show, current) {
  const frames = new Map();
  for (const each of told.detections) {
    if (!frames.has(each.label)) frames.set(each.label, []);
    frames.get(each.label).push(each.frame_no);
  }
  if (!frames.size) return null;
  const next = (label) => show(frames.get(label).find((frameNo) => frameNo > current()) ?? frames.get(label)[0]);
  const chips = [...frames].map(([label, at]) =>
    el(
      "button",
      {
        type: "button",
        class: "chip",
        title: "Go to the next frame with it",
        style: { "border-color": colourOf(told, label) },
        onclick: () => next(label),
      },
      `${label} ${amount(at.length)}`,
    ),
  );
  return el(
    "div",
    {},
    el("h2", {}, "Detected ", el("span", { class: "quiet" }, amount(told.detections.length))),
    el("p", {}, chips),
  );
}

const seen = (told, at) =>
  detected(told, at).map((each) =>
    el("span", { class: "tag", style: { "border-color": colourOf(told, each.label) } }, words(each)),
  );

/** A list of ranges with texts; a click goes there, and the range that is on screen is marked. */
function panel(name, ranges, text, seek, follow) {
  if (!ranges.length) return null;
  const list = el("ol", { class: "lines", tabindex: 0, "data-scrolls": true });
  const items = ranges.map((each) =>
    el(
      "li",
      {},
      el("button", { type: "button", class: "chip", onclick: () => seek(each.start_s) }, clock(each.start_s)),
      ` ${text(each)}`,
    ),
  );
  list.append(...items.slice(0, LINES_AT_FIRST));
  const rest = items.slice(LINES_AT_FIRST);
  const more = el(
    "button",
    { type: "button", class: "plain", onclick: () => (list.append(...rest), more.remove()) },
    `${plural(rest.length, "line")} more`,
  );
  let marked = null;
  follow.push((time) => {
    marked?.classList.remove("now");
    marked = items[ranges.findIndex((each) => each.start_s <= time && time < each.end_s)] ?? null;
    marked?.classList.add("now");
    if (marked?.parentNode === list) list.scrollTop = marked.offsetTop - list.clientHeight / 2;
  });
  return el(
    "div",
    {},
    el("h2", {}, `${name} `, el("span", { class: "quiet" }, amount(ranges.length))),
    list,
    rest.length ? more : null,
  );
}
