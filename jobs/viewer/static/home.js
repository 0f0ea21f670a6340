// The start page: questions with their traces, runs, libraries.

import { el } from "viewer/shared/dom.js";
import { plural, spoken } from "viewer/shared/words.js";

export function home({ traces, runs, libraries, missing }) {
  const element = el(
    "div",
    {},
    el("h1", {}, "Contents"),
    missing.map((uri) =>
      el(
        "div",
        { class: "banner" },
        `A run belongs to the library ${uri}, which is no longer there: its frames are missing.`,
      ),
    ),
    traces.length ? [el("h2", {}, "Questions"), el("div", { class: "cards" }, grouped(traces).map(question))] : null,
    runs.length
      ? [
          el("h2", {}, "Runs"),
          el(
            "div",
            { class: "cards" },
            runs.map((run) => card(`#/run/${run.key}`, run.title, `${run.folder}, ${plural(run.answers, "answer")}`)),
          ),
        ]
      : null,
    libraries.length
      ? [
          el("h2", {}, "Libraries"),
          el(
            "div",
            { class: "cards" },
            libraries.map((each) => card(`#/library/${each.key}`, each.uri, plural(each.videos, "video"))),
          ),
        ]
      : null,
  );
  return { title: "Contents", element };
}

function grouped(traces) {
  const groups = new Map();
  for (const each of traces) {
    const key = JSON.stringify([each.question, each.videos]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()];
}

function question(traces) {
  const [first] = traces;
  return el(
    "section",
    { class: "card pad" },
    el("h3", {}, el("a", { href: `#/trace/${traces.map((each) => each.key).join(",")}` }, first.question.text)),
    el(
      "p",
      { class: "quiet" },
      first.videos.length > 3 ? plural(first.videos.length, "video") : first.videos.join(", "),
    ),
    traces.map((each) =>
      el(
        "p",
        {},
        el("a", { href: `#/trace/${each.key}` }, each.agent),
        ` ${each.text ?? spoken(each.status ?? "not finished")}`,
        el("small", {}, each.name),
      ),
    ),
  );
}

const card = (href, title, below) =>
  el("a", { class: "card pad", href }, el("strong", {}, title), el("small", {}, below));
