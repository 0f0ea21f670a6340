// The one box: words to search for, a question to ask, or a picture to find; the key "/" goes to it. Below it stand
// examples of what can be found.

import { start } from "viewer/ask/form.js";
import { examples } from "viewer/home/examples.js";
import { searchAddress } from "viewer/library/hits.js";
import { pictureButton } from "viewer/library/picture_search.js";
import { button, el, labelled, select } from "viewer/shared/dom.js";
import { nameOf } from "viewer/shared/words.js";

/** The field for the words, which "/" goes to, and its label; they name questions where there is a server for them. */
export function boxField(there) {
  const canAsk = Boolean(there?.serve);
  const field = el("input", {
    type: "search",
    name: "text",
    "data-box": true,
    placeholder: canAsk ? "what is seen or said, or a question" : "what is seen or said",
    title: "The key / goes here",
    autocomplete: "off",
  });
  return [field, labelled(canAsk ? "Search or ask" : "Search for", field)];
}

/** Goes to the box of a page, if it has one. */
export function goToBox() {
  const found = document.querySelector("[data-box]");
  found?.focus();
  found?.select();
  return Boolean(found);
}

/**
 * A button that asks the words of `field` of the library `key()`, and the place where a refusal is said; where nothing
 * stands there, or no model has words for an answer, it leads to the page of asking.
 */
export function askButton(field, key, there) {
  if (!there?.serve) return [];
  const problem = el("div", { class: "banner", role: "alert", hidden: true });
  const ask = there.serve.has_language
    ? button("Ask", press, { class: "plain strong", title: "Have a model look for the answer" })
    : button("Ask, or connect a model", press, { title: "An answer in words needs a language model; a search does not" });
  function press() {
    const question = field.value.trim();
    if (question && there.serve.has_language) start(key(), { question, agent: there.serve.agent }, ask, problem);
    else location.hash = `#/ask/${key()}`;
  }
  return [ask, problem];
}

/** The box of the first page, with a choice of the library where there are several, and examples for the chosen one. */
export function box({ libraries, ...there }) {
  const [field, label] = boxField(there);
  const tries = el("div", {}, examples(libraries[0].key));
  const onchange = () => tries.replaceChildren(examples(key()));
  const choice = select({ name: "library", onchange }, libraries.map((each) => [each.key, nameOf(each.uri)]));
  const key = () => choice.value;
  const go = (fields) => (location.hash = searchAddress(key(), fields));
  const form = el("form", {
    class: "search card pad one-box",
    role: "search",
    onsubmit: (event) => (event.preventDefault(), field.value.trim() ? go({ text: field.value.trim() }) : field.focus()),
  });
  const [ask, problem] = askButton(field, key, there);
  form.append(
    label,
    ...(libraries.length > 1 ? [labelled("in", choice)] : []),
    el("button", { type: "submit", class: "plain strong" }, "Search"),
    ...(ask ? [ask] : []),
    ...pictureButton(form, (name) => go({ picture: name })),
    ...(problem ? [problem] : []),
  );
  return [form, tries];
}
