// A library: a search, its counts, its videos and its failures.

import { breakable, el } from "viewer/shared/dom.js";
import { search } from "viewer/library/search.js";
import { alone, load, rows } from "viewer/shared/source.js";
import { paged } from "viewer/shared/table.js";
import { amount, clock, plural } from "viewer/shared/words.js";

export async function library(key, fields) {
  const facts = await load(`libraries/${key}`);
  const searching = alone ? null : search(key, fields, facts);
  const element = el(
    "div",
    {},
    el("h1", {}, "Library"),
    el("p", { class: "quiet" }, facts.uri),
    alone
      ? el("p", { class: "quiet" }, "A search needs kinodex view; this file has one frame of each segment of every video.")
      : searching.elements,
    el(
      "dl",
      { class: "facts" },
      numbers(facts).map(([name, value, small]) =>
        el(
          "div",
          { class: "card" },
          el("dt", {}, name),
          el("dd", { class: "big" }, value),
          small ? el("dd", {}, el("small", {}, small)) : null,
        ),
      ),
    ),
    tables(key, facts),
  );
  return { title: facts.uri.split("/").pop(), element, filled: searching?.filled, here: `#/library/${key}` };
}

function numbers(facts) {
  const added = facts.added.map((each) => [
    each.stage,
    amount(each.rows),
    `by ${each.model}, of ${plural(each.videos, "video")}`,
  ]);
  return [
    ["videos", amount(facts.videos), `${facts.hours.toFixed(2)} hours`],
    ["frames", amount(facts.frames), `space ${facts.space}`],
    ["segments", amount(facts.segments)],
    ["transcript lines", amount(facts.transcript_lines)],
    ...added,
    ["failures", amount(facts.failures)],
    ["MB on disk", amount(facts.stored_bytes / 1e6)],
  ];
}

function tables(key, facts) {
  const videos = ["Video", "Length", "Frames", "Segments", "Lines", "Picture", "Codec", "State"];
  const failures = ["Source", "Stage", "What", "Attempts"];
  const listed = (what, title, names, placeholder, line, className) => {
    const words = el("input", { type: "search", placeholder, "aria-label": `${title}: ${placeholder}` });
    const find = (start) => rows(key, what, words.value, start);
    return paged(title, names, { find, line, filters: [words], className });
  };
  return [
    listed("videos", "Videos", videos, "part of a title", (row) => video(key, row)),
    facts.failures ? listed("failures", "Failures", failures, "source or reason", failure, "words") : null,
  ];
}

function video(key, row) {
  const size = row.frames ? `${row.width_px} × ${row.height_px}` : "only text";
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("a", { href: `#/library/${key}/video/${row.video_id}` }, breakable(row.title))),
    [
      clock(row.duration_s),
      amount(row.frames),
      amount(row.segments),
      amount(row.transcript_lines),
      size,
      row.codec,
      row.decode_errors ? `${row.state}, ${plural(row.decode_errors, "decode error")}` : row.state,
    ].map((value) => el("td", {}, value)),
  );
}

function failure(row) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, breakable(row.uri)),
    [row.stage, `${row.error_class}: ${row.message}`, row.attempts].map((value) => el("td", {}, value)),
  );
}
