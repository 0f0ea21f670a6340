// Search of a library, with frames as results. The address holds the fields of the form.

import { breakable, copier, el } from "viewer/shared/dom.js";
import { load, picture, rows } from "viewer/shared/source.js";
import { amount, clock, plural, seconds } from "viewer/shared/words.js";

const KINDS = {
  together: "all but detections",
  frames: "pictures",
  transcript: "transcript",
  captions: "captions",
  detections: "detections",
};
const TIME = "(\\d+:){0,2}\\d+([.]\\d+)?";

/**
 * The form and the place for its hits, as `elements`; `fields` are those of the address, and `filled` is a promise of
 * their hits.
 */
export function search(key, fields, { space, searched }) {
  const hits = el("div", { class: "hits", "aria-live": "polite" });
  const form = el(
    "form",
    { class: "search card pad", role: "search", onsubmit: (event) => (event.preventDefault(), find()) },
    field(
      "Search",
      el("input", {
        type: "search",
        name: "text",
        placeholder: "what is seen, said or described",
        autocomplete: "off",
        required: true,
      }),
    ),
    field(
      "in",
      el(
        "select",
        { name: "kind" },
        Object.entries(KINDS).map(([value, name]) => el("option", { value }, name)),
      ),
    ),
    field("of video", ...videos(key)),
    field("from", time("from")),
    field("to", time("to")),
    el("button", { type: "submit", class: "plain strong" }, "Search"),
  );
  for (const [name, value] of new URLSearchParams(fields)) if (form.elements[name]) form.elements[name].value = value;

  async function find() {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    history.replaceState(null, "", `#/library/${key}/search/${encodeURIComponent(query)}`);
    for (const name of ["from", "to"]) if (query.has(name)) query.set(name, seconds(query.get(name)));
    hits.replaceChildren(el("p", { class: "quiet" }, "Searching…"));
    try {
      hits.replaceChildren(...results(key, await load(`libraries/${key}/search?${query}`)));
    } catch (error) {
      hits.replaceChildren(el("div", { class: "banner", role: "alert" }, error.message));
    }
  }
  const filled = fields ? find() : null;
  const other = searched !== space && el("p", { class: "quiet" }, `Pictures are searched in the space ${searched}.`);
  return { elements: [form, other, hits], filled };
}

const field = (name, ...inner) => el("label", {}, el("span", { class: "quiet" }, name), ...inner);

const time = (name) =>
  el("input", {
    type: "text",
    name,
    inputmode: "numeric",
    placeholder: "m:ss",
    pattern: TIME,
    title: "A time such as 75, 1:15 or 1:01:15.5",
    autocomplete: "off",
  });

/** A field for a title, with those that begin to fit. */
function videos(key) {
  const list = el("datalist", { id: "titles" });
  const fill = async (event) => {
    const found = await rows(key, "videos", event.target.value, 0);
    list.replaceChildren(...found.rows.map((row) => el("option", { value: row.title })));
  };
  const attributes = { type: "search", name: "video", list: "titles", placeholder: "all", autocomplete: "off" };
  return [el("input", { ...attributes, oninput: fill, onfocus: fill }), list];
}

function results(key, found) {
  if (!found.length) return [el("p", {}, "No hits.")];
  return [
    el("p", { class: "quiet" }, `${plural(found.length, "hit")}, best first; a click on a time copies the position`),
    el(
      "div",
      { class: "grid" },
      found.map((hit) => result(key, hit)),
    ),
  ];
}

function result(key, hit) {
  const source = picture(key, hit.video_id, hit.frame_no);
  const position = `${hit.title} ${clock(hit.start_s)}`;
  return el(
    "article",
    { class: "card hit" },
    el(
      "a",
      { href: `#/library/${key}/video/${hit.video_id}/${hit.start_s}`, "aria-label": `Open ${position}` },
      source ? el("img", { src: source, alt: "", loading: "lazy" }) : el("span", { class: "blank" }, "no picture"),
    ),
    el(
      "div",
      {},
      el("b", {}, breakable(hit.title)),
      copier(position, clock(hit.start_s)),
      el("small", {}, `${hit.source === "both" ? "several" : hit.source}, ${amount(hit.score)}`),
      hit.text ? el("p", { title: hit.text }, hit.text) : null,
    ),
  );
}
