// Searches to begin with: everyday scenes that the frames of a library fit best.

import { searchAddress } from "viewer/library/hits.js";
import { el } from "viewer/shared/dom.js";
import { load } from "viewer/shared/source.js";

/** The place of the examples, which come once they are computed; it stays empty where there are none. */
export function examples(key) {
  const element = el("div", { class: "examples" });
  fill(element, key);
  return element;
}

async function fill(element, key) {
  const found = await load(`libraries/${key}/examples`);
  if (!found.length) return;
  element.append(
    el("span", { class: "quiet" }, "For example"),
    ...found.map((text) => el("a", { href: searchAddress(key, { text }) }, text)),
  );
}
