// The page where a person asks: the form, and the questions asked before; or how to give a model, and a search.

import { asked } from "viewer/ask/again.js";
import { earlier } from "viewer/ask/earlier.js";
import { form } from "viewer/ask/form.js";
import { live } from "viewer/ask/live.js";
import { button, copy, el, select } from "viewer/shared/dom.js";
import { load } from "viewer/shared/source.js";
import { nameOf } from "viewer/shared/words.js";

/** The view of `#/ask/LIBRARY`, `#/ask/LIBRARY/QUESTION` and `#/ask/LIBRARY/QUESTION/again`. */
export async function ask(key, question, what, there) {
  const library = there.libraries.find((each) => String(each.key) === key);
  if (!library) throw new Error(`There is no library ${key} here.`);
  if (question && what !== "again") return live(key, question, there);
  const offered = there.serve?.libraries.find((each) => String(each.key) === key) ?? there.serve;
  const { rows } = there.serve ? await load(`questions?library=${key}`) : { rows: [] };
  const before = question ? again(question, rows) : {};
  const element = el(
    "div",
    {},
    el("p", { class: "quiet kicker" }, el("a", { href: `#/library/${key}` }, nameOf(library.uri))),
    el("h1", {}, "Ask about these videos"),
    there.libraries.length > 1 ? libraries(key, there.libraries) : null,
    offered?.can_ask ? form(key, there.serve, before) : cannot(key, offered),
    earlier(key, rows),
  );
  return { title: "Ask", element, here: "#/ask/0", ready: () => element.querySelector("textarea")?.focus() };
}

/** A choice of the library that is asked about. */
function libraries(key, all) {
  const go = (event) => (location.hash = `#/ask/${event.target.value}`);
  const choice = select({ onchange: go }, all.map((each) => [each.key, nameOf(each.uri)]), key);
  return el("label", { class: "row" }, "Library", choice);
}

/** What a question held: as this tab sent it, else what the list of questions says. */
function again(question, rows) {
  const sent = asked(question);
  if (sent) return { ...sent, videos: sent.videos.map((id) => [id, id]) };
  const row = rows.find((each) => each.key === question);
  return row ? { question: row.question, agent: row.agent } : {};
}

/** The three ways to a model, and a search, which needs none. */
function cannot(key, offered) {
  const words = el("input", { type: "search", name: "text", required: true, placeholder: "what is seen or said", autocomplete: "off" });
  const go = (event) => {
    event.preventDefault();
    location.hash = `#/library/${key}/search/${encodeURIComponent(new URLSearchParams({ text: words.value }))}`;
  };
  return el(
    "section",
    { class: "card pad ask" },
    el("p", {}, el("b", {}, "Questions need a model, and there is none for this library yet.")),
    offered?.ways?.length
      ? [
          el("p", {}, "There are three ways to one. Each is a command that starts this server again:"),
          el("ol", { class: "ways-to-a-model" }, offered.ways.map(way)),
        ]
      : el("p", { class: "how" }, offered?.how ?? "Start kinodex serve with a library."),
    el("p", {}, "A search works without one:"),
    el(
      "form",
      { class: "row", role: "search", onsubmit: go },
      el("label", { class: "field" }, el("b", {}, "Search"), words),
      el("button", { type: "submit", class: "plain strong" }, "Search"),
    ),
  );
}

const way = ({ name, about, command }) =>
  el(
    "li",
    {},
    el("b", {}, name),
    el("p", {}, about),
    el("pre", { tabindex: 0, "data-scrolls": true }, command),
    button("Copy", () => copy(command)),
  );
