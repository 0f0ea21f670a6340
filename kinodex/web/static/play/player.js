// A player of one video of a library: its file, a stream made of it, or its stored frames, all with the same controls.

import { controls } from "viewer/play/controls.js";
import { choose, said } from "viewer/play/choose.js";
import { film } from "viewer/play/film.js";
import { frameAt, slides } from "viewer/play/slides.js";
import { button, copy, el } from "viewer/shared/dom.js";
import { load, picture } from "viewer/shared/source.js";

const AT_END_S = 0.03;
const MOST_RESTARTS = 3;
const RESTS_MS = 150;

/**
 * A player for a row of a library's videos (`video_id`, `start_s`, `duration_s`) that begins at the time `start`:
 * `element`, `seek(time)`, `play(start, end)` (without `end`: to the end of the video), `pause()`, `time()`,
 * `onTime(callback)`, `keys(event)`, `close()`, and `ready`, a promise kept once it has chosen how to play, which
 * `element` always says. Times are seconds of the library.
 */
export function player(library, row, start = row.start_s) {
  const end = row.start_s + row.duration_s;
  const data = load(`libraries/${library}/videos/${encodeURIComponent(row.video_id)}`);
  const captions = `/media/${library}/${encodeURIComponent(row.video_id)}/captions.vtt`;
  const state = { range: null, loops: false, muted: false, shows: false, rate: 1, plays: false, lines: [] };
  const failed = new Set();
  const callbacks = [];
  let restarts = 0;
  let choices = 0;
  let closed = false;
  let screen = null;
  let at = start;
  let waiting = 0;

  const stage = el("div", { class: "stage", style: { "--shape": shape(row) } });
  const way = el("p", { class: "way", role: "status" }, "Looking for the file…");
  const line = el("p", { class: "said" });
  const notice = el("div");
  const bar = controls(row, {
    toggle: () => (paused() ? go() : pause()),
    seek: (time) => seek(time),
    frame: (step) => frame(step),
    loop: () => ((state.loops = !state.loops), draw()),
    mute: () => ((state.muted = !state.muted), screen?.sound?.mute(state.muted), draw()),
    rate: (rate) => ((state.rate = rate), screen?.rate(rate)),
    captions: () => ((state.shows = !state.shows), screen?.captions(state.shows), draw()),
    full: () => (document.fullscreenElement ? document.exitFullscreen() : stage.requestFullscreen?.()),
  });
  const element = el(
    "section",
    { class: "player", "aria-label": `Player: ${row.title ?? "video"}`, onkeydown: (event) => bar.keys(event) },
    notice,
    stage,
    bar.element,
    line,
    way,
  );

  const paused = () => (screen && !waiting ? screen.paused() : !state.plays);
  const time = () => (screen && !waiting ? screen.time() : at);

  function draw() {
    const { range, loops, muted, shows, lines } = state;
    const now = time();
    const said = lines.filter((each) => each.start_s <= now && now < each.end_s);
    const text = said.map((each) => (each.speaker ? `${each.speaker}: ${each.text}` : each.text)).join(" ");
    if (line.textContent !== text) line.textContent = text;
    const speaks = Boolean(lines.length && screen?.sound);
    bar.draw({ time: now, paused: paused(), range, loops, muted: screen?.sound ? muted : null, shows, speaks });
  }

  function onTime() {
    at = time();
    if (state.range && !paused() && at >= state.range.end_s - AT_END_S) {
      if (state.loops) moved(state.range.start_s);
      else screen.pause();
    }
    draw();
    callbacks.forEach((each) => each(at));
  }

  const on = {
    time: onTime,
    state() {
      draw();
      if (!paused()) requestAnimationFrame(watch);
    },
    end: () => (state.loops ? (moved(row.start_s), screen.play()) : draw()),
    failed() {
      failed.add(way.dataset.way);
      begin(at);
    },
    broken: () => (restarts++ < MOST_RESTARTS ? begin(at) : on.failed()),
  };

  /** While it plays, looks at every frame: ranges end where they should, not a quarter of a second later. */
  function watch() {
    if (closed || paused()) return;
    onTime();
    requestAnimationFrame(watch);
  }

  /** The picture that is stored of a time: it stands there until the film has its own. */
  const stillAt = ({ times_s: times, frame_nos: numbers }, time) =>
    times.length ? picture(library, row.video_id, numbers[frameAt(times, time)]) : null;

  /** Chooses a way to play from a time on, and puts its screen on the stage. */
  async function begin(from) {
    const mine = (choices += 1);
    waiting = 0;
    at = from;
    const wanted = state.plays;
    screen?.close();
    screen = null;
    draw();
    try {
      const playback = await choose(library, row, from, failed);
      const stored = await data;
      const slow = playback.way === "slideshow" ? stored : null;
      if (mine !== choices || closed) return;
      if (!slow && playback.way !== "file" && at !== from) return begin(at); // sought while it was chosen
      screen = slow ? slides(library, slow, at, on) : film(playback, captions, at, on, stillAt(stored, at));
      way.dataset.way = playback.way;
      notice.replaceChildren(...gone(playback));
      way.replaceChildren(said(playback), playback.warning ? el("strong", {}, ` Note: ${playback.warning}.`) : "");
    } catch (error) {
      if (mine === choices) way.replaceChildren(`It cannot be played: ${error.message}`);
      return;
    }
    stage.replaceChildren(screen.element);
    screen.rate(state.rate);
    screen.sound?.mute(state.muted);
    screen.captions(state.shows);
    if (wanted || state.plays) screen.play();
    draw();
  }

  function moved(to) {
    at = Math.min(Math.max(to, row.start_s), Math.max(row.start_s, end - 0.001));
    clearTimeout(waiting);
    waiting = 0;
    if (screen && !screen.seek(at)) {
      screen.pause(); // another stream begins there, once the time line has come to rest
      waiting = setTimeout(begin, RESTS_MS, at);
    }
    draw();
  }

  function seek(to) {
    if (state.range && (to < state.range.start_s - AT_END_S || to > state.range.end_s)) state.range = null;
    moved(to);
  }

  function go() {
    state.plays = true;
    const { range } = state;
    if (range && time() >= range.end_s - 2 * AT_END_S) moved(range.start_s);
    else if (time() >= end - 2 * AT_END_S) moved(row.start_s);
    screen?.play();
    draw();
  }

  function pause() {
    state.plays = false;
    screen?.pause();
    draw();
  }

  async function frame(step) {
    const { times_s: times } = await data;
    if (!times.length) return;
    pause();
    const now = frameAt(times, time());
    const to = step < 0 && time() > times[now] + 0.02 ? now : now + step;
    seek(times[Math.min(Math.max(to, 0), times.length - 1)]);
  }

  data.then(
    ({ lines }) => ((state.lines = lines.find((each) => each.kind === "speech").rows), draw()),
    () => {}, // the way to play says what is wrong
  );
  const ready = begin(at);
  return {
    element,
    ready,
    seek,
    time,
    pause,
    play(start_s = time(), end_s = null) {
      state.range = end_s === null || end_s <= start_s ? null : { start_s, end_s };
      moved(start_s);
      go();
    },
    onTime: (callback) => callbacks.push(callback),
    keys: bar.keys,
    close() {
      closed = true;
      screen?.close();
    },
  };
}

