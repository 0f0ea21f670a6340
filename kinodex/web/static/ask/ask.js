// The page where a person asks: the form, how to connect a language model where there is none, and the questions before.

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
  const ways = there.serve?.libraries.find((each) => String(each.key) === key)?.ways ?? [];
  const { rows } = there.serve ? await load(`questions?library=${key}`) : { rows: [] };
  const before = question ? again(question, rows) : {};
  const element = el(
    "div",
    {},
    el("p", { class: "quiet kicker" }, el("a", { href: `#/library/${key}` }, nameOf(library.uri))),
    el("h1", {}, "Ask about these videos"),
    there.libraries.length > 1 ? libraries(key, there.libraries) : null,
    there.serve ? form(key, there.serve, before) : el("p", { class: "how" }, "Start kinodex serve with a library."),
    there.serve?.has_language === false ? connect(ways) : null,
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

/** The three ways to a language model. */
const connect = (ways) =>
  el(
    "section",
    { class: "card pad ask" },
    el("h2", {}, "Connect a model"),
    el("p", {}, "An answer in words needs a language model, and there is none yet. Each of these starts this server again with one:"),
    el("ol", { class: "ways-to-a-model" }, ways.map(way)),
  );

const way = ({ name, about, command }) =>
  el(
    "li",
    {},
    el("b", {}, name),
    el("p", {}, about),
    el("pre", { tabindex: 0, "data-scrolls": true }, command),
    button("Copy", () => copy(command)),
  );
