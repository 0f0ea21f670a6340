// A library: ask, search, its videos as pictures; its failures and facts stand below, folded.

import { extracts } from "viewer/library/extracts.js";
import { facts as factsOf, failures } from "viewer/library/facts.js";
import { searchAddress } from "viewer/library/hits.js";
import { search } from "viewer/library/search.js";
import { videos } from "viewer/library/videos.js";
import { momentsAddress } from "viewer/moments/address.js";
import { moments } from "viewer/moments/moments.js";
import { breakable, el } from "viewer/shared/dom.js";
import { alone, load } from "viewer/shared/source.js";
import { amount, nameOf, plural } from "viewer/shared/words.js";

/** The page of a library; of an address `what` is "search", "moments" or "videos", and `inner` the fields of that. */
export async function library(key, what, inner, there) {
  const facts = load(`libraries/${key}`);
  const shown = videos(key, what === "videos" ? inner : undefined, facts); // asks at the same time
  const found = await facts;
  const searching = alone
    ? null
    : what === "moments"
      ? moments(key, inner, there)
      : search(key, what === "search" ? inner : undefined, found, there, shown.among);
  const name = nameOf(found.uri);
  const element = el(
    "div",
    { class: "library" },
    el(
      "div",
      { class: "head" },
      el("div", {}, el("h1", {}, breakable(name)), el("p", { class: "quiet" }, summary(found))),
    ),
    alone
      ? el("p", { class: "quiet" }, "A search needs kinodex serve; this file has one frame of each segment of every video.")
      : [ways(key, what === "moments"), searching.elements],
    shown.element,
    alone ? null : extracts(key, found),
    failures(key, found),
    factsOf(found),
  );
  const filled = Promise.all([searching?.filled, shown.filled]);
  return { title: name, element, filled, here: `#/library/${key}` };
}

/** The two ways to find something; the words that stand in one form go along to the other. */
function ways(key, isMoments) {
  const way = (name, title, address, is) =>
    el(
      "a",
      {
        href: address({}),
        title,
        "aria-current": is ? "page" : null,
        onclick(event) {
          const text = document.querySelector("form.search [name=text]")?.value.trim();
          if (text && !is) event.currentTarget.setAttribute("href", address({ text }));
        },
      },
      name,
    );
  const search = (fields) => (fields.text ? searchAddress(key, fields) : `#/library/${key}`);
  return el(
    "nav",
    { class: "ways", "aria-label": "Ways to find something" },
    way("Search", "Pictures and lines that fit your words", search, !isMoments),
    way("Find moments", "When does it happen: from when to when, or not at all", (fields) => momentsAddress(key, fields), isMoments),
  );
}

const summary = (facts) =>
  [plural(facts.videos, "video"), length(facts.hours), facts.frames ? plural(facts.frames, "frame") : null]
    .filter(Boolean)
    .join(" · ");

const length = (hours) => (hours >= 1 ? `${amount(Number(hours.toFixed(1)))} hours` : plural(Math.round(hours * 60), "minute"));
