// One trace: its answer, a slider over its rounds, and the state after each of them.

import { answer } from "viewer/trace/answer.js";
import { candidates } from "viewer/trace/candidates.js";
import { button, el, tell } from "viewer/shared/dom.js";
import { path } from "viewer/trace/path.js";
import { ledger } from "viewer/trace/ledger.js";
import { round } from "viewer/trace/round.js";
import { load } from "viewer/shared/source.js";
import { scoresAt, windowAround } from "viewer/trace/state.js";
import { timeline } from "viewer/trace/timeline.js";
import { focusOf } from "viewer/trace/tree.js";
import { term } from "viewer/shared/terms.js";
import { amount, spoken } from "viewer/shared/words.js";

/**
 * The element of a trace, ways to move in it, and `ready`, to be called with a round or nothing, when it is on the
 * page. `moved` is called when the reader has gone to another round.
 */
export function trace(data, moved) {
  const { steps, videos, nodes } = data.trace;
  const scores = scoresAt(steps);
  const titles = Object.fromEntries(videos.map((video) => [video.video_id, video.title]));
  const state = {
    at: Math.max(0, steps.length - 1),
    round: 0,
    video: null,
    selected: null,
    query: null,
    window: null,
    allCandidates: false,
    curves: [],
    waiting: data.library !== null && steps.some((step) => step.queries.length),
  };
  const places = Object.fromEntries(
    ["time", "list", "round", "ledger"].map((name) => [name, el("section", { class: `card pad ${name}` })]),
  );
  const { bar, set } = slider(steps, (at) => (go(at), moved()));

  /** Go to a step; `wanted` is a round that this trace may not have. */
  function go(at, wanted = null) {
    state.at = Math.min(Math.max(at, 0), Math.max(0, steps.length - 1));
    state.round = wanted ?? steps[state.at]?.round ?? 0;
    state.video = followed(data, steps[state.at]);
    fit();
    draw(true);
  }

  /** Shows the whole video again if the window on the time line leaves out the segment of this round. */
  function fit() {
    const opened = steps[state.at]?.opened[0];
    const segment = opened && nodes.find((node) => node.number === opened.parent);
    if (state.window && segment && (segment.start_s >= state.window[1] || segment.end_s <= state.window[0]))
      state.window = null;
  }

  function select(number) {
    state.selected = state.selected === number ? null : number;
    const node = nodes.find((each) => each.number === number);
    if (node) state.video = node.video_id;
    draw();
  }

  /** Selects a segment, and goes there with the focus. */
  function mark(number) {
    state.selected = number;
    draw(false, focusOf(number));
  }

  /** Lists all candidates, and goes to the first that was not listed. */
  function allCandidates(first) {
    state.allCandidates = true;
    draw(false, `candidate ${first}`);
  }

  function zoom(number) {
    const node = nodes.find((each) => each.number === number);
    state.window = windowAround(node);
    if (node) [state.video, state.selected] = [node.video_id, number];
    draw();
  }

  /** Draws the parts that depend on the selection, with `whole` also those of the round; the focus stays. */
  function draw(whole = false, focus = document.activeElement?.dataset.focus) {
    const step = steps[state.at];
    places.time.replaceChildren(
      timeline(data, state, scores, {
        width: places.time.clientWidth - 26,
        select,
        mark,
        zoom,
        show: (video) => ((state.video = video), (state.window = null), draw()),
        ask: (query) => ((state.query = state.query === query ? null : query), draw()),
      }),
    );
    if (!step) return;
    const list = candidates(data, state, scores[state.at], { select, zoom, allCandidates });
    places.list.replaceChildren(...(list ?? []));
    places.list.hidden = list === null;
    if (whole) {
      set(state.at);
      places.round.replaceChildren(...round(data, step, titles));
      places.ledger.replaceChildren(...ledger(data.trace, state.at));
    }
    if (focus && document.activeElement === document.body)
      element.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }

  /** Go to the last step that is not after a round. */
  const toRound = (number) =>
    go(
      steps.findLastIndex((step) => step.round <= number),
      number,
    );
  const goRound = (number) => (toRound(number), moved());
  const zoomIn = () => zoom(state.selected ?? steps[state.at]?.opened[0]?.parent);

  const element = el(
    "article",
    { class: "trace" },
    el(
      "div",
      { class: "halves" },
      answer(data, titles),
      path(data.trace, (at) => (go(at), moved(), bar.scrollIntoView({ block: "start" }))),
    ),
    data.library === null &&
      steps.some((step) => step.shown.length) &&
      el(
        "p",
        { class: "quiet" },
        "No library here has the frames that this run saw, so there are no pictures, shots and curves.",
      ),
    steps.length > 1 ? bar : null,
    places.time,
    steps.length ? el("div", { class: "halves" }, places.round, places.list) : null,
    steps.length ? places.ledger : null,
    settings(data),
  );

  const ready = (wanted) => {
    if (Number.isInteger(wanted)) toRound(wanted);
    else go(state.at);
    let width = places.time.clientWidth;
    new ResizeObserver(() => {
      if (places.time.clientWidth === width || !places.time.isConnected) return;
      width = places.time.clientWidth;
      draw();
    }).observe(places.time);
    if (state.waiting)
      load(`traces/${data.key}/curves`)
        .then((curves) => (state.curves = curves))
        .catch((error) => tell(`No curves: ${error.message}`))
        .finally(() => ((state.waiting = false), draw()));
  };
  const rounds = steps.map((step) => step.round);
  return { element, ready, rounds, round: () => state.round, goRound, zoomIn, zoomOut: () => zoom(null) };
}

