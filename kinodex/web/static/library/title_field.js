// A field for the title of a video, with those that begin to fit.

import { el } from "viewer/shared/dom.js";
import { rows } from "viewer/shared/source.js";

/** The field, named "video", and its list, which has an `id` of its own on the page. */
export function titleField(key, id = "titles") {
  const list = el("datalist", { id });
  const fill = async (event) => {
    const found = await rows(key, "videos", event.target.value, 0);
    list.replaceChildren(...found.rows.map((row) => el("option", { value: row.title })));
  };
  const attributes = { type: "search", name: "video", list: id, placeholder: "all", autocomplete: "off" };
  return [el("input", { ...attributes, oninput: fill, onfocus: fill }), list];
}
