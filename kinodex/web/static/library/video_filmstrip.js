// The filmstrip of a time line: a picture a shot, several of a long one, and one for several that are too short to see.

import { nearest } from "viewer/shared/sorted.js";

const LEAST_PX = 44;
const KEPT = 600;
const AT_ONCE = 4;

/**
 * Cells `{start_s, end_s, at, begins}` that cover the shots, `at` being a frame's position in `times`. `perS` are pixels
 * a second, rounded to steps so that cells stay the same while one zooms a little, and `width` those of a picture.
 */
export function filmCells(shots, times, perS, width) {
  const rounded = 2 ** (Math.round(Math.log2(perS) * 2) / 2);
  const cells = [];
  let open = null;
  for (const shot of shots) {
    const length = shot.end_s - shot.start_s;
    const px = length * rounded;
    if (!open && px >= LEAST_PX) {
      cells.push(...tiles(shot, Math.max(1, Math.round(px / width)), times));
      continue;
    }
    open ??= { start_s: shot.start_s, longest: 0, middle: 0 };
    if (length >= open.longest) Object.assign(open, { longest: length, middle: (shot.start_s + shot.end_s) / 2 });
    if ((shot.end_s - open.start_s) * rounded < LEAST_PX) continue;
    cells.push(cell(open.start_s, shot.end_s, open.middle, times, true));
    open = null;
  }
  if (open) cells.push(cell(open.start_s, shots.at(-1).end_s, open.middle, times, true));
  return cells;
}

function tiles(shot, count, times) {
  const step = (shot.end_s - shot.start_s) / count;
  return Array.from({ length: count }, (_, n) => {
    const start = shot.start_s + n * step;
    return cell(start, start + step, start + step / 2, times, n === 0);
  });
}

const cell = (start_s, end_s, middle, times, begins) => ({ start_s, end_s, begins, at: nearest(times, middle) });

/** Small pictures of frames, loaded a few at a time, those that were drawn last first. */
export class Thumbnails {
  /** `address` gives the picture of a frame by its position, or null; `loaded` is called when one has come. */
  constructor(address, height, loaded) {
    this.address = address;
    this.height = height;
    this.loaded = loaded;
    this.kept = new Map();
    this.wanted = [];
    this.loading = new Set();
  }

  /** Begins a drawing: what earlier ones wanted and did not get is no longer loaded. */
  begin() {
    this.wanted = [];
  }

  /** The picture of a frame, or null while it is not there. */
  picture(at) {
    const found = this.kept.get(at);
    if (found === undefined && !this.loading.has(at)) this.wanted.push(at);
    return found ?? null;
  }

  /** Ends a drawing: loads what it wanted. */
  end() {
    while (this.loading.size < AT_ONCE && this.wanted.length) this.load(this.wanted.shift());
  }

  async load(at) {
    this.loading.add(at);
    this.kept.set(at, await this.bitmap(this.address(at)));
    this.loading.delete(at);
    for (const [old, bitmap] of this.kept) {
      if (this.kept.size <= KEPT) break;
      bitmap?.close();
      this.kept.delete(old);
    }
    this.loaded();
    this.end();
  }

  async bitmap(address) {
    if (address === null) return null;
    const image = new Image();
    image.src = address;
    try {
      await image.decode();
      return await createImageBitmap(image, { resizeHeight: this.height, resizeQuality: "medium" });
    } catch {
      return null; // a frame that cannot be read stays an empty cell
    }
  }
}
