// Search of a library as one types, by a picture, or like a frame. The address holds the fields of the form.

import { askButton, boxField } from "viewer/home/box.js";
import { examples } from "viewer/home/examples.js";
import { whereField } from "viewer/library/facets.js";
import { hitGroups, searchAddress } from "viewer/library/hits.js";
import { heldPicture, pictureButton, searchPicture } from "viewer/library/picture_search.js";
import { titleField } from "viewer/library/title_field.js";
import { button, el, labelled, select } from "viewer/shared/dom.js";
import { newest } from "viewer/shared/newest.js";
import { load, picture } from "viewer/shared/source.js";
import { seconds } from "viewer/shared/words.js";

const TIME = "(\\d+:){0,2}\\d+([.]\\d+)?";
/** A pause in typing after which a search begins. */
const PAUSE_MS = 120;
/** Moments that a search shows. */
const HITS = 36;

/**
 * The form and the place for its hits, as `elements`; `fields` are those of the address, and `filled` is a promise of
 * their hits. `among(where)` gets the condition that videos have to fulfil.
 */
export function search(key, fields, { space, searched, places, extracts = [] }, there, among) {
  const hits = el("div", { class: "hits" });
  const said = el("p", { class: "quiet", role: "status" });
  const subject = el("div", { class: "subject" });
  const tries = examples(key);
  const chosen = Object.fromEntries(new URLSearchParams(fields));
  let pause = 0;

  const find = newest(
    (asked) => ask(key, asked),
    (found, asked) => {
      said.replaceChildren();
      draw(found, asked);
    },
    (error) => {
      said.replaceChildren();
      hits.replaceChildren(el("div", { class: "banner", role: "alert" }, error.message));
    },
  );

  const draw = (found, asked) =>
    hits.replaceChildren(
      ...hitGroups(key, found, asked.text ?? "", asked, there?.serve?.looks, (judged) => draw(judged, asked))
        .flat()
        .filter(Boolean),
    );

  /** Searches for what the form holds, if that is anything; `push` makes a step that the back button goes back. */
  function start(push = false) {
    clearTimeout(pause);
    const asked = read(form, chosen);
    const place = Object.keys(asked).length ? searchAddress(key, asked) : `#/library/${key}`;
    const first = !location.hash.includes("/search/") && location.hash !== place;
    if (location.hash !== place) history[push || first ? "pushState" : "replaceState"](null, "", place);
    drawSubject(asked);
    among(asked.where ?? "");
    tries.hidden = Boolean(asked.text || asked.like || asked.picture);
    if (!tries.hidden) {
      find.forget();
      said.replaceChildren();
      hits.replaceChildren();
      return null;
    }
    said.replaceChildren(hits.childElementCount ? "" : "Searching…");
    return find(asked);
  }

  function type() {
    clearTimeout(pause);
    if (form.elements.text.value) delete chosen.like;
    pause = setTimeout(start, PAUSE_MS);
  }

  function by(name, value) {
    for (const each of ["like", "picture"]) delete chosen[each];
    if (value !== null) chosen[name] = value;
    if (name === "like") form.elements.text.value = "";
    return start(true);
  }

  function drawSubject(asked) {
    const by_ = asked.like ? "like" : asked.picture ? "picture" : null;
    subject.replaceChildren(...(by_ ? shownSubject(key, by_, asked[by_], () => by(by_, null)) : []));
  }

  const [words, label] = boxField(there);
  const where = whereField(key, chosen.where);
  const form = el("form", {
    class: "search card pad",
    role: "search",
    onsubmit: (event) => (event.preventDefault(), start(true)),
    oninput: (event) => (event.target.name === "text" ? type() : null),
    onchange: (event) => event.target.name && event.target.name !== "text" && event.target.checkValidity() && start(),
  });
  const [ask_, problem] = askButton(words, () => key, there);
  form.append(
    label,
    el("button", { type: "submit", class: "plain strong" }, "Search"),
    ...(ask_ ? [ask_] : []),
    ...pictureButton(form, (name) => by("picture", name)),
    filters(key, chosen, where.label, [...Object.entries(places), ...extracts.map((name) => [name, `table ${name}`])]),
    where.choices,
    ...(problem ? [problem] : []),
  );
  for (const [name, value] of Object.entries(chosen)) if (form.elements[name]) form.elements[name].value = value;
  const filled = fields ? start() : null;
  const other = searched !== space && el("p", { class: "quiet" }, `Pictures are searched in the space ${searched}.`);
  return { elements: [form, tries, other, subject, said, hits], filled };
}

/** Where to search: folded on a phone, unless something is chosen there. */
function filters(key, chosen, where, places) {
  const isSet = ["in", "video", "from", "to", "where"].some((name) => chosen[name]);
  return el(
    "details",
    { class: "filters", open: isSet || !matchMedia("(max-width: 640px)").matches },
    el("summary", {}, "Where to search"),
    el(
      "div",
      { class: "row" },
      labelled("in", select({ name: "in" }, places)),
      labelled("of video", ...titleField(key)),
      labelled("from", time("from")),
      labelled("to", time("to")),
      where,
    ),
  );
}

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

/** The fields that are filled, as the address holds them. */
function read(form, chosen) {
  const filled = [...new FormData(form)].filter(([name, value]) => value !== "" && !(name === "in" && value === "all"));
  const { like, picture: name } = chosen;
  return { ...Object.fromEntries(filled), ...(like ? { like } : {}), ...(name ? { picture: name } : {}) };
}

/** Asks the server, which knows the fields by the names of its requests. `like` is VIDEO@SECONDS/FRAME here. */
async function ask(key, { picture: name, text, video, from, to, like, ...asked }) {
  const given = { query: text, videos: video, start_s: from && seconds(from), end_s: to && seconds(to), like: like?.split("/")[0] };
  const filled = Object.entries(given).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams({ ...asked, k: HITS, ...Object.fromEntries(filled) });
  return name ? searchPicture(key, name, query) : load(`libraries/${key}/search?${query}`);
}

/** The frame or the picture that is searched by, and a way back to words. */
function shownSubject(key, by, value, remove) {
  const [place, frameNo] = value.split("/");
  const videoId = place.split("@")[0];
  const file = by === "picture" ? heldPicture(value) : null;
  const source = by === "like" ? picture(key, videoId, frameNo) : null;
  const image = el("img", { alt: by === "like" ? `Frame ${frameNo}` : "The picture that is searched by", src: source });
  if (file) {
    const reader = new FileReader();
    reader.addEventListener("load", () => image.setAttribute("src", reader.result));
    reader.readAsDataURL(file);
  }
  return [
    source || file ? image : null,
    el("span", {}, by === "like" ? "Frames like this one" : "What looks like this picture, and fits words beside it"),
    button("Back to words", remove),
  ].filter(Boolean);
}
