// The questions that were asked before about a library, newest first.

import { el, listed } from "viewer/shared/dom.js";
import { plural } from "viewer/shared/words.js";

const AT_FIRST = 10;
const STATES = { running: "under way", stopping: "under way", failed: "failed" };

export function earlier(key, rows) {
  if (!rows.length) return null;
  const list = el("ul", { class: "earlier" });
  const more = listed(list, rows.map((row) => item(key, row)), AT_FIRST, (count) => `${plural(count, "question")} more`);
  return el("section", { class: "earlier-questions" }, el("h2", {}, "Earlier questions"), list, more);
}

function item(key, row) {
  const videos = row.videos.length > 3 ? plural(row.videos.length, "video") : row.videos.join(", ");
  const when = new Date(row.asked_at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const answer = row.text ? `${row.letter ? `${row.letter}. ` : ""}${row.text}` : (STATES[row.state] ?? "no answer");
  return el(
    "li",
    { class: "card" },
    el(
      "a",
      { href: `#/ask/${key}/${row.key}`, class: "pad" },
      el("b", {}, row.question),
      el("span", { class: row.text ? "" : "quiet" }, answer),
      el("small", {}, [row.agent, videos, when].filter(Boolean).join(" · ")),
    ),
  );
}
