// The time line of a question while it is answered: the frames that are looked at stand in their places, its tree grows,
// the focus and the place on the page stay.

import { lookedAt, saidOfFrames } from "viewer/ask/said.js";
import { el } from "viewer/shared/dom.js";
import { pictures } from "viewer/trace/pictures.js";
import { scoresAt, windowAround } from "viewer/trace/state.js";
import { timeline } from "viewer/trace/timeline.js";
import { followed } from "viewer/trace/trace.js";
import { focusOf } from "viewer/trace/tree.js";

const PADDING_PX = 34;

/** The time line as `element`, `show(data)` for each new state of the trace, and `look(frames)` for those of calls under way. */
export function liveTree() {
  const element = el("section", { class: "card pad time", "aria-label": "Time line", hidden: true });
  const state = { at: 0, video: null, selected: null, query: null, window: null, curves: [], waiting: false };
  let data = null;
  let looking = [];
  let chosen = null;

  function draw(focus = element.contains(document.activeElement) ? document.activeElement.dataset.focus : null) {
    if (!data?.trace.videos.length || element.querySelector(".tip:popover-open")) return;
    const { steps, nodes, videos } = data.trace;
    const titles = Object.fromEntries(videos.map((each) => [each.video_id, each.title]));
    const frames = lookedAt(data.trace, looking);
    state.at = Math.max(0, steps.length - 1);
    state.video = chosen ?? looking[0]?.video_id ?? followed(data, steps[state.at]);
    element.hidden = !steps.length && !looking.length;
    element.style.setProperty("min-height", `${element.offsetHeight}px`); // nothing below jumps while it is drawn
    const zoom = (number) => {
      state.window = windowAround(nodes.find((each) => each.number === number));
      draw();
    };
    element.replaceChildren(
      timeline(data, state, scoresAt(steps), {
        width: element.clientWidth - PADDING_PX,
        select: (number) => ((state.selected = state.selected === number ? null : number), draw()),
        mark: (number) => ((state.selected = number), draw(focusOf(number))),
        zoom,
        show: (video) => ((chosen = video), (state.window = null), draw()),
        ask: (query) => ((state.query = state.query === query ? null : query), draw()),
        pictures: (canvas) => pictures(canvas, looking.length ? "looking at" : "seen", frames, data.library, titles),
      }),
      saidOfFrames(data.trace, looking),
    );
    element.style.removeProperty("min-height");
    if (focus && !element.contains(document.activeElement))
      element.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }

  let width = 0;
  new ResizeObserver(() => {
    if (!element.isConnected || element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  }).observe(element);
  return {
    element,
    show: (newer) => ((data = newer), draw()),
    curves: (found) => ((state.curves = found), draw()),
    look(frames) {
      if (JSON.stringify(frames) === JSON.stringify(looking)) return;
      looking = frames;
      draw();
    },
  };
}
