// A further question about an answer.

import { start } from "viewer/ask/form.js";
import { el } from "viewer/shared/dom.js";

/** The form below the answer to `question`; the same agent answers, about the same videos, with what it saw before. */
export function followUp(key, question, agent) {
  const input = el("input", { type: "text", name: "question", required: true, maxlength: 20000, autocomplete: "off", "aria-describedby": "follow-up-about" });
  const button = el("button", { type: "submit", class: "plain strong" }, "Ask");
  const problem = el("div", { class: "banner", role: "alert", hidden: true });
  const submit = (event) => {
    event.preventDefault();
    start(key, { question: input.value.trim(), agent, follow_up: question }, button, problem);
  };
  return el(
    "form",
    { class: "card pad follow-up", onsubmit: submit },
    el("label", { class: "field" }, el("b", {}, "Ask more about this"), input),
    button,
    el("small", { id: "follow-up-about" }, "It knows this question and its answer, and looks at the same videos."),
    problem,
  );
}
