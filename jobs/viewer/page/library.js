// A library: search with frames as results, its videos, what failed.

import { copy, el } from "viewer/dom.js";
import { alone, load, picture } from "viewer/source.js";
import { amount, clock, plural } from "viewer/words.js";

const KINDS = {
  together: "pictures, speech and captions",
  frames: "pictures",
  transcript: "what is said",
  captions: "captions",
  detections: "detections, by label",
};

export async function library(key) {
  const told = await load(`libraries/${key}`);
  const { facts, videos, failures } = told;
  const hits = el("div", { class: "hits", "aria-live": "polite" });
  const element = el(
    "div",
    {},
    el("h1", {}, "Library"),
    el("p", { class: "quiet" }, facts.uri),
    alone
      ? el("p", { class: "quiet" }, "Searching needs kinodex view; here is a frame of each segment of every video.")
      : search(key, videos, hits),
    hits,
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
    table(key, videos, facts, told.most),
    failed(failures, facts.failures),
  );
  return { title: facts.uri.split("/").pop(), element, here: `#/library/${key}` };
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
    ["on disk", `${amount(facts.stored_bytes / 1e6)} MB`],
  ];
}

function search(key, videos, hits) {
  const field = (name, ...inner) => el("label", {}, el("span", { class: "quiet" }, name), ...inner);
  const form = el(
    "form",
    {
      class: "search card pad",
      role: "search",
      onsubmit: async (event) => {
        event.preventDefault();
        const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
        hits.replaceChildren(el("p", { class: "quiet" }, "Searching…"));
        try {
          const found = await load(`libraries/${key}/search?${asked}`);
          hits.replaceChildren(
            found.length
              ? el(
                  "p",
                  { class: "quiet" },
                  `${plural(found.length, "hit")}, best first; a click on a time copies the position`,
                )
              : el("p", {}, "Nothing was found."),
            el(
              "div",
              { class: "grid" },
              found.map((hit) => result(key, hit)),
            ),
          );
        } catch (error) {
          hits.replaceChildren(el("div", { class: "banner", role: "alert" }, error.message));
        }
      },
    },
    field(
      "Search",
      el("input", {
        type: "search",
        name: "text",
        placeholder: "what is to be seen, said or described",
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
    field(
      "of",
      el(
        "select",
        { name: "video" },
        el("option", { value: "" }, "all videos"),
        videos.map((row) => el("option", { value: row.video_id }, row.title)),
      ),
    ),
    field("from second", el("input", { type: "number", name: "from", min: 0, step: "any" })),
    field("to second", el("input", { type: "number", name: "to", min: 0, step: "any" })),
    el("button", { type: "submit", class: "plain strong" }, "Search"),
  );
  return form;
}

function result(key, hit) {
  const source = picture(key, hit.video_id, hit.frame_no);
  const position = `${hit.title} ${clock(hit.start_s)}`;
  const where = `#/library/${key}/video/${hit.video_id}/${hit.start_s}`;
  return el(
    "article",
    { class: "card hit" },
    el(
      "a",
      { href: where, "aria-label": `Open ${position}` },
      source ? el("img", { src: source, alt: "", loading: "lazy" }) : el("span", { class: "blank" }, "no picture"),
    ),
    el(
      "div",
      {},
      el(
        "button",
        { type: "button", class: "chip", title: `Copy ${position}`, onclick: () => copy(position) },
        clock(hit.start_s),
      ),
      el("b", {}, ` ${hit.title}`),
      el("small", {}, `${hit.source === "both" ? "several" : hit.source}, ${hit.score.toFixed(3)}`),
      hit.text ? el("p", {}, hit.text) : null,
    ),
  );
}

function table(key, videos, facts, most) {
  const filter = el("input", {
    type: "search",
    placeholder: "part of a title",
    "aria-label": "Only videos with this in their titles",
  });
  const rows = videos.map((row) => [row.title.toLowerCase(), line(key, row)]);
  filter.addEventListener("input", () =>
    rows.forEach(([title, row]) => (row.hidden = !title.includes(filter.value.toLowerCase()))),
  );
  const names = ["Video", "Length", "Frames", "Segments", "Lines", "Picture", "Codec", "State"];
  return [
    el("div", { class: "row" }, el("h2", {}, "Videos"), videos.length > 8 ? filter : null),
    facts.videos > most
      ? el("p", { class: "quiet" }, `The first ${amount(most)} of ${amount(facts.videos)}, by title.`)
      : null,
    el(
      "div",
      { class: "scroll card", tabindex: 0, "data-scrolls": true, role: "region", "aria-label": "Videos" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            names.map((name) => el("th", { scope: "col" }, name)),
          ),
        ),
        el(
          "tbody",
          {},
          rows.map(([, row]) => row),
        ),
      ),
    ),
  ];
}

function line(key, row) {
  const size = row.frames ? `${row.width_px} × ${row.height_px}` : "only text";
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("a", { href: `#/library/${key}/video/${row.video_id}` }, row.title)),
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

function failed(failures, count) {
  if (!count) return null;
  const names = ["Source", "Stage", "What", "Attempts"];
  return [
    el("h2", {}, plural(count, "failure")),
    el(
      "div",
      { class: "scroll card", tabindex: 0, "data-scrolls": true, role: "region", "aria-label": "Failures" },
      el(
        "table",
        { class: "words" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            names.map((name) => el("th", { scope: "col" }, name)),
          ),
        ),
        el(
          "tbody",
          {},
          failures.map((each) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, each.uri),
              [each.stage, `${each.error_class}: ${each.message}`, each.attempts].map((value) => el("td", {}, value)),
            ),
          ),
        ),
      ),
    ),
  ];
}
