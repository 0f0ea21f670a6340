// One video of a library: any of its frames with detections, its captions and its transcript.

import { keep } from "viewer/shared/address.js";
import { breakable, copier, el } from "viewer/shared/dom.js";
import { load, picture } from "viewer/shared/source.js";
import { amount, clock, plural } from "viewer/shared/words.js";

const LINES_AT_FIRST = 400;
const COLOURS = 6;
/** Above this part of a frame's height a label would stand outside the frame. */
const LABEL = 0.08;

export async function video(key, videoId) {
  const data = await load(`libraries/${key}/videos/${encodeURIComponent(videoId)}`);
  const { video: row, times_s: times } = data;
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
    screen.replaceChildren(still(key, data, state.at));
    const position = `${row.title} ${clock(time)}`;
    caption.replaceChildren(
      copier(position, clock(time)),
      el("span", { class: "quiet" }, ` frame ${data.frame_nos[state.at]}, ${state.at + 1} of ${amount(times.length)}`),
      ...seen(data, state.at),
    );
    follow.forEach((each) => each(time));
  }

  function move(at) {
    go(at);
    keep(`#/library/${key}/video/${encodeURIComponent(videoId)}/${times[state.at]}`);
  }

  const seek = (time) => times.length && move(nearest(times, time));
  const panels = [
    panel("Captions", data.captions, (each) => each.text, seek, follow),
    panel(
      "Transcript",
      data.transcript,
      (each) => `${each.speaker ? `${each.speaker}: ` : ""}${each.text}`,
      seek,
      follow,
    ),
    labels(
      data,
      (frameNo) => move(data.frame_nos.indexOf(frameNo)),
      () => data.frame_nos[state.at],
    ),
    panel("Segments", data.captions.length ? [] : data.segments, (each) => each.kind, seek, follow),
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
            el("p", {}, "This video has only text, no frames."),
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

const detected = (data, at) => data.detections.filter((each) => each.frame_no === data.frame_nos[at]);

/** A frame with named boxes around its detections. */
function still(key, data, at) {
  const boxes = detected(data, at).map((each) => {
    const [left, top, right, bottom] = each.box.map((part) => part * 100);
    const place = { left: `${left}%`, top: `${top}%`, width: `${right - left}%`, height: `${bottom - top}%` };
    const style = { ...place, "--colour": colourOf(data, each.label) };
    return el("div", { class: `box ${each.box[1] < LABEL ? "inward" : ""}`, title: words(each), style }, el("span", {}, each.label));
  });
  return el(
    "figure",
    { class: "still", style: { "--shape": `${data.video.width_px / data.video.height_px}` } },
    el("img", {
      src: picture(key, data.video.video_id, data.frame_nos[at]),
      alt: `Frame at ${clock(data.times_s[at])}`,
    }),
    boxes,
  );
}

const words = (each) =>
  `${each.label} ${each.score.toFixed(2)}${each.track_id === null ? "" : `, track ${each.track_id}`}`;

function colourOf(data, label) {
  data.labels ??= [...new Set(data.detections.map((each) => each.label))];
  return `var(--c${data.labels.indexOf(label) % COLOURS})`;
}

/** Detections by label; a click goes to the next frame that has it. */
function labels(data, show, current) {
  const frames = new Map();
  for (const each of data.detections) {
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
        style: { "border-color": colourOf(data, label) },
        onclick: () => next(label),
      },
      `${label} ${amount(at.length)}`,
    ),
  );
  return el(
    "div",
    {},
    el("h2", {}, "Detected ", el("span", { class: "quiet" }, amount(data.detections.length))),
    el("p", {}, chips),
  );
}

const seen = (data, at) =>
  detected(data, at).map((each) =>
    el("span", { class: "tag", style: { "border-color": colourOf(data, each.label) } }, words(each)),
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
