// A field for the videos that a question is about: type to find one, Enter or a click takes it.

import { button, el } from "viewer/shared/dom.js";
import { rows } from "viewer/shared/source.js";

/** The field, and `chosen()`, the ids of the videos in it; none means all. `before` are `[id, title]` to begin with. */
export function videosField(key, before = []) {
  const taken = new Map();
  const list = el("datalist", { id: "ask-titles" });
  const chips = el("span", { class: "taken" });
  const input = el("input", {
    type: "search",
    list: "ask-titles",
    placeholder: "all videos; type to find one",
    autocomplete: "off",
    "aria-label": "Find a video",
  });
  let offered = [];

  async function offer() {
    offered = (await rows(key, "videos", input.value, 0)).rows;
    list.replaceChildren(...offered.map((row) => el("option", { value: row.title })));
  }

  const named = () => offered.find((row) => row.title.toLowerCase() === input.value.trim().toLowerCase());

  function take(row) {
    if (!row) return;
    taken.set(row.video_id, row.title);
    input.value = "";
    draw();
  }

  function draw() {
    chips.replaceChildren(
      ...[...taken].map(([id, title]) => {
        const leaveOut = () => (taken.delete(id), draw(), input.focus());
        return button(`${title} ×`, leaveOut, { class: "chip", "aria-label": `Leave out ${title}` });
      }),
    );
  }

  input.addEventListener("input", async (event) => {
    // Taken from the list, which says so; else a title that begins another one could not be typed to its end.
    const picked = event.inputType === undefined || event.inputType === "insertReplacementText";
    if (picked && named()) take(named());
    else await offer();
  });
  input.addEventListener("focus", offer);
  input.addEventListener("keydown", async (event) => {
    if (event.key !== "Enter" || !input.value.trim()) return;
    event.preventDefault();
    await offer();
    take(named() ?? (offered.length === 1 ? offered[0] : null));
  });
  before.forEach(([id, title]) => taken.set(id, title));
  draw();
  const element = el(
    "div",
    { class: "field" },
    el("b", {}, "Videos"),
    chips,
    input,
    list,
    el("small", {}, "Enter takes the video that you typed. Without any, all videos of the library are searched."),
  );
  const chosen = () => [...taken.keys(), ...(input.value.trim() ? [input.value.trim()] : [])];
  return { element, chosen };
}
