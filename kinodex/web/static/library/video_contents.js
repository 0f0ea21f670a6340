// The chapters of a video and their scenes, each with its title and summary; the time of one goes there.

import { button, el } from "viewer/shared/dom.js";
import { amount, clock, plural } from "viewer/shared/words.js";

/**
 * The table of contents as `element` with `show(time)`, which marks the chapter and the scene of that time; null of none.
 * `parts` are chapters and scenes by time.
 */
export function contents(parts, seek) {
  const chapters = parts.filter((each) => each.level === "chapter");
  if (!chapters.length) return null;
  const marks = [];

  const item = (each, number, scenes) => {
    const entry = el(
      "li",
      { dir: "auto" },
      button(clock(each.start_s), () => seek(each.start_s), { class: "chip" }),
      " ",
      el("strong", {}, each.title || `${each.level === "chapter" ? "Chapter" : "Scene"} ${number + 1}`),
      each.text ? el("p", { class: "quiet" }, each.text) : null,
      scenes.length > 1 ? details(scenes) : null,
    );
    marks.push({ entry, each });
    return entry;
  };

  const details = (scenes) =>
    el(
      "details",
      { open: chapters.length === 1 },
      el("summary", {}, plural(scenes.length, "scene")),
      el("ol", { class: "scenes" }, scenes.map((each, at) => item(each, at, []))),
    );

  const of = (chapter) =>
    parts.filter((each) => each.level === "scene" && each.start_s >= chapter.start_s && each.start_s < chapter.end_s);
  const list = el(
    "ol",
    { class: "lines contents", tabindex: 0, "data-scrolls": true, "aria-label": "Chapters" },
    chapters.map((each, at) => item(each, at, of(each))),
  );

  function show(time) {
    for (const { entry, each } of marks) {
      const is = each.start_s <= time && time < each.end_s;
      const was = entry.hasAttribute("aria-current");
      if (is === was) continue;
      if (is) entry.setAttribute("aria-current", "true");
      else entry.removeAttribute("aria-current");
      if (is && each.level === "chapter") list.scrollTop = entry.offsetTop - list.clientHeight / 3;
    }
  }
  const heading = el("h2", {}, "Chapters ", el("span", { class: "quiet" }, amount(chapters.length)));
  return { element: el("div", {}, heading, list), show };
}
