// What is said, shown as text or described in a video, line by line; of many lines those around the present time are on the page.

import { button, el } from "viewer/shared/dom.js";
import { firstFrom } from "viewer/shared/sorted.js";
import { amount, clock, plural } from "viewer/shared/words.js";

const AT_ONCE = 200;

/** A list of ranges with texts, as `element` with `show(time)`, which marks the line of that time; null of none. */
export function lines(name, ranges, text, seek) {
  if (!ranges.length) return null;
  const list = el("ol", { class: "lines", tabindex: 0, "data-scrolls": true, "aria-label": name });
  let first = -1;
  let marked = null;

  function draw(from) {
    first = Math.min(Math.max(0, from), Math.max(0, ranges.length - AT_ONCE));
    const last = Math.min(first + AT_ONCE, ranges.length);
    list.replaceChildren(
      ...[
        first > 0 && more(`${plural(first, "line")} before`, () => draw(first - AT_ONCE)),
        ...ranges.slice(first, last).map(item),
        last < ranges.length && more(`${plural(ranges.length - last, "line")} after`, () => (draw(last), (list.scrollTop = 0))),
      ].filter(Boolean),
    );
  }

  const item = (each) =>
    el(
      "li",
      { dir: "auto" },
      button(clock(each.start_s), () => seek(each.start_s), { class: "chip" }),
      ` ${text(each)}`,
    );
  const more = (words, act) => el("li", { class: "rest" }, button(words, act));

  function show(time) {
    const next = firstFrom(ranges, time + 1e-6, (each) => each.start_s);
    let at = next - 1;
    while (at > Math.max(-1, next - 5) && ranges[at].end_s <= time) at -= 1; // lines may lie within one another
    const is = at >= 0 && at > next - 5 && ranges[at].end_s > time;
    const near = Math.max(0, at);
    if (near < first || near >= first + AT_ONCE || first < 0) draw(near - AT_ONCE / 2);
    const now = is ? list.children[at - first + (first > 0 ? 1 : 0)] : null;
    if (now === marked) return;
    marked?.classList.remove("now");
    marked = now;
    marked?.classList.add("now");
    if (marked) list.scrollTop = marked.offsetTop - list.clientHeight / 2;
  }
  draw(0);
  return { element: el("div", {}, el("h2", {}, `${name} `, el("span", { class: "quiet" }, amount(ranges.length))), list), show };
}
