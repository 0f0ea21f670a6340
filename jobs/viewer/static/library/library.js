// A library: ask, search, its videos as pictures; its failures and facts stand below, folded.

import { facts as factsOf, failures } from "viewer/library/facts.js";
import { search } from "viewer/library/search.js";
import { videos } from "viewer/library/videos.js";
import { breakable, el } from "viewer/shared/dom.js";
import { alone, load } from "viewer/shared/source.js";
import { amount, nameOf, plural } from "viewer/shared/words.js";

/** The page of a library; of an address `what` is "search" or "videos", and `inner` the fields of that. */
export async function library(key, what, inner, there) {
  const facts = load(`libraries/${key}`);
  const shown = videos(key, what === "videos" ? inner : undefined, facts); // asks at the same time
  const found = await facts;
  const searching = alone ? null : search(key, what === "search" ? inner : undefined, found);
  const name = nameOf(found.uri);
  const element = el(
    "div",
    { class: "library" },
    el(
      "div",
      { class: "head" },
      el("div", {}, el("h1", {}, breakable(name)), el("p", { class: "quiet" }, summary(found))),
      entries(key, there),
    ),
    alone
      ? el("p", { class: "quiet" }, "A search needs kinodex view; this file has one frame of each segment of every video.")
      : searching.elements,
    shown.element,
    failures(key, found),
    factsOf(found),
  );
  const filled = Promise.all([searching?.filled, shown.filled]);
  return { title: name, element, filled, here: `#/library/${key}` };
}

const summary = (facts) =>
  [plural(facts.videos, "video"), length(facts.hours), facts.frames ? plural(facts.frames, "frame") : null]
    .filter(Boolean)
    .join(" · ");

const length = (hours) => (hours >= 1 ? `${amount(Number(hours.toFixed(1)))} hours` : plural(Math.round(hours * 60), "minute"));

/** The way to ask, where a server answers questions; the search stands right below. */
const entries = (key, there) =>
  there?.serve ? el("div", { class: "entries" }, el("a", { class: "plain strong", href: `#/ask/${key}` }, "Ask a question")) : null;
