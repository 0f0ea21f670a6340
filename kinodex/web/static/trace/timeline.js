// The video's time line: matches of the queries, shots, frames shown, the tree, and the evidence of the answer.

import { Canvas } from "viewer/shared/canvas.js";
import { button, el, select, svg } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";
import { legend } from "viewer/trace/legend.js";
import { selected, tree } from "viewer/trace/tree.js";
import { amount, clock, span } from "viewer/shared/words.js";

const CURVE = 64;

/** The time line of the video that `state` is about; `act` holds its width in px, what clicks do, and may draw a row. */
export function timeline(data, state, scores, act) {
  const { trace } = data;
  const video = trace.videos.find((each) => each.video_id === state.video) ?? trace.videos[0];
  if (!video) return el("p", { class: "quiet" }, "No video was searched.");
  const canvas = new Canvas(video, state.window, act.width);
  const step = trace.steps[state.at];
  const here = (each) => each.video_id === video.video_id;
  canvas.axis();
  act.pictures?.(canvas);
  if (step) {
    matches(canvas, data, state, step, here);
    shown(canvas, trace, state.at, here);
    tree(canvas, trace, state, scores[state.at] ?? new Map(), here, act);
    looked(canvas, trace, state.at, here);
  }
  spans(canvas, "evidence", (trace.answer?.evidence ?? []).filter(here), "evidence-span");
  spans(canvas, "truth", (data.truth?.evidence ?? []).filter(here), "truth-span");
  return el(
    "div",
    {},
    heading(data, state, video, act),
    canvas.drawn(`Time line of ${video.title}`),
    legend(data, state, video.video_id),
    selected(trace.nodes.filter(here), state, scores, video.title, act),
    queries(trace, state, act),
  );
}

function heading(data, state, video, act) {
  const { videos } = data.trace;
  const picked = { "aria-label": "Video", onchange: (event) => act.show(event.target.value) };
  const picker = select(picked, videos.map((each) => [each.video_id, each.title]), video.video_id);
  return el(
    "div",
    { class: "row" },
    el("h2", {}, videos.length > 1 ? picker : video.title),
    el(
      "span",
      { class: "quiet" },
      state.window
        ? `${clock(Math.max(state.window[0], video.start_s))} to ${clock(Math.min(state.window[1], video.start_s + video.duration_s))}`
        : clock(video.duration_s),
    ),
    state.window ? button("Whole video", () => act.zoom(null)) : null,
    state.waiting ? el("span", { class: "quiet" }, "Loading the matches …") : null,
  );
}

function matches(canvas, data, state, step, here) {
  const { trace } = data;
  const known = new Set(trace.steps.slice(0, state.at + 1).flatMap((each) => each.queries));
  const lines = state.curves.filter(
    (each) => here(each) && known.has(each.query) && (state.query === null || each.query === state.query),
  );
  const cuts = data.shots[canvas.videoId] ?? [];
  if (!lines.length && !trace.steps.some((each) => each.anchors.length)) {
    if (cuts.length) bands(canvas, cuts, canvas.row("shots", 8), 8);
    return;
  }
  const top = canvas.row("matches", CURVE);
  const y = (percent) => top + CURVE - (CURVE - 6) * Math.min(percent / 100, 1);
  bands(canvas, cuts, top, CURVE);
  if (lines.length) canvas.parts.push(svg("path", { d: area(canvas, lines, y, top + CURVE), class: "curve" }));
  for (const each of step.anchors.filter((anchor) => here(anchor) && canvas.within(anchor.time_s))) {
    if (state.query !== null && each.query !== state.query) continue;
    const place = {
      x1: canvas.x(each.time_s),
      x2: canvas.x(each.time_s),
      y1: y(each.similarity * 100),
      y2: top + CURVE,
    };
    const tip = svg("title", {}, `anchor at ${clock(each.time_s)}: “${each.query}”, ${each.similarity.toFixed(2)}`);
    canvas.parts.push(
      svg("line", { ...place, class: "anchor-stem" }),
      svg("circle", { cx: place.x1, cy: place.y1, r: 4.5, class: "anchor" }, tip),
    );
  }
}

