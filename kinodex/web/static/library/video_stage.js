// The frame of a video that one is at, large, with named boxes around its detections.

import { el } from "viewer/shared/dom.js";
import { newest } from "viewer/shared/newest.js";
import { load, picture } from "viewer/shared/source.js";
import { clock } from "viewer/shared/words.js";

const COLOURS = 6;
/** Above this part of a frame's height a label would stand outside the frame. */
const LABEL = 0.08;

/** The stage as `element` with `show(at)`; `tags(rows)` gets the detections of the frame once they are there. */
export function stage(key, data, tags) {
  const { video: row } = data;
  const place = `libraries/${key}/videos/${encodeURIComponent(row.video_id)}/detections`;
  const holds = new Set(Object.values(data.detected).flat());
  const known = new Map();
  const image = el("img", {});
  const figure = el("figure", { class: "still", style: { "--shape": `${row.width_px / row.height_px}` } }, image);
  let shown = null;

  const detections = newest(
    async (number) => known.get(number) ?? load(`${place}/${number}`),
    (rows, number) => (known.set(number, rows), number === shown && boxes(rows)),
    (error) => tags([], error.message),
  );

  function boxes(rows) {
    figure.replaceChildren(image, ...rows.map((each) => box(data, each)));
    tags(rows);
  }

  function show(at) {
    const number = data.frame_nos[at];
    if (number === shown) return;
    shown = number;
    const source = picture(key, row.video_id, number);
    if (source) image.setAttribute("src", source);
    image.setAttribute("alt", `Frame at ${clock(data.times_s[at])}`);
    boxes([]);
    if (holds.has(number)) detections(number);
  }
  return { element: el("div", { class: "screen" }, figure), show };
}

function box(data, each) {
  const [left, top, right, bottom] = each.box.map((part) => part * 100);
  const place = { left: `${left}%`, top: `${top}%`, width: `${right - left}%`, height: `${bottom - top}%` };
  return el(
    "div",
    {
      class: `box ${each.box[1] < LABEL ? "inward" : ""}`,
      title: detectionWords(each),
      style: { ...place, "--colour": colourOf(data, each.label) },
    },
    el("span", {}, each.label),
  );
}

export const detectionWords = (each) =>
  `${each.label} ${each.score.toFixed(2)}${each.track_id === null ? "" : `, track ${each.track_id}`}`;

export const colourOf = (data, label) =>
  `var(--c${Math.max(0, Object.keys(data.detected).indexOf(label)) % COLOURS})`;
