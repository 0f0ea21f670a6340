// One video of a library: the frame that one is at, or the video itself, its time line, and what is said, shown and described.

import { keep } from "viewer/shared/address.js";
import { searchAddress } from "viewer/library/hits.js";
import { breakable, button, copier, el } from "viewer/shared/dom.js";
import { alone, load, picture } from "viewer/shared/source.js";
import { nearest } from "viewer/shared/sorted.js";
import { takeAway } from "viewer/shared/take_away.js";
import { amount, capitalised, clock, plural } from "viewer/shared/words.js";
import { fieldsOf, videoAddress } from "viewer/moments/address.js";
import { finder } from "viewer/moments/moments.js";
import { contents } from "viewer/library/video_contents.js";
import { lines } from "viewer/library/video_lines.js";
import { playedStage } from "viewer/library/video_played.js";
import { colourOf, detectionWords, stage } from "viewer/library/video_stage.js";
import { timeLine } from "viewer/library/video_timeline.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };

const languageName = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });

/** Times are rounded to so much on their way here. */
const ROUNDED_S = 0.001;

/** "Speech, in English and German": the languages of its lines, where they are known. */
function spokenTitle(codes) {
  const names = codes.map((code) => {
    try {
      return languageName.of(code);
    } catch {
      return code; // what a subtitle file calls a language need not be one
    }
  });
  return names.length ? `Speech, in ${new Intl.ListFormat("en").format(names)}` : "Speech";
}

export async function video(key, videoId) {
  const there = await load("home");
  const data = await load(`libraries/${key}/videos/${encodeURIComponent(videoId)}`);
  const { video: row, times_s: times } = data;
  const wanted = Number(location.hash.split("/")[5] || NaN);
  const state = { at: Math.max(0, nearest(times, Number.isNaN(wanted) ? (data.opens_at_s ?? 0) : wanted)), moved: false };
  const caption = el("p", { class: "row" });
  const tags = el("span");
  const still = stage(key, data, (rows, wrong) => tags.replaceChildren(...seen(data, rows), wrong ?? ""));
  const screen = there.serve ? playedStage(key, row, still, follow) : still;
  const line = timeLine(data, (at) => picture(key, row.video_id, data.frame_nos[at]), seek);
  const said = (each) => `${each.speaker ? `${each.speaker}: ` : ""}${each.text}`;
  const finding = alone ? null : momentsHere(key, row, there, line, seek, () => times[state.at] ?? row.start_s);
  const lists = [
    contents(data.contents, seek),
    ...data.lines.map((each) => lines(each.kind === "speech" ? spokenTitle(data.languages) : capitalised(each.label), each.rows, said, seek)),
  ].filter(Boolean);

  function show(time) {
    line.show(time);
    lists.forEach((each) => each.show(time));
  }

  /** Marks everything but the screen with a time. */
  function follow(time) {
    const at = nearest(times, time);
    if (at >= 0 && (at !== state.at || !caption.childElementCount)) {
      state.at = at;
      still.show(at);
      caption.replaceChildren(...place(key, data, at), tags);
    }
    show(time);
  }

  function go(at) {
    state.at = Math.min(Math.max(at, 0), times.length - 1);
    const time = times[state.at];
    caption.replaceChildren();
    screen.show(state.at, time);
    follow(time);
  }

  function move(at) {
    state.moved = true;
    go(at);
    keep(videoAddress(key, videoId, times[state.at], finding?.fields()));
  }

  function seek(time) {
    if (times.length) move(nearest(times, time));
    else show(time);
  }

  const goTo = (label) => {
    const numbers = data.detected[label];
    const now = data.frame_nos[state.at];
    move(data.frame_nos.indexOf(numbers.find((number) => number > now) ?? numbers[0]));
  };
  const element = el(
    "div",
    { class: "video" },
    head(key, data),
    el(
      "div",
      { class: "video-parts" },
      times.length
        ? el("section", { class: "card pad" }, screen.element, caption)
        : el("section", { class: "card pad" }, el("p", {}, "This video has only text, no frames.")),
      el("section", { class: "card pad", "aria-label": "Time line of the video" }, line.element, labels(data, goTo), finding?.element),
      lists.length ? el("section", { class: "card pad sides" }, lists.map((each) => each.element)) : null,
    ),
    el(
      "p",
      { class: "quiet keys" },
      "← → go from frame to frame, Page Up and Page Down by ten, comma and full stop from shot to shot. + and − zoom the time line, 0 shows all of it, Shift ← → scroll it. A click seeks; the wheel scrolls, with " +
        "Ctrl it zooms.",
    ),
  );
  const onKey = keys({ data, line, state, move });
  const ready = async () => {
    if (!times.length) return show(row.start_s);
    if (Number.isNaN(wanted)) {
      line.show(times[state.at]);
      const at = data.frame_nos.indexOf(await posterFrame(key, row));
      if (state.moved) return;
      if (at >= 0) state.at = at;
    }
    go(state.at);
  };
  return { title: row.title, element, onKey, ready, here: `#/library/${key}` };
}

