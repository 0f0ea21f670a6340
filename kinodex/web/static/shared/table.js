// Tables, whole or page by page.

import { button, el } from "viewer/shared/dom.js";
import { amount } from "viewer/shared/words.js";

/** The most rows on the page at once; the server sends as many at a time. */
export const ROWS = 100;

const head = (names) => el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name))));

/** A table that scrolls sideways where it is too wide, by keyboard too. */
export const table = (label, names, body, { frame = "card", className } = {}) =>
  el(
    "div",
    { class: `scroll ${frame}`, tabindex: 0, "data-scrolls": true, role: "group", "aria-label": label },
    el("table", { class: className }, head(names), body),
  );

/**
 * A table of the rows from the `start`-th on that `find(start)` returns as `{count, rows}`; `filters` are fields beside
 * the heading that `find` reads.
 */
export function paged(title, names, { find, line, filters, className }) {
  const body = el("tbody");
  const count = el("span", { class: "quiet", role: "status" });
  let start = 0;
  let draws = 0;
  const turn = (name, move) => button(name, () => ((start += move), draw()));
  const before = turn("← Before", -ROWS);
  const next = turn("Next →", ROWS);
  const turns = el("div", { class: "row" }, before, next);
  async function draw() {
    const mine = (draws += 1);
    let found;
    try {
      found = await find(start);
    } catch (error) {
      found = { count: 0, rows: [], wrong: error.message };
    }
    if (mine !== draws) return;
    body.replaceChildren(...found.rows.map(line));
    if (!found.count && !found.wrong) body.append(el("tr", {}, el("td", { class: "none", colspan: names.length }, "None")));
    const last = Math.min(start + ROWS, found.count);
    count.replaceChildren(found.count > ROWS ? `${amount(start + 1)} to ${amount(last)} of ` : "", amount(found.count));
    if (found.wrong) count.replaceChildren(found.wrong);
    before.disabled = start === 0;
    next.disabled = last === found.count;
    turns.hidden = found.count <= ROWS;
  }
  filters.forEach((each) => each.addEventListener("input", () => ((start = 0), draw())));
  draw();
  return [
    el("div", { class: "row" }, el("h2", {}, title), filters, count),
    table(title, names, body, { className }),
    turns,
  ];
}
