// The state of a question that is being answered: how far it is, what it costs, and a button that stops it.

import { button, el } from "viewer/shared/dom.js";
import { money, plural, shortClock } from "viewer/shared/words.js";

const TICK_MS = 1000;
const STOPPING = "stopping, with an answer of what it saw";
const WAITING = "the server does not answer, trying again";

export function stateLine(stop) {
  const figures = el("b", { class: "progress-figures" }, "beginning");
  const sentence = el("p", { class: "now-sentence" });
  const stopper = button("Stop and take the best answer so far", press, { class: "plain stop" });
  const element = el(
    "section",
    { class: "card pad state", "aria-label": "State", hidden: true },
    el("div", { class: "row" }, el("span", { class: "pulse", "aria-hidden": "true" }), figures, stopper),
    sentence,
  );
  let facts = { round: 0, frames: 0, calls: 0, seconds: 0, cost: 0 };
  let since = performance.now();
  let doing = "looking";
  let timer = 0;

  function draw() {
    const seconds = facts.seconds + (performance.now() - since) / 1000;
    const parts = [
      facts.round ? `round ${facts.round}` : null,
      plural(facts.frames, "frame"),
      plural(facts.calls, "call"),
      shortClock(Math.floor(seconds)),
      facts.cost ? money(facts.cost) : null,
    ].filter(Boolean);
    figures.replaceChildren(`${doing}: ${parts.join(", ")}`);
    if (!element.isConnected) clearInterval(timer);
  }

  /** The first press leaves time for one last request, the answer of what it saw; the second does not. */
  function press() {
    stopper.disabled = doing === STOPPING;
    stopping();
    stop();
  }

  function stopping() {
    doing = STOPPING;
    stopper.replaceChildren("Do not wait for the last request");
    draw();
  }

  return {
    element,
    stopping,
    begin(asked_at) {
      if (asked_at) facts.seconds = Math.max(0, (Date.now() - Date.parse(asked_at)) / 1000);
      element.hidden = false;
      timer = setInterval(draw, TICK_MS);
      draw();
    },
    show(newer) {
      [facts, since] = [newer, performance.now()];
      if (doing === WAITING) doing = "looking";
      sentence.replaceChildren(newer.sentence);
      draw();
    },
    waiting() {
      doing = WAITING;
      draw();
    },
    end() {
      clearInterval(timer);
      element.hidden = true;
    },
  };
}