/** The banner of a file that is no longer where it was, with the command that mends it. */
const gone = ({ gone: address, remedy }) =>
  address
    ? [
        el(
          "div",
          { class: "banner", role: "alert" },
          el("p", {}, el("b", {}, "The file is gone. "), `Nothing lies at ${address} any more. These are its stored frames. If it was moved, say where it is by now:`),
          el("pre", { tabindex: 0, "data-scrolls": true }, remedy),
          button("Copy the command", () => copy(remedy)),
        ),
      ]
    : [];

const shape = (row) => (row.width_px && row.height_px ? `${row.width_px / row.height_px}` : "1.7778");

/** A button that plays a range of a video, which is called `name` for those who do not see it. */
export const playButton = (library, { video_id: id, title }, name, range) =>
  button("▶ Play", () => openPlayer(library, id, title, range), { class: "chip play", "aria-label": `Play ${name}` });

/** Opens a dialog over the page that plays a range of a video, and gives the focus back when it closes. */
export async function openPlayer(library, videoId, title, { start_s, end_s = null }) {
  const before = document.activeElement;
  const body = el("div", {}, el("p", { class: "quiet" }, "Opening the video…"));
  let inner = null;
  const dialog = el(
    "dialog",
    {
      class: "lightbox watch",
      "aria-label": `Video: ${title}`,
      onclose() {
        inner?.close();
        dialog.remove();
        before?.focus?.();
      },
      onclick: (event) => event.target === dialog && dialog.close(),
      onkeydown(event) {
        if (!inner?.element.contains(event.target)) inner?.keys(event);
        event.stopPropagation();
      },
    },
    el(
      "div",
      { class: "row" },
      el("h2", {}, title),
      button("Close", () => dialog.close(), { autofocus: true }),
    ),
    body,
  );
  document.body.append(dialog);
  dialog.showModal();
  try {
    const { video: row } = await load(`libraries/${library}/videos/${encodeURIComponent(videoId)}`);
    if (!dialog.open) return;
    inner = player(library, row, Math.min(Math.max(start_s, row.start_s), row.start_s + row.duration_s));
    body.replaceChildren(inner.element);
    inner.play(start_s, end_s);
  } catch (error) {
    body.replaceChildren(el("p", { role: "alert" }, `It cannot be played: ${error.message}`));
  }
}
