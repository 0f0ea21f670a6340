// The first page: libraries, questions with their traces, and runs.

import { box } from "viewer/home/box.js";
import { mosaic } from "viewer/home/mosaic.js";
import { breakable, el } from "viewer/shared/dom.js";
import { posterImage } from "viewer/shared/posters.js";
import { alone } from "viewer/shared/source.js";
import { nameOf, plural, spoken } from "viewer/shared/words.js";

export function home(there) {
  const { traces, runs, libraries, missing } = there;
  const [title, ...others] = [
    ["Libraries", libraries, (each, level) => library(each, there.serve, level)],
    ["Questions", grouped(traces), question],
    ["Runs", runs, run],
  ].filter(([, all]) => all.length);
  const element = el(
    "div",
    { class: "home" },
    el("h1", {}, title?.[0] ?? "Libraries"),
    libraries.length && !alone ? box(there) : null,
    missing.map((uri) =>
      el(
        "div",
        { class: "banner" },
        `A run belongs to the library ${uri}, which is no longer there: its frames are missing.`,
      ),
    ),
    title ? el("div", { class: "cards" }, title[1].map((each) => title[2](each, 2))) : el("div", { class: "empty" }, el("p", {}, "Nothing to show.")),
    others.map(([name, all, card]) => [el("h2", {}, name), el("div", { class: "cards" }, all.map((each) => card(each, 3)))]),
  );
  return { title: title?.[0] ?? "Libraries", element };
}

/** A card of a library; `level` is that of its heading among those of the page. */
function library(each, serve, level) {
  return el(
    "section",
    { class: "card home-card" },
    mosaic(each.key),
    el("h3", { "aria-level": level }, el("a", { href: `#/library/${each.key}` }, breakable(nameOf(each.uri)))),
    el("p", { class: "quiet" }, each.videos ? plural(each.videos, "video") : "no video yet"),
    el("small", {}, breakable(each.uri)),
    alone
      ? null
      : el(
          "div",
          { class: "entries" },
          serve ? el("a", { class: "plain strong", href: `#/ask/${each.key}` }, "Ask") : null,
          el("a", { class: "plain", href: `#/library/${each.key}/search/${encodeURIComponent("text=")}` }, "Search"),
        ),
  );
}

function grouped(traces) {
  const groups = new Map();
  for (const each of traces) {
    const key = JSON.stringify([each.question, each.videos]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()];
}

function question(traces, level) {
  const [first] = traces;
  return el(
    "section",
    { class: "card home-card" },
    first.poster ? el("span", { class: "poster-frame" }, posterImage(first.poster.library, first.poster)) : null,
    el("h3", { "aria-level": level }, el("a", { href: `#/trace/${traces.map((each) => each.key).join(",")}` }, first.question.text)),
    el(
      "p",
      { class: "quiet" },
      first.videos.length > 3
        ? plural(first.videos.length, "video")
        : first.videos.map((title, at) => [at ? ", " : "", el("bdi", {}, breakable(title))]),
    ),
    traces.map((each) =>
      el(
        "p",
        {},
        el("a", { href: `#/trace/${each.key}` }, each.agent),
        ` ${each.text ?? spoken(each.status ?? "not finished")}`,
        el("small", {}, breakable(each.name)),
      ),
    ),
  );
}

const run = (each) =>
  el(
    "a",
    { class: "card home-card", href: `#/run/${each.key}` },
    el("strong", {}, each.title),
    el("small", {}, `${each.folder}, ${plural(each.answers, "answer")}`),
  );
