// The rounds that are over, one sentence each, read out as they come.

import { el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";
import { letter } from "viewer/shared/words.js";

/** The list as `element`, and `show(trace)`, which adds what is new in it. */
export function roundLog() {
  const list = el("ol", { class: "path" });
  const element = el(
    "section",
    { class: "card pad way", hidden: true },
    el("h2", {}, "What it did ", el("span", { class: "quiet" }, "in ", term("round", "rounds"))),
    el("div", { role: "log", "aria-live": "polite", "aria-label": "Rounds so far" }, list),
  );
  let said = 0;
  return {
    element,
    show({ steps, ending, answer: final }) {
      const over = final ? steps : steps.slice(0, -1); // the sentence of the present round still changes
      list.append(...over.slice(said).map((step) => el("li", {}, step.sentence)));
      said = over.length;
      if (ending && !list.querySelector(".end")) list.append(el("li", { class: "end" }, `${ending} ${spokenAnswer(final)}`));
      element.hidden = !list.childElementCount;
    },
  };
}

const spokenAnswer = ({ text, option }) =>
  text === null ? "" : `The answer: ${option === null ? "" : `${letter(option)}. `}${text}`;
