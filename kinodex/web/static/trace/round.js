// One round: frames, memory, steps with tools, the decision, and every call with its prompt and reply.

import { calls } from "viewer/trace/calls.js";
import { el, listed } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";
import { strip } from "viewer/shared/frames.js";
import { clock, plural, span, spoken } from "viewer/shared/words.js";

const NOTES_AT_FIRST = 8;

export function round(data, step, titles) {
  const { library, trace } = data;
  return [
    el("h2", {}, step.round === 0 ? "Before round 1" : `Round ${step.round}`),
    el("p", {}, step.sentence.replace(/^Round \d+: it/, "It")),
    story(trace, step),
    frames(step, library, titles),
    memory(step, library, titles),
    step.acted.map((each) => action(each, titles)),
    step.assessed.map((each) =>
      el(
        "div",
        { class: "action" },
        el("p", {}, el("b", {}, `Confidence ${each.confidence} of ${each.most}`)),
        each.thought ? el("p", { class: "quiet" }, each.thought) : null,
      ),
    ),
    calls(step.calls, library, titles),
  ]
    .flat()
    .filter(Boolean);
}

/** The numbers of the segments, and the next one. */
function story(trace, step) {
  const named = (number) => {
    const node = trace.nodes.find((each) => each.number === number);
    return node ? `${number} (${span(node)})` : `${number}`;
  };
  const sentences = step.opened.map((each) => `Opened ${named(each.parent)} into ${each.children.length}. `);
  if (step.queries.length) sentences.push(`Found ${plural(step.queries.length, "new query", "new queries")}. `);
  const { decided } = step;
  if (decided)
    sentences.push(
      decided.action === "explore"
        ? `Goes on with ${named(decided.segment)}.`
        : decided.action === "answer"
          ? "Answers."
          : `Ends: ${spoken(decided.action)}.`,
    );
  if (decided?.forced) sentences.push(" No further round was allowed.");
  return sentences.length ? el("p", { class: "quiet" }, sentences) : null;
}

function frames(step, library, titles) {
  const expanded = step.opened.flatMap((each) => each.frames);
  const anchored = new Set(step.opened.flatMap((each) => each.anchor_frame_nos));
  const list = expanded.length
    ? expanded
    : [...step.shown].sort((a, b) => a.video_id.localeCompare(b.video_id) || a.time_s - b.time_s);
  if (!list.length) return null;
  const mark = (frame) => (anchored.has(frame.frame_no) ? { class: "anchored", sign: "★ ", words: "an anchor" } : {});
  return [
    el(
      "h3",
      {},
      term("frame", expanded.length ? "New frames" : "Frames shown"),
      " ",
      el("span", { class: "quiet" }, list.length, anchored.size ? [", ★ ", term("anchor", "anchors")] : null),
    ),
    strip(list, library, titles, mark),
  ];
}

function memory(step, library, titles) {
  if (!step.memory.length && !step.evicted.length) return null;
  const key = (frame) => `${frame.video_id}/${frame.frame_no}`;
  const fresh = new Set(step.added.map(key));
  return [
    el("h3", {}, term("memory", "Memory"), " ", el("span", { class: "quiet" }, `${step.memory.length} frames`)),
    strip(step.memory, library, titles, (frame) => (fresh.has(key(frame)) ? { class: "fresh", words: "new" } : {})),
    step.evicted.length
      ? [
          el("h3", {}, term("evicted", "Evicted"), " ", el("span", { class: "quiet" }, step.evicted.length)),
          strip(step.evicted, library, titles, () => ({ class: "evicted", words: "evicted" })),
        ]
      : null,
  ].flat();
}

function action(each, titles) {
  const used = Object.entries(each.arguments).filter(([, value]) => value !== null);
  const list = el("ul", { class: "notes" });
  const notes = (each.notes ?? []).map((one) => note(one, titles));
  const more = listed(list, notes, NOTES_AT_FIRST, (count) => `${plural(count, "note")} more`);
  return el(
    "div",
    { class: "action" },
    el(
      "p",
      {},
      el("b", {}, spoken(each.action)),
      " ",
      el(
        "code",
        {},
        used.map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", "),
      ),
    ),
    each.thought ? el("p", { class: "quiet" }, each.thought) : null,
    each.problem ? el("p", { class: "warn" }, each.problem) : null,
    notes.length ? list : null,
    more,
  );
}

function note(each, titles) {
  const sure = each.confidence === null || each.confidence === undefined ? "" : ` (${each.confidence.toFixed(2)})`;
  const where = Object.keys(titles).length > 1 ? `${titles[each.video_id] ?? ""} ` : "";
  const when = each.end_s - each.start_s > 1.5 ? span(each) : clock(each.start_s);
  return el("li", {}, el("b", {}, `${where}${when}`), ` ${each.source}: ${each.text}${sure}`);
}
