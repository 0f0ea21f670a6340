// The tables that a model filled in, folded below the videos: rows with the picture of their evidence, and facets.

import { whereField } from "viewer/library/facets.js";
import { breakable, el } from "viewer/shared/dom.js";
import { load, picture } from "viewer/shared/source.js";
import { paged } from "viewer/shared/table.js";
import { clock } from "viewer/shared/words.js";

/** A fold for each extract of a library, whose rows are read when it is opened. */
export const extracts = (key, { extracts: names }) => names.map((name) => fold(key, name));

function fold(key, name) {
  async function open(event) {
    const place = event.target;
    if (!place.open || place.childElementCount > 1) return;
    const path = `libraries/${key}/extracts/${encodeURIComponent(name)}`;
    const first = await load(path);
    const where = whereField(key, "", Promise.resolve(first), "rows");
    const find = (start) => load(`${path}?${new URLSearchParams({ start, where: where.input.value.trim() })}`);
    where.input.addEventListener("change", () => where.input.dispatchEvent(new Event("input")));
    const names = ["", "Video", "When", ...first.columns];
    place.append(
      ...paged(`Table ${name}`, names, { find, line: (row) => line(key, row), filters: [where.input], className: "words" }),
      where.choices,
    );
  }
  return el("details", { class: "fold extract", ontoggle: open }, el("summary", {}, `Table ${name}`));
}

function line(key, row) {
  const href = `#/library/${key}/video/${row.video_id}/${row.start_s}`;
  const source = picture(key, row.video_id, row.frame_no);
  const at = `${clock(row.start_s)} to ${clock(row.end_s)}`;
  return el(
    "tr",
    {},
    el("td", {}, source ? el("a", { href }, el("img", { src: source, alt: `${row.title} at ${at}`, loading: "lazy", width: 120 })) : ""),
    el("th", { scope: "row" }, breakable(row.title)),
    el("td", {}, el("a", { href }, at)),
    row.values.map((value) => el("td", {}, value === null ? "" : breakable(value))),
  );
}