/** The best match of all chosen queries at each point, as an area. */
function area(canvas, lines, y, base) {
  const times = lines[0].times_s;
  const points = times
    .map((time, at) => [Math.max(time, canvas.from), Math.max(...lines.map((line) => line.percent[at]))])
    .filter(([time], at) => time <= canvas.to && (times[at + 1] ?? Infinity) > canvas.from);
  if (!points.length) return "";
  points.push([canvas.to, points.at(-1)[1]]);
  const line = points.map(([time, percent]) => `${canvas.x(time).toFixed(1)},${y(percent).toFixed(1)}`).join("L");
  return `M${canvas.x(points[0][0]).toFixed(1)},${base}L${line}L${canvas.x(points.at(-1)[0]).toFixed(1)},${base}Z`;
}

function bands(canvas, cuts, top, height) {
  cuts.forEach(([start_s, end_s], at) => {
    const each = { start_s, end_s };
    if (at % 2 && canvas.sees(each)) canvas.parts.push(canvas.bar(each, top, height, { class: "shot" }));
  });
}

function shown(canvas, trace, at, here) {
  if (!trace.steps.some((step) => step.shown.length)) return;
  const top = canvas.row("frames", 16);
  trace.steps.slice(0, at + 1).forEach((step, number) => {
    const anchored = new Set(step.opened.flatMap((each) => each.anchor_frame_nos));
    const fresh = new Set(step.opened.flatMap((each) => each.frames.map((frame) => frame.frame_no)));
    for (const frame of step.shown.filter((each) => here(each) && canvas.within(each.time_s))) {
      const now = number === at && (!fresh.size || fresh.has(frame.frame_no));
      const place = { x1: canvas.x(frame.time_s), x2: canvas.x(frame.time_s), y1: top + (now ? 0 : 5), y2: top + 16 };
      const words = `frame at ${clock(frame.time_s)}, shown in round ${step.round}${anchored.has(frame.frame_no) ? ", an anchor" : ""}`;
      canvas.parts.push(
        svg(
          "line",
          { ...place, class: `shown-frame ${now ? "now" : ""} ${anchored.has(frame.frame_no) ? "anchored" : ""}` },
          svg("title", {}, words),
        ),
      );
    }
  });
}

/** Ranges of the notes of agents without a tree. */
function looked(canvas, trace, at, here) {
  const noted = trace.steps.some((step) => step.acted.some((act) => act.notes?.length));
  if (!noted) return;
  const top = canvas.row("looked at", 16);
  trace.steps.slice(0, at + 1).forEach((step, number) => {
    for (const note of step.acted.flatMap((act) => act.notes ?? []).filter((each) => here(each) && canvas.sees(each))) {
      const tip = svg("title", {}, `${span(note)}, ${note.source} in round ${step.round}: ${note.text}`);
      canvas.parts.push(canvas.bar(note, top, 16, { class: `looked ${number === at ? "now" : ""}` }, tip));
    }
  });
}

function spans(canvas, name, ranges, className) {
  if (!ranges.length) return;
  const top = canvas.row(name, 10);
  for (const each of ranges.filter(canvas.sees))
    canvas.parts.push(
      canvas.bar(each, top, 10, { class: className, rx: 2 }, svg("title", {}, `${name}: ${span(each)}`)),
    );
}

/** All queries so far, those of this round marked; a click shows the matches of one alone. */
function queries(trace, state, act) {
  const steps = trace.steps.slice(0, state.at + 1);
  const found = steps.flatMap((step, at) => step.queries.map((query) => ({ query, at })));
  if (!found.length)
    return el("p", { class: "quiet" }, trace.steps.some((step) => step.queries.length) ? "No query yet." : "");
  return el(
    "p",
    { class: "queries" },
    el("span", { class: "quiet" }, `${amount(found.length)} `, term("query", found.length === 1 ? "query" : "queries"), ": "),
    found.map(({ query, at }) =>
      button(query, () => act.ask(query), {
        class: `chip ${at === state.at ? "new" : ""}`,
        "data-focus": `query ${query}`,
        "aria-pressed": String(state.query === query),
        title: "Show only the matches of this query",
      }),
    ),
  );
}
