// A screen that shows a video's stored frames one after another, in the time that they have in the video.

import { el } from "viewer/shared/dom.js";
import { firstFrom } from "viewer/shared/sorted.js";
import { picture } from "viewer/shared/source.js";
import { clock } from "viewer/shared/words.js";

/** Position of the frame that is on screen at a time: the last one that is not after it. */
export const frameAt = (times, time) => Math.max(0, firstFrom(times, time + 1e-6) - 1);

/** A screen like `film`'s, over the frames of `data`, a video as the server describes it. */
export function slides(library, data, at, on) {
  const { video: row, times_s: times, frame_nos: numbers } = data;
  const end = row.start_s + row.duration_s;
  const image = el("img", { alt: "" });
  const nothing = el("p", { class: "quiet none" }, "No stored picture to show.");
  let begun = null; // the clock's time and the video's, when it started to play
  let shown = null;
  let time = at;
  let rate = 1;

  function show() {
    const number = numbers[frameAt(times, time)] ?? null;
    if (number === shown && shown !== null) return;
    shown = number;
    const source = picture(library, row.video_id, number);
    image.hidden = !source;
    nothing.hidden = Boolean(source);
    if (!source) return;
    image.setAttribute("src", source);
    image.setAttribute("alt", `Stored frame at ${clock(times[frameAt(times, time)])}`);
  }

  function tick(now) {
    if (begun === null) return;
    time = Math.min(begun.time + ((now - begun.now) / 1000) * rate, end);
    show();
    on.time();
    if (time >= end) {
      begun = null;
      on.state();
      on.end();
    } else if (begun !== null) requestAnimationFrame(tick);
  }

  show();
  return {
    element: el("div", { class: "slides" }, image, nothing),
    time: () => time,
    paused: () => begun === null,
    seek(to) {
      time = to;
      if (begun) begun = { now: performance.now(), time };
      show();
      on.time();
      return true;
    },
    play() {
      if (begun === null) {
        begun = { now: performance.now(), time };
        requestAnimationFrame(tick);
      }
      on.state();
    },
    pause() {
      begun = null;
      on.state();
    },
    sound: null,
    rate(set) {
      if (begun) begun = { now: performance.now(), time };
      rate = set;
    },
    captions: () => {},
    close: () => (begun = null),
  };
}
