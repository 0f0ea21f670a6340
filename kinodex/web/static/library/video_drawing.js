// The drawing of a time line on a canvas: axis, filmstrip, ranges with texts, and where one is.

import { STEPS_S } from "viewer/shared/canvas.js";
import { firstFrom } from "viewer/shared/sorted.js";
import { shortClock } from "viewer/shared/words.js";

export const AXIS = 20;
export const FILM = 64;
export const OVERVIEW = 14;
const NAME = 15;
const BAR = 20;
const LABEL_BAR = 13;
const LEAST_TEXT_PX = 30;
const LETTER_PX = 6.3;

/** The rows of a time line below its filmstrip, each with its place from the top. */
export function layTracks(texts, labels, hasFilm) {
  let y = AXIS + (hasFilm ? FILM + 4 : 0);
  const rows = [];
  for (const each of texts) {
    rows.push({ ...each, y: y + NAME, height: BAR, nameY: y + 11 });
    y += NAME + BAR + 4;
  }
  for (const each of labels) {
    rows.push({ ...each, y: y + NAME, height: LABEL_BAR - 5, nameY: y + 11 });
    y += NAME + LABEL_BAR - 4;
  }
  return { rows, height: y + 8 + OVERVIEW };
}

/** Pixels of a window of `width` pixels, by time. */
export function scale(window, width) {
  const perS = width / window.length;
  return { perS, width, from: window.from, to: window.to, x: (time) => (time - window.from) * perS };
}

export function drawAxis(context, view, colours, height) {
  const least = (70 / view.width) * (view.to - view.from);
  const step = STEPS_S.find((each) => each >= least) ?? STEPS_S.at(-1);
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "left";
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    context.fillStyle = colours.grid;
    context.fillRect(view.x(time), AXIS - 5, 1, height - AXIS);
    context.fillStyle = colours.muted;
    context.fillText(shortClock(time), view.x(time) + 3, AXIS - 7);
  }
}

export function drawFilm(context, view, cells, thumbnails, colours) {
  const first = Math.max(0, firstFrom(cells, view.from, (each) => each.start_s) - 1);
  for (let at = first; at < cells.length && cells[at].start_s < view.to; at += 1) {
    const x = view.x(cells[at].start_s) + (cells[at].begins ? 2 : 0);
    const width = view.x(cells[at].end_s) - x;
    const picture = cells[at].at < 0 ? null : thumbnails.picture(cells[at].at);
    context.fillStyle = colours.grid;
    context.fillRect(x, AXIS, width, FILM);
    if (picture) cover(context, picture, x, width);
  }
}

/** Draws a picture so that it fills its cell, without stretching it. */
function cover(context, picture, x, width) {
  const size = Math.max(width / picture.width, FILM / picture.height);
  const [w, h] = [width / size, FILM / size];
  context.drawImage(picture, (picture.width - w) / 2, (picture.height - h) / 2, w, h, x, AXIS, width, FILM);
}

/** Ranges `{start_s, end_s, text?}` in the order of their starts, `longest` seconds at most. */
export function drawRanges(context, view, row, colours) {
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.muted;
  context.fillText(row.name, 1, row.nameY);
  let last = -1;
  const first = firstFrom(row.ranges, view.from - row.longest, (each) => each.start_s);
  for (let at = first; at < row.ranges.length && row.ranges[at].start_s < view.to; at += 1) {
    const each = row.ranges[at];
    if (each.end_s < view.from) continue;
    const x = Math.max(view.x(each.start_s), -2);
    const end = Math.min(view.x(each.end_s), view.width + 2);
    if (end <= last) continue; // in a pixel that is drawn already
    context.fillStyle = row.colour(colours);
    context.globalAlpha = row.alpha;
    context.fillRect(x, row.y, Math.max(end - x - 1, 1.5), row.height);
    context.globalAlpha = 1;
    last = Math.floor(end);
    if (each.text && end - x > LEAST_TEXT_PX) {
      context.fillStyle = colours.ink;
      context.fillText(each.text.slice(0, Math.floor((end - x - 8) / LETTER_PX)), x + 4, row.y + 14);
    }
  }
}

export function drawPlace(context, view, time, colours, height) {
  const x = view.x(time);
  context.fillStyle = colours.now;
  context.fillRect(x - 1, 8, 2, height - OVERVIEW - 12);
  context.beginPath();
  context.moveTo(x - 5, 2);
  context.lineTo(x + 5, 2);
  context.lineTo(x, 10);
  context.fill();
}

/** The whole video as a bar, with the window in it. */
export function drawOverview(context, window, width, height, colours, time) {
  const whole = window.end - window.start;
  const x = (at) => ((at - window.start) / whole) * width;
  context.fillStyle = colours.grid;
  context.fillRect(0, height - OVERVIEW + 4, width, 6);
  context.fillStyle = colours.muted;
  context.fillRect(x(window.from), height - OVERVIEW + 3, Math.max(x(window.to) - x(window.from), 6), 8);
  context.fillStyle = colours.now;
  context.fillRect(x(time) - 1, height - OVERVIEW + 1, 2, 12);
}
