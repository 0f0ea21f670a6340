// Mouse, wheel and touch on a time line.

import { OVERVIEW, AXIS } from "viewer/library/video_drawing.js";

const CLICK_PX = 4;
const WHEEL = 0.0016;

/**
 * A click seeks. A drag moves the window, or seeks along where the whole video is shown or on the axis; on the bar below
 * it moves through the whole. The wheel scrolls where there is more to see, with Ctrl, or two fingers, it zooms. `height()` is
 * that of the track.
 */
export function gestures(track, window_, height, redraw, seek) {
  const pointers = new Map();
  let moved = 0;
  let mode = null;

  const rect = () => track.getBoundingClientRect();
  const timeAt = (x) => {
    const { left, width } = rect();
    return window_.from + (Math.min(Math.max(x - left, 0), width) / width) * window_.length;
  };
  const wholeAt = (x) => {
    const { left, width } = rect();
    return window_.start + (Math.min(Math.max(x - left, 0), width) / width) * (window_.end - window_.start);
  };
  const centre = (time) => window_.place(time - window_.length / 2, window_.length);

  track.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    track.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.clientX);
    if (pointers.size > 1) return;
    moved = 0;
    const y = event.clientY - rect().top;
    mode = y > height() - OVERVIEW - 4 ? "overview" : y < AXIS || window_.isWhole ? "seek" : "pan";
    if (mode === "overview" && !window_.isWhole) (centre(wholeAt(event.clientX)), redraw());
  });
  track.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) return;
    const x = event.clientX;
    moved += Math.abs(x - before);
    if (pointers.size === 2) pinch(event.pointerId, before, x);
    else if (mode === "pan") window_.pan(((before - x) / rect().width) * window_.length);
    else if (mode === "overview" && !window_.isWhole) centre(wholeAt(x));
    else if (moved > CLICK_PX) seek(mode === "overview" ? wholeAt(x) : timeAt(x));
    pointers.set(event.pointerId, x);
    redraw();
  });
  const end = (event) => {
    const pressed = pointers.delete(event.pointerId);
    if (!pressed || pointers.size || event.type === "pointercancel" || moved > CLICK_PX) return;
    if (mode !== "overview") seek(timeAt(event.clientX));
    else if (window_.isWhole) seek(wholeAt(event.clientX));
  };
  track.addEventListener("pointerup", end);
  track.addEventListener("pointercancel", end);

  function pinch(id, before, x) {
    const [other] = [...pointers].filter(([each]) => each !== id).map(([, place]) => place);
    moved = Infinity; // two fingers never click
    window_.zoom(Math.max(Math.abs(before - other), 8) / Math.max(Math.abs(x - other), 8), timeAt((x + other) / 2));
  }

  track.addEventListener(
    "wheel",
    (event) => {
      const perPixel = window_.length / rect().width;
      const lines = event.deltaMode === 1 ? 16 : 1;
      const [dx, dy] = [event.deltaX * lines, event.deltaY * lines];
      let used = true;
      if (event.ctrlKey || event.metaKey) window_.zoom(Math.exp(dy * WHEEL * 2), timeAt(event.clientX));
      else used = window_.pan((Math.abs(dx) > Math.abs(dy) ? dx : dy) * perPixel);
      if (used || event.ctrlKey) event.preventDefault();
      redraw();
    },
    { passive: false },
  );
}
