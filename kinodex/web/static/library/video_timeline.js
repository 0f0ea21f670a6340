// The time line of a video: filmstrip, moments found, chapters, transcript, text on screen, captions and detections on one canvas that zooms and scrolls.

import { button, el } from "viewer/shared/dom.js";
import { nearest } from "viewer/shared/sorted.js";
import { amount, capitalised, clock, plural, shortClock } from "viewer/shared/words.js";
import { gestures } from "viewer/library/video_gestures.js";
import {
  drawAxis,
  drawFilm,
  drawOverview,
  drawPlace,
  drawRanges,
  FILM,
  layTracks,
  OVERVIEW,
  scale,
} from "viewer/library/video_drawing.js";
import { filmCells, Thumbnails } from "viewer/library/video_filmstrip.js";
import { TimeWindow } from "viewer/library/video_window.js";

const LEAST_S = 4;
const MOST_LABELS = 6;
const COLOURS = 6;
/** Colours of labels that no kind of lines of NAMES has. */
const SPARE = [4, 5];
const NAMES = { ink: "--ink", muted: "--muted", grid: "--grid", now: "--c1", speech: "--c0", screen_text: "--c3", captions: "--c2", found: "--c1" };

/**
 * The time line as `element`, with `show(time)`, `zoom(factor)`, `pan(windows)`, `whole()` and `found(name, ranges)`, a row
 * of its own in place of the one before. `picture` gives the address of a frame by its position, `seek` is called with the
 * time that somebody chose.
 */
export function timeLine(data, picture, seek) {
  const { video: row, times_s: times } = data;
  const window_ = new TimeWindow(row.start_s, row.start_s + row.duration_s, LEAST_S);
  const [texts, labels] = [textTracks(data), labelTracks(data)];
  let tracks = layTracks(texts, labels, times.length > 0);
  const shots = data.segments.length ? data.segments : [{ start_s: window_.start, end_s: window_.end }];
  const canvas = el("canvas", { "aria-hidden": "true" });
  const span = el("span", { class: "quiet span", role: "status" });
  const track = el(
    "div",
    {
      class: "track",
      tabindex: 0,
      role: "slider",
      "aria-label": "Time line",
      "aria-valuemin": window_.start,
      "aria-valuemax": window_.end,
      style: { height: `${tracks.height}px` },
    },
    canvas,
  );
  const state = { time: window_.start, colours: null, cells: null, cellsOf: null };
  const thumbnails = new Thumbnails(picture, 2 * FILM, () => request());
  let asked = 0;

  function request() {
    asked ||= requestAnimationFrame(() => ((asked = 0), draw()));
  }

  function draw() {
    const width = track.clientWidth;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tracks.height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(tracks.height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, tracks.height);
    const view = scale(window_, width);
    const colours = (state.colours ??= readColours(track));
    drawAxis(context, view, colours, tracks.height - OVERVIEW - 4);
    thumbnails.begin();
    if (times.length) drawFilm(context, view, cells(view.perS), thumbnails, colours);
    thumbnails.end();
    for (const each of tracks.rows) drawRanges(context, view, each, colours);
    drawPlace(context, view, state.time, colours, tracks.height);
    drawOverview(context, window_, width, tracks.height, colours, state.time);
    span.textContent = window_.isWhole ? "" : `${shortClock(window_.from)} to ${shortClock(window_.to)}`;
  }

  function cells(perS) {
    const step = Math.round(Math.log2(perS) * 2);
    const shape = row.height_px ? row.width_px / row.height_px : 16 / 9;
    if (state.cellsOf !== step) {
      state.cells = filmCells(shots, times, perS, FILM * Math.min(Math.max(shape, 0.5), 3));
      state.cellsOf = step;
    }
    return state.cells;
  }

  const line = {
    show(time) {
      state.time = time;
      window_.follow(time);
      track.setAttribute("aria-valuenow", time);
      const at = nearest(times, time);
      const frame = at < 0 ? "" : `, frame ${amount(at + 1)} of ${amount(times.length)}`;
      track.setAttribute("aria-valuetext", `${clock(time)}${frame}`);
      request();
    },
    zoom: (factor) => (window_.zoom(factor, within(window_, state.time)), request()),
    pan: (windows) => (window_.pan(windows * window_.length), request()),
    whole: () => (window_.place(window_.start, window_.end), request()),
    found(name, ranges) {
      const sorted = ranges.toSorted((one, other) => one.start_s - other.start_s);
      const rows = ranges.length ? [rangesRow(name, sorted, (colours) => colours.found, 0.75), ...texts] : texts;
      tracks = layTracks(rows, labels, times.length > 0);
      track.style.setProperty("height", `${tracks.height}px`);
      request();
    },
  };
  gestures(track, window_, () => tracks.height, request, seek);
  new ResizeObserver(request).observe(track);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => ((state.colours = null), request()));
  return { ...line, element: el("div", { class: "time-line" }, track, buttons(line, span)) };
}

const within = (window_, time) =>
  time >= window_.from && time <= window_.to ? time : (window_.from + window_.to) / 2;

function readColours(element) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(name).trim();
  const colours = Object.fromEntries(Object.entries(NAMES).map(([name, variable]) => [name, of(variable)]));
  return { ...colours, labels: Array.from({ length: COLOURS }, (_, at) => of(`--c${at}`)) };
}

const rangesRow = (name, ranges, colour, alpha = 0.28) => ({
  name,
  ranges,
  longest: ranges.reduce((most, each) => Math.max(most, each.end_s - each.start_s), 0),
  alpha,
  colour,
});

function textTracks(data) {
  const parts = (level) =>
    data.contents.filter((each) => each.level === level).map((each) => ({ ...each, text: each.title }));
  const [chapters, scenes] = [parts("chapter"), parts("scene")];
  const [named, shown] = chapters.length > 1 ? ["Chapters", chapters] : ["Scenes", scenes];
  return [
    rangesRow(`${named}: ${amount(shown.length)}`, shown, (colours) => colours.muted, 0.18),
    ...data.lines.map(({ kind, label, rows }, at) =>
      rangesRow(`${capitalised(label)}: ${amount(rows.length)}`, rows, (colours) => colours[kind] ?? colours.labels[SPARE[at % SPARE.length]]),
    ),
  ].filter((each) => each.ranges.length);
}

/** A row for each of the labels that most frames have: from each frame until the next one. */
function labelTracks(data) {
  const positions = new Map(data.frame_nos.map((number, at) => [number, at]));
  const end = data.video.start_s + data.video.duration_s;
  return Object.entries(data.detected)
    .slice(0, MOST_LABELS)
    .map(([label, numbers], at) => {
      const ranges = [];
      for (const number of numbers) {
        const position = positions.get(number);
        const [start_s, end_s] = [data.times_s[position], data.times_s[position + 1] ?? end];
        if (ranges.at(-1)?.end_s === start_s) ranges.at(-1).end_s = end_s;
        else ranges.push({ start_s, end_s });
      }
      const name = `Detected: ${label}, ${plural(numbers.length, "frame")}`;
      return rangesRow(name, ranges, (colours) => colours.labels[at % COLOURS], 0.9);
    });
}

function buttons(line, span) {
  const named = (name, sign, act) => button(sign, act, { "aria-label": name, title: name });
  return el(
    "div",
    { class: "row line-buttons" },
    named("Earlier part", "←", () => line.pan(-0.5)),
    named("Later part", "→", () => line.pan(0.5)),
    named("Zoom out", "−", () => line.zoom(2)),
    named("Zoom in", "+", () => line.zoom(0.5)),
    named("Whole video", "Whole video", () => line.whole()),
    span,
  );
}
