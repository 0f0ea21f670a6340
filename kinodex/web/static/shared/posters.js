// Posters: one picture that stands for a video, and a drawn tile where there is none.

import { el, svg } from "viewer/shared/dom.js";
import { poster } from "viewer/shared/source.js";

/** The poster of a video of a library; `row` has its id, its count of frames and its size. */
export function posterImage(library, row) {
  const source = poster(library, row);
  if (source === null) return tile(row.frames ? "no picture" : "text only");
  const image = el("img", {
    src: source,
    alt: "",
    loading: "lazy",
    decoding: "async",
    class: row.width_px < row.height_px ? "poster upright" : "poster",
    onerror: () => image.replaceWith(tile("no picture")),
  });
  return image;
}

/** Three lines of text in place of a picture, and the reason in words. */
export const tile = (why) =>
  el(
    "span",
    { class: "poster tile" },
    svg(
      "svg",
      { viewBox: "0 0 32 18", "aria-hidden": "true" },
      svg("path", { d: "M2 3h28M2 9h22M2 15h25" }),
    ),
    why,
  );
