// A screen that plays a file, or a stream made of it, in a <video>; its times are those of the library.

import { el } from "viewer/shared/dom.js";

/** Half a millisecond into a frame: browsers round times, and would show the frame before. */
const INTO_FRAME_S = 0.0005;
/** A stream that breaks off later than this has played, and can go on from there. */
const PLAYED_S = 0.5;
const NEAR_END_S = 1;
const UNDRAWN_MS = 400;

/**
 * A screen for a playback of the server, at the time `at`. Calls `on.time()` as time goes, `on.state()` when it starts
 * or stops, `on.end()` at the end of the video, `on.failed()` if this browser cannot play it, and `on.broken()` where a
 * stream ends too early. The `poster` stands there until the first frame does.
 */
export function film(playback, captions, at, on, poster = null) {
  const { start_s: start, duration_s: length } = playback;
  const streams = playback.way !== "file";
  let offset = playback.offset_s;
  let target = at;
  let settled = false;
  let closed = false;
  const video = el("video", { preload: "auto", playsinline: true, src: playback.url, poster, tabindex: -1 });
  const track = el("track", { kind: "captions", label: "Speech", src: `${captions}?from=${offset}` });
  video.append(track);
  const time = () => (settled ? video.currentTime + offset : target);
  const listen = (names, action) =>
    names.split(" ").forEach((name) => video.addEventListener(name, () => !closed && action()));

  /** The first frame is there: go to the time that is wanted. `first` is the frame's time on this browser's clock. */
  function settle(first) {
    if (settled || closed) return;
    settled = true;
    if (!streams && start - offset > 0.02 && first !== null && first < 0.001) {
      offset = start; // some browsers let every file begin at 0
      track.src = `${captions}?from=${offset}`;
    }
    if (!streams) video.currentTime = Math.max(target - offset, 0) + INTO_FRAME_S;
    on.time();
  }

  if (video.requestVideoFrameCallback) {
    video.requestVideoFrameCallback((now, frame) => settle(frame.mediaTime));
    listen("loadeddata", () => setTimeout(settle, UNDRAWN_MS, null)); // no frame is drawn out of sight
  } else listen("loadeddata", () => settle(null));
  listen("timeupdate seeked", on.time);
  listen("play pause", on.state);
  listen("ended", () => (streams && time() < start + length - NEAR_END_S ? on.broken() : on.end()));
  listen("error", () => (streams && settled && video.currentTime > PLAYED_S ? on.broken() : on.failed()));

  return {
    element: video,
    time,
    paused: () => video.paused,
    /** Goes to a time; false for a stream, which browsers cannot search: then another one has to begin there. */
    seek(to) {
      if (streams) return Math.abs(to - time()) < 0.001;
      target = to;
      if (settled) video.currentTime = Math.max(to - offset, 0) + INTO_FRAME_S;
      return true;
    },
    play: () => video.play().catch(() => on.state()), // a browser may want a click first
    pause: () => video.pause(),
    sound: { muted: () => video.muted, mute: (muted) => (video.muted = muted) },
    rate: (rate) => (video.playbackRate = rate),
    captions: (shown) => (track.track.mode = shown ? "showing" : "disabled"),
    /** Lets go of the file or stream: the server ends what it does for it. */
    close() {
      closed = true;
      video.pause();
      video.removeAttribute("src");
      video.load();
    },
  };
}