/** When something happens in this video: a form, and the moments found, which the time line shows too. */
function momentsHere(key, row, there, line, seek, now) {
  let fields = fieldsOf(decodeURIComponent(location.hash.split("/")[6] ?? ""));
  const keepFields = (asked) => {
    fields = asked;
    history.replaceState(null, "", videoAddress(key, row.video_id, now(), asked));
  };
  const drawn = (found) => line.found(`Found: ${plural(found.ranges.length, "moment")} of “${found.text}”`, found.ranges);
  const found = finder(key, fields, there, keepFields, { video: row.video_id, where: () => "this video", seek, drawn });
  const heading = el("h2", {}, "When does something happen?");
  return { element: el("div", { class: "moments-here" }, heading, found.elements), fields: () => fields };
}

/** The number of the frame that is the poster of a video: most films begin with a black picture. */
async function posterFrame(key, row) {
  if (alone) return -1;
  const reply = await fetch(`/posters/${key}/${encodeURIComponent(row.video_id)}`);
  return reply.ok ? Number(reply.headers.get("x-frame-no") ?? NaN) : -1;
}

function keys({ data, line, state, move }) {
  const lineKeys = { "+": () => line.zoom(0.5), "=": () => line.zoom(0.5), "-": () => line.zoom(2), 0: () => line.whole() };
  const shot = (by) => {
    const starts = data.segments.map((each) => nearest(data.times_s, each.start_s));
    return by > 0 ? starts.find((at) => at > state.at) : starts.findLast((at) => at < state.at);
  };
  return (event) => {
    const scrolls = event.target.closest("[data-scrolls]");
    if (event.target.closest(".player, .take-away")) return; // they have keys of their own
    if (event.key in lineKeys) lineKeys[event.key]();
    else if (event.shiftKey && event.key.startsWith("Arrow")) line.pan(event.key === "ArrowLeft" ? -0.5 : 0.5);
    else if (!data.times_s.length || (scrolls && !event.key.startsWith("Arrow"))) return;
    else if (event.key in STEPS && (Math.abs(STEPS[event.key]) < Infinity || event.target.closest(".track")))
      move(state.at + STEPS[event.key]);
    else if (event.key === "," || event.key === ".") move(shot(event.key === "." ? 1 : -1) ?? state.at);
    else return;
    event.preventDefault();
  };
}

function head(key, data) {
  const { video: row } = data;
  const size = row.frames ? `${row.width_px} × ${row.height_px} ${row.codec}` : null;
  const facts = [
    clock(row.duration_s),
    plural(row.frames, "frame"),
    data.segments.length ? plural(data.segments.length, "shot") : null,
    size,
  ];
  return [
    el("p", { class: "quiet kicker" }, el("a", { href: `#/library/${key}` }, "Library"), ` · ${row.uri}`),
    el("h1", { class: row.title.length > 80 ? "long" : null }, el("bdi", {}, breakable(row.title))),
    el("p", { class: "quiet" }, facts.filter(Boolean).join(" · ")),
    el(
      "p",
      { class: "video-acts" },
      alone ? null : el("a", { href: searchAddress(key, { video: row.video_id }) }, "Search in this video"),
      copier(row.video_id, `id ${row.video_id.slice(0, 8)}`),
      takeAway(key, row.video_id, []),
    ),
  ];
}

function place(key, data, at) {
  const { video: row, times_s: times } = data;
  const position = `${row.title} ${clock(times[at])}`;
  const like =
    !alone &&
    el("a", { href: searchAddress(key, { like: `${row.video_id}@${times[at] + ROUNDED_S}/${data.frame_nos[at]}` }) }, "More like this frame");
  return [
    copier(position, clock(times[at])),
    el("span", { class: "quiet" }, ` frame ${data.frame_nos[at]}, ${amount(at + 1)} of ${amount(times.length)}`),
    like,
  ].filter(Boolean);
}

/** Detections by label; a click goes to the next frame that has it. */
function labels(data, next) {
  const all = Object.entries(data.detected);
  if (!all.length) return null;
  const chips = all.map(([label, numbers]) => {
    const look = { class: "chip", title: "Go to the next frame with it", style: { "border-color": colourOf(data, label) } };
    return button(`${label} ${amount(numbers.length)}`, () => next(label), look);
  });
  return el("div", { class: "detected" }, el("h2", {}, "Detected"), el("p", {}, chips));
}

const seen = (data, rows) =>
  rows.map((each) =>
    el("span", { class: "tag", style: { "border-color": colourOf(data, each.label) } }, detectionWords(each)),
  );
