// The form in which a person asks: question, options, agent, videos and limits.

import { explained } from "viewer/ask/agents.js";
import { limits, readLimits } from "viewer/ask/limits.js";
import { keepAsked } from "viewer/ask/again.js";
import { videosField } from "viewer/ask/videos_field.js";
import { whereField } from "viewer/library/facets.js";
import { el, select } from "viewer/shared/dom.js";
import { send } from "viewer/shared/source.js";
import { term } from "viewer/shared/terms.js";

const NO_LANGUAGE =
  "Without a language model the one is chosen that fits pictures and lines best. Leave it empty for the moments that fit the question, without words.";

/** The form for a library, filled with what was `asked` before, if that is given. */
export function form(key, serve, asked = {}) {
  const question = el(
    "textarea",
    { name: "question", rows: 2, required: true, maxlength: 20000, placeholder: "What does she put on the table?" },
    asked.question ?? "",
  );
  question.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    element.requestSubmit();
  });
  const options = el(
    "textarea",
    { name: "options", rows: 4, placeholder: "a red bowl\na blue cup" },
    (asked.options ?? []).join("\n"),
  );
  const videos = videosField(key, asked.videos);
  const where = whereField(key, asked.where);
  const agent = agents(serve, asked.agent);
  const button = el("button", { type: "submit", class: "plain strong big-button" }, "Ask");
  const problem = el("div", { class: "banner", role: "alert", hidden: true });

  async function submit(event) {
    event.preventDefault();
    const body = {
      question: question.value.trim(),
      options: lines(options.value),
      agent: agent.select.value,
      videos: videos.chosen(),
      where: where.input.value.trim() || null,
      ...readLimits(element),
    };
    await start(key, body, button, problem);
  }

  const element = el(
    "form",
    { class: "card pad ask", onsubmit: submit },
    field("Your question", question, "Enter asks; Shift and Enter begin a new line."),
    el(
      "details",
      { open: options.value !== "" || !serve.has_language },
      el("summary", {}, "Answers to choose from"),
      field("One answer a line", options, serve.has_language ? "Leave it empty for an answer in its own words." : NO_LANGUAGE),
    ),
    el("div", { class: "ask-row" }, agent.element, videos.element),
    where.label,
    where.choices,
    limits(asked),
    el("div", { class: "row" }, button),
    problem,
  );
  return element;
}

/** Sends a question and goes to its page; says what is wrong with it otherwise. */
export async function start(key, body, button, problem) {
  button.disabled = true;
  problem.hidden = true;
  try {
    const begun = await send(`libraries/${key}/questions`, body);
    keepAsked(begun.key, body);
    location.hash = `#/ask/${key}/${begun.key}`;
  } catch (error) {
    problem.replaceChildren(error.message);
    problem.hidden = false;
  } finally {
    button.disabled = false;
  }
}

export function field(name, input, hint) {
  return el("label", { class: "field" }, el("b", {}, name), input, hint ? el("small", {}, hint) : null);
}

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** A choice of agents with the words about the one that is chosen. */
function agents(serve, chosen = serve.agent) {
  const about = el("small", { id: "about-agent" });
  const names = serve.agents.map((each) => [each.name, each.name]);
  const agent = select({ name: "agent", id: "agent", "aria-describedby": "about-agent", oninput: () => say() }, names, chosen);
  function say() {
    const { plain, summary } = explained(serve.agents.find((each) => each.name === agent.value));
    about.replaceChildren(plain, summary ? el("span", { class: "quiet source" }, ` (${summary})`) : "");
  }
  say();
  const element = el(
    "div",
    { class: "field" },
    el("b", {}, el("label", { for: "agent" }, "Method"), " ", term("agent", "?")),
    agent,
    about,
  );
  return { element, select: agent };
}
