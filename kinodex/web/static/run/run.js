// A run of `kinodex eval`: standings, and every question with all answers; each answer opens its trace.

import { el, select } from "viewer/shared/dom.js";
import { load } from "viewer/shared/source.js";
import { ROWS, paged, table } from "viewer/shared/table.js";
import { amount, letter, plural, spoken } from "viewer/shared/words.js";

const COSTS = { frames: "Frames", calls: "Calls", tokens: "Tokens", cost: "Cost", seconds: "Seconds" };
const NOT_COMPLETE = "Not complete: some contenders have not answered every question yet.";

const report = (key) =>
  el("a", { href: `/reports/${key}/report.html`, target: "_blank", rel: "noopener" }, "The whole report, with its plots");

export async function run(key) {
  const data = await load(`runs/${key}`);
  const by = data.scoring === "judge" ? [3, 2] : [100, 1];
  const models = Object.entries(data.models).map((each) => each.join(" ")).join(", ");
  const element = el(
    "div",
    {},
    data.complete ? null : el("div", { class: "banner", role: "note" }, NOT_COMPLETE),
    el("h1", {}, data.title),
    el("p", { class: "quiet" }, `${plural(data.asked, "question")} about ${plural(data.videos, "video")} of ${data.library}; ${models}`),
    data.has_page ? el("p", {}, report(key)) : null,
    el("h2", {}, "Contenders"),
    standings(data, by),
    questions(key, data),
  );
  return { title: data.title, element, here: `#/run/${key}` };
}

function standings(data, [most, digits]) {
  const costs = Object.keys(COSTS).filter((name) => data.standings.some((each) => each.costs[name]));
  const points = (value) => (value === null || value === undefined ? "–" : (value * most).toFixed(digits));
  const evidence = data.standings.some((each) => each.shown) ? ["cited", "shown"] : [];
  const names = [
    "Contender",
    most === 100 ? "Accuracy (%)" : "Score",
    "95 % interval",
    "No answer",
    ...evidence.map((name) => `Evidence ${name} (%)`),
    ...costs.map((name) => COSTS[name]),
  ];
  const line = (each) =>
    el(
      "tr",
      { class: each.is_control ? "control" : "" },
      el("th", { scope: "row" }, each.name),
      el("td", {}, share(each.accuracy, most, points)),
      el("td", {}, each.accuracy.low === null ? "–" : `${points(each.accuracy.low)} to ${points(each.accuracy.high)}`),
      el("td", {}, amount(each.unanswered)),
      evidence.map((name) => el("td", {}, share(each[name], 100, (value) => (value * 100).toFixed(1)))),
      costs.map((name) => cost(each, name)),
    );
  return table("Contenders", names, el("tbody", {}, data.standings.map(line)));
}

// A share of all: as counts where there are fewer than five questions, as the report has it.
function share(estimate, most, points) {
  if (!estimate?.questions) return "–";
  const few = most === 100 && estimate.questions < 5;
  return few ? `${Math.round(estimate.mean * estimate.questions)} of ${estimate.questions}` : points(estimate.mean);
}

function cost(standing, name) {
  if (standing.imported) return el("td", { class: "quiet" }, "not known");
  const value = standing.costs[name] ?? 0;
  return el("td", {}, name === "seconds" ? value.toFixed(1) : amount(value));
}

function questions(key, data) {
  const words = el("input", {
    type: "search",
    placeholder: "words or a video",
    "aria-label": "Only questions with these words",
  });
  const wrong = data.contenders.map((name, at) => [at, `${name} is wrong`]);
  const which = select({ "aria-label": "Which questions" }, [["", "all questions"], ["differ", "contenders differ"], ...wrong]);
  const groups = [...new Set(data.questions.flatMap(kindsOf))].sort();
  const every = [["", "every category"], ...groups.map((name) => [name, name])];
  const group = select({ "aria-label": "Which category" }, every);
  const find = (start) => {
    const found = data.questions
      .map((each, at) => [each, at])
      .filter(([each]) => wanted(each, words.value, which.value, group.value));
    return { count: found.length, rows: found.slice(start, start + ROWS) };
  };
  const filters = groups.length ? [words, which, group] : [words, which];
  const shown = ([each, at]) => line(key, data, each, at);
  return paged("Questions", ["Question", ...data.contenders], { find, line: shown, filters, className: "questions" });
}

/** The categories of a question: "type: counting". */
const kindsOf = ({ groups }) =>
  Object.entries(groups).flatMap(([name, values]) => values.map((value) => `${spoken(name)}: ${value}`));

function wanted(each, words, which, group) {
  const text = `${each.question.text} ${each.video} ${each.item_id}`.toLowerCase();
  const scores = each.answers.map((answer) => answer?.score ?? null);
  const shown =
    which === "" ||
    (which === "differ" ? new Set(scores).size > 1 : scores[Number(which)] !== null && scores[Number(which)] < 1);
  return shown && text.includes(words.toLowerCase()) && (group === "" || kindsOf(each).includes(group));
}

function line(key, data, each, at) {
  const traced = each.answers
    .map((answer, number) => (answer?.has_trace ? `r${key}-${number}-${at}` : null))
    .filter(Boolean);
  const truth =
    each.truth.option !== null
      ? `${letter(each.truth.option)}. ${each.question.options[each.truth.option]}`
      : each.truth.text;
  return el(
    "tr",
    {},
    el(
      "th",
      { scope: "row" },
      traced.length
        ? el(
            "a",
            { href: `#/trace/${traced.slice(0, 4).join(",")}`, title: "Open the first traces side by side" },
            each.question.text,
          )
        : each.question.text,
      el("small", {}, [each.video, truth ? `true: ${truth}` : null].filter(Boolean).join(" · ")),
    ),
    each.answers.map((answer, number) => cell(`r${key}-${number}-${at}`, data.contenders[number], each, answer)),
  );
}

function cell(key, contender, { question }, answer) {
  if (answer === null) return el("td", { class: "quiet" }, "–");
  const reply =
    answer.option === null
      ? spoken(answer.error ? "error" : (answer.text ?? answer.status ?? "none"))
      : letter(answer.option);
  const marks = { null: ["", ""], 1: ["good", "✓"], 0: ["bad", "✗"] }[answer.score] ?? ["", answer.score.toFixed(2)];
  const words = `${contender}: ${answer.error || answer.text || spoken(answer.status ?? "none")}`;
  const inner = el(
    "span",
    { class: `tag ${marks[0]}`, title: words },
    `${marks[1]} ${answer.option === null && question.options.length ? "none" : reply.slice(0, 24)}`,
  );
  return el(
    "td",
    {},
    answer.has_trace ? el("a", { href: `#/trace/${key}`, "aria-label": `Trace of ${words}` }, inner) : inner,
  );
}
