// One question: its search while it goes on, then its answer and a field for the next question.

import { follow, seldom } from "viewer/ask/events.js";
import { followUp } from "viewer/ask/follow_up.js";
import { liveTree } from "viewer/ask/live_tree.js";
import { roundLog } from "viewer/ask/round_log.js";
import { stateLine } from "viewer/ask/state_line.js";
import { el, tell } from "viewer/shared/dom.js";
import { load, send } from "viewer/shared/source.js";
import { answer } from "viewer/trace/answer.js";
import { options } from "viewer/trace/traces.js";

const PAUSE_MS = 350;
const LONG = 160;

export async function live(key, question) {
  const { rows } = await load(`questions?library=${key}`);
  const row = rows.find((each) => each.key === question) ?? null;
  const isRunning = ["running", "stopping"].includes(row?.state); // then its events say when there is a trace
  const first = isRunning ? null : await traceOf(question);
  if (!row && !first) throw new Error(`There is no question ${question} here. It may have been asked of another library.`);
  const text = first?.trace.question.text ?? row.question;
  const tree = liveTree();
  const log = roundLog();
  const line = stateLine(stop);
  const places = { options: el("div"), answer: el("div", { class: "answer-place" }), after: el("div") };

  function draw(data) {
    places.options.replaceChildren(options(data.trace.question, [data]));
    tree.show(data);
    log.show(data.trace);
    if (data.trace.answer) finish(data);
  }

  /** Shows the answer; what was drawn live stays below it. */
  function finish(data) {
    if (places.answer.childElementCount) return;
    const titles = Object.fromEntries(data.trace.videos.map((video) => [video.video_id, video.title]));
    line.end();
    tree.look([]);
    places.answer.replaceChildren(answer(data, titles));
    places.after.replaceChildren(
      followUp(key, question, data.trace.agent),
      el("p", {}, el("a", { href: `#/trace/${question}` }, "Every round, frame, call and reply of this question")),
    );
    if (data.trace.steps.some((step) => step.queries.length) && data.library !== null)
      load(`traces/${question}/curves`).then(tree.curves, (error) => tell(`No curves: ${error.message}`));
  }

  async function fail(failure) {
    line.end();
    const trace = first ?? (await traceOf(question).catch(() => null)); // where the server has gone there is none to link to
    if (trace) draw(trace);
    tree.look([]);
    places.answer.replaceChildren(failed(key, question, failure, Boolean(trace)));
  }

  const refresh = seldom(async () => {
    const data = await traceOf(question);
    if (data) draw(data);
  }, PAUSE_MS);

  async function stop() {
    try {
      await send(`questions/${question}/stop`, {});
    } catch (error) {
      tell(error.message);
    }
  }

  /** The end, from the list of questions, where the events cannot say it. */
  async function lookAgain() {
    try {
      const known = (await load(`questions?library=${key}`)).rows.find((each) => each.key === question);
      if (known?.state === "failed") fail(known);
      else await refresh();
    } catch (error) {
      fail({ error: error.message, tried: "The list of questions was asked for, after the events had ended.", remedy: "Start the server again, then reload this page." });
    }
  }

  function begin() {
    if (first) draw(first);
    if (first?.trace.answer) return;
    if (row?.state === "failed") return fail(row);
    line.begin(row?.asked_at);
    follow(question, {
      progress: (facts) => (line.show(facts), tree.look(facts.looking), refresh()),
      state: ({ state, ...failure }) => {
        if (state === "stopping") line.stopping();
        if (state === "failed") fail(failure);
        if (state === "done") refresh();
      },
      waiting: line.waiting,
      gone: lookAgain,
    });
  }

  const before = row?.follow_up ? rows.find((each) => each.key === row.follow_up) : null;
  const element = el(
    "div",
    { class: "live" },
    el(
      "p",
      { class: "quiet kicker" },
      el("a", { href: `#/ask/${key}` }, "All questions"),
      row?.follow_up
        ? [" · after ", el("a", { href: `#/ask/${key}/${row.follow_up}` }, `“${before?.question ?? row.follow_up}”`)]
        : null,
    ),
    el("h1", { class: text.length > LONG ? "long" : null }, text),
    places.options,
    el(
      "div",
      { class: "halves" },
      el("div", { class: "stack" }, line.element, places.answer, places.after),
      el("div", { class: "stack" }, tree.element, log.element), // the log grows, so nothing stands below it
    ),
  );
  return { title: text, element, here: "#/ask/0", ready: begin };
}

/** In place of an answer: the words of what failed, what was tried until then, and the one thing to do. */
function failed(key, question, { error, tried, remedy }, hasTrace) {
  return el(
    "section",
    { class: "card pad failed", role: "alert" },
    el("h2", {}, "There is no answer"),
    el("blockquote", { dir: "auto" }, error),
    tried ? el("p", {}, el("b", {}, "Tried: "), tried) : null,
    el("p", {}, el("b", {}, "What to do: "), remedy || "Ask it again, or change the question."),
    el(
      "div",
      { class: "row" },
      el("a", { class: "plain strong", href: `#/ask/${key}/${question}/again` }, "Change the question, or ask it again"),
      hasTrace ? el("a", { class: "plain", href: `#/trace/${question}` }, "Every call until then") : null,
    ),
  );
}

/** The trace so far; null before it begins. */
async function traceOf(question) {
  try {
    return await load(`traces/${question}`);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}
