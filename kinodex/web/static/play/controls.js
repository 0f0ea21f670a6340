// The buttons under a player, its time line, and its keys.

import { button, el, select, svg } from "viewer/shared/dom.js";
import { clock } from "viewer/shared/words.js";

const STEP_S = 5;
const LEAP_S = 10;
const RATES = [0.5, 1, 1.5, 2, 4];
const ICONS = {
  play: "M4 2l10 6-10 6z",
  pause: "M4 2h3v12H4zM9 2h3v12H9z",
  before: "M3 2h2v12H3zM14 2v12L6 8z",
  next: "M11 2h2v12h-2zM2 2v12l8-6z",
  loop: "M3 7a5 5 0 0 1 9-2V3h2v5H9V6h2a3 3 0 0 0-6 1zM13 9a5 5 0 0 1-9 2v2H2V8h5v2H5a3 3 0 0 0 6-1z",
  sound: "M2 6h3l4-4v12l-4-4H2zM11 5a4 4 0 0 1 0 6",
  mute: "M2 6h3l4-4v12l-4-4H2zM11 6l4 4M15 6l-4 4",
  full: "M2 2h5v2H4v3H2zM9 2h5v5h-2V4H9zM2 9h2v3h3v2H2zM12 9h2v5H9v-2h3z",
};

const icon = (name) =>
  svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true", class: `glyph ${name}` }, svg("path", { d: ICONS[name] }));

function signed(name, label, key, onclick) {
  const element = button(icon(name), onclick);
  const call = (text) => {
    element.setAttribute("aria-label", text);
    element.title = key ? `${text} (${key})` : text;
  };
  call(label);
  return { element, call, draw: (other) => element.replaceChildren(icon(other)) };
}

/**
 * The bar of a player. `act` has what it can do: `toggle`, `seek(time)`, `frame(step)`, `loop`, `mute`, `rate(value)`,
 * `captions`, `full`. `draw(state)` shows `{time, paused, range, loops, muted, captions}`; `keys(event)` does what a key
 * means, and returns true if it means something.
 */
export function controls(row, act) {
  const end = row.start_s + row.duration_s;
  const play = signed("play", "Play", "space", act.toggle);
  const before = signed("before", "Stored frame before", "comma", () => act.frame(-1));
  const next = signed("next", "Next stored frame", "full stop", () => act.frame(1));
  const loop = signed("loop", "Repeat", "r", act.loop);
  const mute = signed("sound", "Mute", "m", act.mute);
  const full = signed("full", "Full screen", "f", act.full);
  const captions = button("Captions", act.captions, { title: "Show the transcript on the picture (c)" });
  const slider = el("input", {
    type: "range",
    min: row.start_s,
    max: end,
    step: "any",
    "aria-label": "Time",
    oninput: (event) => act.seek(Number(event.target.value)),
  });
  const band = el("span", { class: "band", hidden: true });
  const shown = el("output", { class: "time" });
  const speed = { "aria-label": "Speed", onchange: (event) => act.rate(Number(event.target.value)) };
  const rate = select(speed, RATES.map((each) => [each, `${each}×`]), 1);

  function draw({ time, paused, range, loops, muted, shows, speaks }) {
    slider.value = time;
    slider.setAttribute("aria-valuetext", `${clock(time)} of ${clock(end)}`);
    shown.value = `${clock(time)} / ${clock(end)}`;
    play.draw(paused ? "play" : "pause");
    play.call(paused ? "Play" : "Pause");
    loop.element.setAttribute("aria-pressed", String(loops));
    loop.call(range ? `Repeat ${clock(range.start_s)} to ${clock(range.end_s)}` : "Repeat");
    band.hidden = !range;
    if (range) {
      const part = (value) => `${(100 * (Math.min(value, end) - row.start_s)) / row.duration_s}%`;
      band.style.setProperty("left", part(range.start_s));
      band.style.setProperty("right", `calc(100% - ${part(range.end_s)})`);
    }
    mute.element.hidden = muted === null;
    mute.draw(muted ? "mute" : "sound");
    mute.call(muted ? "Sound on" : "Mute");
    captions.hidden = !speaks;
    captions.setAttribute("aria-pressed", String(shows));
  }

  const now = () => Number(slider.value);
  const meanings = {
    " ": act.toggle,
    k: act.toggle,
    ArrowLeft: () => act.seek(now() - STEP_S),
    ArrowRight: () => act.seek(now() + STEP_S),
    j: () => act.seek(now() - LEAP_S),
    l: () => act.seek(now() + LEAP_S),
    ",": () => act.frame(-1),
    ".": () => act.frame(1),
    Home: () => act.seek(row.start_s),
    r: act.loop,
    m: act.mute,
    c: act.captions,
    f: act.full,
  };

  function keys(event) {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in meanings)) return false;
    if (target.closest("select, textarea, input:not([type=range])")) return false;
    if (event.key === " " && target.closest("button, a, summary")) return false; // it presses what has the focus
    event.preventDefault();
    event.stopPropagation();
    meanings[event.key]();
    return true;
  }

  const element = el(
    "div",
    { class: "bar" },
    el("div", { class: "time-line" }, band, slider),
    el(
      "div",
      { class: "buttons" },
      before.element,
      play.element,
      next.element,
      shown,
      loop.element,
      mute.element,
      captions,
      rate,
      full.element,
    ),
  );
  return { element, draw, keys };
}
