// The one box: words to search for, a question to ask, or a picture to find; the key "/" goes to it.

import { start } from "viewer/ask/form.js";
import { searchAddress } from "viewer/library/hits.js";
import { pictureButton } from "viewer/library/picture_search.js";
import { button, el, labelled, select } from "viewer/shared/dom.js";
import { nameOf } from "viewer/shared/words.js";

/** The field for the words, which "/" goes to. */
export const boxField = () =>
  el("input", {
    type: "search",
    name: "text",
    "data-box": true,
    placeholder: "what is seen or said, or a question",
    title: "The key / goes here",
    autocomplete: "off",
  });

/** Goes to the box of a page, if it has one. */
export function goToBox() {
  const found = document.querySelector("[data-box]");
  found?.focus();
  found?.select();
  return Boolean(found);
}

/**
 * A button that asks the words of `field` of the library `key()`, and the place where a refusal is said; where nothing
 * can be asked, or nothing stands there, it leads to the page of asking.
 */
export function askButton(field, key, there) {
  if (!there?.serve) return [];
  const problem = el("div", { class: "banner", role: "alert", hidden: true });
  const ask = button("Ask", press, { class: "plain strong", title: "Have a model look for the answer" });
  function press() {
    const offered = there.serve.libraries.find((each) => String(each.key) === String(key())) ?? there.serve;
    const question = field.value.trim();
    if (question && offered.can_ask) start(key(), { question, agent: there.serve.agent }, ask, problem);
    else location.hash = `#/ask/${key()}`;
  }
  return [ask, problem];
}

/** The box of the first page, with a choice of the library where there are several. */
export function box({ libraries, ...there }) {
  const field = boxField();
  const choice = select({ name: "library" }, libraries.map((each) => [each.key, nameOf(each.uri)]));
  const key = () => choice.value;
  const go = (fields) => (location.hash = searchAddress(key(), fields));
  const form = el("form", {
    class: "search card pad one-box",
    role: "search",
    onsubmit: (event) => (event.preventDefault(), field.value.trim() ? go({ text: field.value.trim() }) : field.focus()),
  });
  const [ask, problem] = askButton(field, key, there);
  form.append(
    labelled("Search or ask", field),
    ...(libraries.length > 1 ? [labelled("in", choice)] : []),
    el("button", { type: "submit", class: "plain strong" }, "Search"),
    ...(ask ? [ask] : []),
    ...pictureButton(form, (name) => go({ picture: name })),
    ...(problem ? [problem] : []),
  );
  return form;
}
