// The part of a video that its time line shows.

const FOLLOWED = 0.1;

/** A window of `[start, end]` in seconds, never shorter than `least` or longer than the whole. */
export class TimeWindow {
  constructor(start, end, least) {
    this.start = start;
    this.end = Math.max(end, start + 1e-3);
    this.least = Math.min(least, this.end - this.start);
    this.from = this.start;
    this.to = this.end;
  }

  get length() {
    return this.to - this.from;
  }

  get isWhole() {
    return this.length >= this.end - this.start - 1e-6;
  }

  place(from, length) {
    const within = Math.min(Math.max(length, this.least), this.end - this.start);
    this.from = Math.min(Math.max(from, this.start), this.end - within);
    this.to = this.from + within;
  }

  /** Makes the window `factor` times as long, with the time `at` where it was. */
  zoom(factor, at) {
    const length = Math.min(Math.max(this.length * factor, this.least), this.end - this.start);
    this.place(at - ((at - this.from) / this.length) * length, length);
  }

  /** Moves by seconds; false where the window is at that end already. */
  pan(by) {
    const before = this.from;
    this.place(this.from + by, this.length);
    return this.from !== before;
  }

  /** Moves, if it has to, so that a time is seen. */
  follow(time) {
    const edge = this.length * FOLLOWED;
    if (time < this.from || time > this.to) this.place(time - this.length / 2, this.length);
    else if (time > this.to - edge && this.to < this.end) this.place(time - edge, this.length);
    else if (time < this.from + edge && this.from > this.start) this.place(time + edge - this.length, this.length);
  }
}
