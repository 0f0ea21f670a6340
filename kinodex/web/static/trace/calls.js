// The calls of a round: prompt, frames and reply of each, drawn when it is opened.

import { el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";
import { strip } from "viewer/shared/frames.js";
import { amount, plural } from "viewer/shared/words.js";

export function calls(list, library, titles) {
  if (!list.length) return null;
  return [
    el("h3", {}, term("call", "Calls"), " ", el("span", { class: "quiet" }, list.length)),
    el(
      "div",
      { class: "calls" },
      list.map((call) => one(call, library, titles)),
    ),
  ];
}

function one(call, library, titles) {
  const { input_tokens: read, output_tokens: written, cost } = call.usage;
  const facts = [
    `${call.role}: ${call.model}`,
    call.frames.length ? plural(call.frames.length, "frame") : null,
    read + written ? `${amount(read)} + ${amount(written)} tokens` : null,
    cost ? `cost ${amount(cost)}` : null,
    `${call.seconds.toFixed(call.seconds < 1 ? 3 : 1)} s`,
  ].filter(Boolean);
  const body = el("div", { class: "call" });
  const fill = (event) => {
    if (event.target.open && !body.childElementCount)
      body.append(...parts(call, library, titles).flat().filter(Boolean));
  };
  return el(
    "details",
    { ontoggle: fill },
    el(
      "summary",
      {},
      el("b", {}, call.request),
      call.attempt ? el("span", { class: "tag" }, `attempt ${call.attempt + 1}`) : null,
      call.invalid === null ? null : el("span", { class: "tag bad" }, "invalid"),
      call.cached ? el("span", { class: "tag quiet" }, "cached") : null,
      el("small", {}, facts.join(" · ")),
    ),
    body,
  );
}

function parts(call, library, titles) {
  return [
    el("h4", {}, "Prompt"),
    text(call.prompt),
    call.turns
      .map((turn) => [el("h4", {}, turn.speaker === "assistant" ? "Model" : "Message"), text(turn.text)])
      .flat(),
    call.frames.length ? [el("h4", {}, "Frames"), strip(call.frames, library, titles)] : null,
    el("h4", {}, "Reply"),
    text(pretty(call.raw)),
    call.invalid === null ? null : el("p", { class: "warn" }, call.invalid),
    call.reply === null
      ? null
      : el("details", {}, el("summary", {}, "Parsed reply"), text(JSON.stringify(call.reply, null, 2))),
  ];
}

const text = (words) => el("pre", { tabindex: 0, "data-scrolls": true }, words || "(empty)");

/** JSON on several lines; other texts as they are. */
function pretty(raw) {
  try {
    return JSON.stringify(JSON.parse(raw), null, 2);
  } catch {
    return raw;
  }
}
