// A player within a card, so that the answer stays in sight while its evidence plays.

import { button, el } from "viewer/shared/dom.js";
import { player } from "viewer/play/player.js";
import { load } from "viewer/shared/source.js";

/** The place of the player as `element`, empty until `play(range, title)`; the page that is left closes it. */
export function watch(library) {
  const element = el("div", { class: "watch-place" });
  let inner = null;
  let video = null;
  let before = null;

  function close() {
    inner?.close();
    [inner, video] = [null, null];
    element.replaceChildren();
    before?.focus();
  }

  async function play(range, title) {
    before = document.activeElement;
    try {
      if (video !== range.video_id) {
        const { video: row } = await load(`libraries/${library}/videos/${encodeURIComponent(range.video_id)}`);
        inner?.close();
        [inner, video] = [player(library, row), range.video_id];
        const leave = button("Close", close);
        element.replaceChildren(el("div", { class: "row" }, el("h3", {}, title), leave), inner.element);
      }
      inner.play(range.start_s, range.end_s);
      element.scrollIntoView({ block: "nearest" });
    } catch (error) {
      element.replaceChildren(el("p", { role: "alert" }, `It cannot be played: ${error.message}`));
    }
  }

  element.addEventListener("keydown", (event) => event.key === "Escape" && !document.fullscreenElement && close());
  window.addEventListener("hashchange", () => inner?.close(), { once: true });
  return { element, play };
}
