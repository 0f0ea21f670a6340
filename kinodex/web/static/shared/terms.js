// The words of this project, each with its meaning. A term on a page shows its meaning at a click, a tap or Enter.

import { el } from "viewer/shared/dom.js";

const MEANINGS = {
  agent: "A way to search a video for an answer: it decides where to look next, and when it has seen enough.",
  anchor: "A frame whose picture fits the words that are searched for well; the search begins around anchors.",
  budget: "Limits of one question: when one of them is reached, the search ends with its best answer so far.",
  caption: "A sentence that a model wrote about what is seen in a part of the video.",
  call: "One message to a model with its reply. Each costs time, and with most providers money.",
  cached: "A call whose reply was kept from before: it costs nothing again.",
  "cached tokens": "Tokens that the provider had read shortly before, and charges less for.",
  candidate: "A part of the video that the search could open next.",
  cost: "The money that the calls cost at the prices that the server was started with, in US dollars.",
  entropy:
    "A number from 0 to 1 that says how undecided the rewards are: near 1 all parts look alike, near 0 one stands out.",
  evicted: "A frame that left the memory to make room for others.",
  evidence: "The parts of the video that the answer rests on. Look at them to check the answer.",
  frame: "One still picture of the video. The library keeps about one for each second.",
  fused: "The reward and the query score put together: the score by which candidates are sorted.",
  invalid: "A reply that could not be used: it did not keep to the form that was asked for.",
  ledger: "The bill: what each round cost in calls, frames, tokens, money and time.",
  match: "A measure, 0 to 1, of how well a frame fits the words that are searched for.",
  memory: "The frames that the model still sees in the next round; there is room for only this many.",
  model: "The program that looks at pictures and reads words to answer a question.",
  "model seconds": "The time that the models took; calls at the same time are counted each.",
  query: "Words that the agent searches the video for, such as “a dog on a beach”.",
  "query score": "The best match, 0 to 1, of any query inside this part of the video.",
  reward: "The model's own guess, 0 to 100, that a part of the video helps with the question.",
  round: "One step of the search: open a part, look at frames, judge them, decide how to go on.",
  score: "A number, 0 to 1, for how likely a part holds the answer. The darker a part is drawn, the higher it is.",
  segment: "A part of the video, from one time to another. Opening one divides it into smaller ones.",
  shot: "A piece of film between two cuts.",
  shows: "Frames that were sent to a model, counted each time: a frame in the memory is sent again every round.",
  token: "A piece of a word, about four letters: models count, and charge for, what they read and write in tokens.",
  trace: "The record of a question: every round, frame, call and reply.",
  tree: "The parts of the video that were opened, each above the smaller parts that it was divided into.",
  truth: "The part of the video where the answer really is, as the data set says.",
};

const GAP_PX = 6;
let count = 0;

/** A word with its meaning, which a click, a tap or Enter shows and Escape hides; `shown` is the word as it stands. */
export function term(name, shown = name) {
  const meaning = MEANINGS[name];
  if (!meaning) throw new Error(`no meaning of ${name}`);
  const id = `term-${(count += 1)}`;
  const word = el(
    "button",
    { type: "button", class: "term", title: meaning, popovertarget: id, "aria-expanded": "false", "data-focus": `term ${name}` },
    shown,
  );
  const tip = el("span", {
    id,
    class: "tip",
    popover: "auto",
    role: "note",
    onbeforetoggle: () => (tip.textContent = meaning), // not before: a search in the page should not find it
    ontoggle: (event) => turn(event, word, tip),
  });
  return el("span", {}, word, tip);
}

/** The tip stands below its word, within the window, and says so to screen readers. */
function turn(event, word, tip) {
  const isOpen = event.newState === "open";
  word.setAttribute("aria-expanded", String(isOpen));
  if (!isOpen) return;
  const at = word.getBoundingClientRect();
  const most = document.documentElement.clientWidth - tip.offsetWidth - GAP_PX;
  tip.style.setProperty("left", `${Math.max(GAP_PX, Math.min(at.left, most))}px`);
  const below = at.bottom + GAP_PX;
  const fits = below + tip.offsetHeight <= window.innerHeight;
  tip.style.setProperty("top", `${fits ? below : Math.max(GAP_PX, at.top - tip.offsetHeight - GAP_PX)}px`);
  word.setAttribute("aria-describedby", tip.id);
}
