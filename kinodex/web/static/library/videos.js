// The videos of a library as a grid of posters: found by words, sorted, a hundred at a time.

import { breakable, button, el, select } from "viewer/shared/dom.js";
import { newest } from "viewer/shared/newest.js";
import { posterImage } from "viewer/shared/posters.js";
import { rows } from "viewer/shared/source.js";
import { ROWS } from "viewer/shared/table.js";
import { amount, plural, roundClock } from "viewer/shared/words.js";

const ORDERS = { title: "by title", length: "longest first", newest: "newest first" };
const PAUSE_MS = 120;

/** The section with the grid; `fields` are those of the address, `facts` and `filled` promises. */
export function videos(key, fields, facts) {
  const chosen = new URLSearchParams(fields ?? "");
  const list = el("ul", { class: "posters" });
  const said = el("p", { class: "quiet", role: "status" });
  const words = el("input", { type: "search", "aria-label": "Find videos by title", placeholder: "Find by title", autocomplete: "off", value: chosen.get("words") ?? "" });
  const order = select({ "aria-label": "Order of the videos" }, Object.entries(ORDERS), chosen.get("sort"));
  const turn = (name, step) => button(name, () => move(step));
  const before = turn("← Before", -ROWS);
  const next = turn("Next →", ROWS);
  const turns = el("div", { class: "row turns", hidden: true }, before, next);
  const section = el(
    "section",
    { class: "library-videos", "aria-label": "Videos" },
    el("div", { class: "row toolbar" }, el("h2", {}, "Videos"), words, order, said),
    list,
    turns,
  );
  let start = Number(chosen.get("start") ?? 0) || 0;
  let where = "";
  let pause = 0;

  const find = newest(
    () => rows(key, "videos", words.value.trim(), start, order.value, where),
    (found) => draw(found),
    (error) => say(error.message),
  );

  function draw(found) {
    list.replaceChildren(...found.rows.map((row) => card(key, row)));
    if (!found.count) facts.then((each) => list.replaceChildren(el("li", { class: "empty" }, nothing(each, words.value))));
    const last = start + found.rows.length;
    const part = found.count > ROWS ? `${amount(start + 1)} to ${amount(last)} of ` : "";
    say(found.count ? part + plural(found.count, "video") : "");
    turns.hidden = found.count <= ROWS;
    before.disabled = start === 0;
    next.disabled = last >= found.count;
  }

  function say(text) {
    said.replaceChildren(text);
  }

  function move(step) {
    start = Math.max(0, start + step);
    keepPlace();
    section.scrollIntoView();
    find().then(() => (list.querySelector("a") ?? words).focus({ preventScroll: true }));
  }

  function again() {
    start = 0;
    keepPlace();
    return find();
  }

  /** Shows the videos alone for which a condition holds. */
  function among(condition) {
    if (condition === where) return;
    where = condition;
    start = 0;
    find();
  }

  function keepPlace() {
    const place = new URLSearchParams();
    if (words.value.trim()) place.set("words", words.value.trim());
    if (order.value !== "title") place.set("sort", order.value);
    if (start) place.set("start", start);
    const inner = String(place);
    history.replaceState(history.state, "", inner ? `#/library/${key}/videos/${encodeURIComponent(inner)}` : `#/library/${key}`);
  }

  words.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(again, PAUSE_MS);
  });
  order.addEventListener("input", again);
  return { element: section, filled: find(), among };
}

function card(key, row) {
  return el(
    "li",
    { class: "card poster-card" },
    el(
      "a",
      { href: `#/library/${key}/video/${row.video_id}`, title: row.title },
      el("span", { class: "poster-frame" }, posterImage(key, row), el("span", { class: "length" }, roundClock(row.duration_s))),
      el("bdi", { class: "poster-title" }, breakable(row.title)),
    ),
    el("p", { class: "quiet" }, row.counts.join(" · ")),
    row.decode_errors ? el("p", { class: "warn" }, "Part of it could not be read.") : null,
  );
}

function nothing(facts, words) {
  if (words.trim()) return [el("p", {}, `No title has “${words.trim()}”.`), el("p", { class: "quiet" }, "Try another word, or fewer.")];
  if (facts.failures) return [el("p", {}, "This library holds no video yet."), el("p", { class: "quiet" }, "Some sources failed: see below why.")];
  return [
    el("p", {}, "This library holds no video yet."),
    el("p", { class: "quiet" }, "Add some with ", el("code", {}, "kinodex ingest FILES --library THIS-LIBRARY"), "."),
  ];
}
