// Pictures of frames that are looked at, each above its place on the time line, as many as fit beside each other.

import { svg } from "viewer/shared/dom.js";
import { enlarge } from "viewer/shared/frames.js";
import { picture } from "viewer/shared/source.js";
import { clock } from "viewer/shared/words.js";

const WIDTH = 84;
const NARROW = 62;
const GAP = 4;
const LANES = 3;

/** Draws a row of `frames` of the canvas's video; `name` is that of the row. A click shows one at full size. */
export function pictures(canvas, name, frames, library, titles) {
  const here = frames
    .filter((each) => each.video_id === canvas.videoId && canvas.within(each.time_s) && picture(library, each.video_id, each.frame_no))
    .toSorted((one, other) => one.time_s - other.time_s);
  if (!here.length) return;
  const width = canvas.narrow ? NARROW : WIDTH;
  const height = (width * 9) / 16;
  const ends = [];
  const placed = here.flatMap((frame, at) => {
    const x = Math.min(Math.max(canvas.x(frame.time_s) - width / 2, canvas.left), canvas.right - width);
    const free = ends.findIndex((end) => end + GAP <= x);
    const lane = free < 0 ? ends.length : free;
    if (lane >= LANES) return [];
    ends[lane] = x + width;
    return [{ frame, at, x, lane }];
  });
  const top = canvas.row(name, ends.length * (height + GAP) + 2 * GAP) + GAP;
  const foot = top + ends.length * (height + GAP) + GAP;
  const y = (lane) => top + (ends.length - 1 - lane) * (height + GAP);
  const stems = placed.map(({ frame, x, lane }) =>
    svg("line", { x1: x + width / 2, x2: canvas.x(frame.time_s), y1: y(lane) + height, y2: foot, class: "seen-stem" }),
  );
  const show = (at) => enlarge(here, at, library, titles);
  const images = placed.map(({ frame, at, x, lane }) =>
    svg(
      "g",
      {
        class: "seen-frame",
        role: "button",
        tabindex: 0,
        "aria-label": `Frame at ${clock(frame.time_s)}`,
        "data-focus": `seen ${frame.frame_no}`,
        onclick: () => show(at),
        onkeydown: (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), show(at)),
      },
      svg("image", { x, y: y(lane), width, height, href: picture(library, frame.video_id, frame.frame_no), preserveAspectRatio: "xMidYMid slice" }),
      svg("rect", { x, y: y(lane), width, height }),
    ),
  );
  canvas.parts.push(stems, images);
}