/** The video that a round is about. */
export function followed({ trace: { nodes, answer: final, videos } }, step) {
  const opened = step?.opened.at(-1);
  const node = opened && nodes.find((each) => each.number === opened.parent);
  const shown = step?.shown[0] ?? step?.acted.flatMap((each) => each.notes ?? [])[0];
  return (node ?? shown ?? final?.evidence[0] ?? videos[0])?.video_id;
}

function slider(steps, go) {
  const range = el("input", {
    type: "range",
    min: 0,
    max: steps.length - 1,
    step: 1,
    "aria-label": "Round",
    oninput: (event) => go(Number(event.target.value)),
  });
  const label = el("output", { class: "round-label" });
  const turn = (words, sign, move) =>
    button(sign, () => go(Number(range.value) + move), { "aria-label": words, title: words });
  const before = turn("Round before", "←", -1);
  const next = turn("Next round", "→", 1);
  const last = steps.at(-1)?.round;
  const set = (at) => {
    range.value = at;
    const name = steps[at].round === 0 ? "before round 1" : `round ${steps[at].round} of ${last}`;
    label.replaceChildren(name);
    range.setAttribute("aria-valuetext", name);
    before.disabled = at === 0;
    next.disabled = at === steps.length - 1;
  };
  return { bar: el("div", { class: "bar card" }, before, range, next, label), set: steps.length ? set : () => {} };
}

function settings({ name, trace: { parameters, budget, models, space, index_frames: frames } }) {
  const limits = Object.entries(budget).filter(([, value]) => value !== null);
  const rows = [
    ...Object.entries(models).map(([role, model]) => [`model, ${role}`, model]),
    ["space", space],
    ["frames in the index", amount(frames)],
    ...limits.map(([limit, value]) => [[term("budget"), `, ${limit}`], amount(value)]),
    ...Object.entries(parameters).map(([parameter, value]) => [spoken(parameter), String(value)]),
    [term("trace"), name],
  ];
  return el(
    "details",
    { class: "settings" },
    el("summary", {}, "Settings"),
    el(
      "dl",
      { class: "plain" },
      rows.map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]),
    ),
  );
}
