// Four posters of a library side by side, the newest videos first.

import { el } from "viewer/shared/dom.js";
import { posterImage, tile } from "viewer/shared/posters.js";
import { rows } from "viewer/shared/source.js";

const MOST = 4;

/** The place of the posters, which come when they are there; a library without pictures says so. */
export function mosaic(key) {
  const element = el("div", { class: "mosaic", "aria-hidden": "true" });
  fill(element, key);
  return element;
}

async function fill(element, key) {
  let found;
  try {
    found = await rows(key, "videos", "", 0, "newest");
  } catch (error) {
    element.classList.add("one");
    element.replaceChildren(tile(error.message));
    return;
  }
  const seen = found.rows.filter((row) => row.frames);
  const shown = seen.length < MOST ? seen.slice(0, 1) : seen.slice(0, MOST);
  element.classList.toggle("one", shown.length < MOST);
  element.replaceChildren(
    ...(shown.length ? shown.map((row) => posterImage(key, row)) : [tile(found.count ? "text only" : "no video yet")]),
  );
}
