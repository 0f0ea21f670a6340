// What a library holds in numbers, and the sources that failed: folded below its videos.

import { breakable, el } from "viewer/shared/dom.js";
import { rows } from "viewer/shared/source.js";
import { paged } from "viewer/shared/table.js";
import { amount, plural, spoken } from "viewer/shared/words.js";

export function facts(found) {
  return el(
    "details",
    { class: "fold" },
    el("summary", {}, "About this library"),
    el("p", { class: "quiet" }, breakable(found.uri)),
    el(
      "dl",
      { class: "facts" },
      numbers(found).map(([name, value, small]) =>
        el(
          "div",
          { class: "card" },
          el("dt", {}, name),
          el("dd", { class: "big" }, value),
          small ? el("dd", {}, el("small", {}, small)) : null,
        ),
      ),
    ),
  );
}

function numbers(found) {
  const added = found.added.map((each) => [
    spoken(each.stage),
    amount(each.rows),
    `by ${each.model}, of ${plural(each.videos, "video")}`,
  ]);
  return [
    ["videos", amount(found.videos), `${found.hours.toFixed(2)} hours`],
    ["frames", amount(found.frames), `compared in the space ${found.space}`],
    ["shots", amount(found.segments)],
    ["transcript lines", amount(found.speech_lines)],
    ...added,
    ["failures", amount(found.failures)],
    ["MB on disk", amount(found.stored_bytes / 1e6)],
  ];
}

/** The failures, read when they are opened; null where there are none. */
export function failures(key, found) {
  if (!found.failures) return null;
  const open = (event) => {
    if (!event.target.open || event.target.childElementCount > 1) return;
    const words = el("input", { type: "search", placeholder: "source or reason", "aria-label": "Failures: source or reason" });
    const names = ["Source", "Step", "Reason", "Attempts"];
    const find = (start) => rows(key, "failures", words.value, start);
    event.target.append(...paged("Failures", names, { find, line, filters: [words], className: "words" }));
  };
  return el(
    "details",
    { class: "fold", ontoggle: open },
    el("summary", {}, `${plural(found.failures, "source")} could not be read`),
  );
}

const line = (row) =>
  el(
    "tr",
    {},
    el("th", { scope: "row" }, breakable(row.uri)),
    [row.stage, `${row.error_class}: ${row.message}`, row.attempts].map((value) => el("td", {}, value)),
  );
