// A drawing with time from left to right that grows downwards.

import { svg } from "viewer/shared/dom.js";
import { shortClock } from "viewer/shared/words.js";

const GUTTER = 74;
const NARROW = 560;
export const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400];

/** An SVG that grows downwards, row by row, with time from left to right. */
export class Canvas {
  constructor(video, window, width) {
    this.videoId = video.video_id;
    this.narrow = width < NARROW;
    this.left = this.narrow ? 0 : GUTTER;
    this.width = Math.max(width, 200);
    this.right = this.width - 2;
    this.from = window ? Math.max(window[0], video.start_s) : video.start_s;
    this.to = window ? Math.min(window[1], video.start_s + video.duration_s) : video.start_s + video.duration_s;
    this.y = 0;
    this.parts = [];
  }

  x(time) {
    return this.left + ((time - this.from) / (this.to - this.from)) * (this.right - this.left);
  }

  /** True if any of `[start_s, end_s]` is in the window. */
  sees = (each) => each.end_s > this.from && each.start_s < this.to;

  within = (time) => time >= this.from && time <= this.to;

  bar(each, y, height, properties, ...inner) {
    const x = Math.max(this.x(each.start_s), this.left);
    const width = Math.max(Math.min(this.x(each.end_s), this.right) - x, 1.5);
    return svg("rect", { x, y, width, height, ...properties }, ...inner);
  }

  /** A new row, with its name at the left, or above it where there is no room. */
  row(name, height) {
    if (this.narrow) this.y += 13;
    this.parts.push(
      svg(
        "text",
        { x: 0, y: this.narrow ? this.y - 2 : this.y + Math.min(height / 2 + 4, 16), class: "row-name" },
        name,
      ),
    );
    const top = this.y;
    this.y += height + 6;
    return top;
  }

  axis() {
    const wanted = (this.to - this.from) / Math.max(2, (this.right - this.left) / 90);
    const step = STEPS_S.find((each) => each >= wanted) ?? STEPS_S.at(-1);
    const begin = Math.ceil(this.from / step) * step;
    for (let time = begin; time <= this.to; time += step) {
      const anchor = this.x(time) > this.right - 20 ? "end" : this.x(time) < this.left + 14 ? "start" : "middle";
      this.parts.push(
        svg("line", { x1: this.x(time), x2: this.x(time), y1: 16, y2: "100%", class: "grid" }),
        svg("text", { x: this.x(time), y: 11, "text-anchor": anchor, class: "tick" }, shortClock(time)),
      );
    }
    this.y = 22;
  }

  drawn(label) {
    return svg(
      "svg",
      {
        class: "timeline",
        width: this.width,
        height: this.y,
        viewBox: `0 0 ${this.width} ${this.y}`,
        role: "group",
        "aria-label": label,
      },
      this.parts,
    );
  }
}
