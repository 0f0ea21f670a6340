// The video itself in place of its frame, where a server plays it; the stored frame with its detections is a button away.

import { button, el } from "viewer/shared/dom.js";
import { player } from "viewer/play/player.js";

/** `readyState` of a media element that has the picture of its present time. */
const HAS_PICTURE = 2;

/** The stage as `element` with `show(at, time)`; `follow` is called with the time that the player is at. */
export function playedStage(key, row, still, follow) {
  const film = player(key, row);
  const place = location.hash.split("/").slice(0, 5).join("/");
  const choice = (name, plays) =>
    button(name, () => ((chosen = true), choose(plays)), { class: "chip", "aria-pressed": String(plays) });
  const buttons = [choice("Video", true), choice("Stored frame with detections", false)];
  let sought = null;
  let chosen = false;

  function choose(plays) {
    if (!plays) film.pause();
    film.element.hidden = !plays;
    still.element.hidden = plays;
    buttons.forEach((each, at) => each.setAttribute("aria-pressed", String((at === 0) === plays)));
  }

  film.onTime((time) => {
    if (sought !== null && Math.abs(time - sought) < 0.5) return (sought = null); // where it was sent
    follow(time);
  });
  addEventListener("hashchange", function leave() {
    if (location.hash.startsWith(place)) return;
    removeEventListener("hashchange", leave);
    film.close(); // else its sound would go on
  });
  choose(false); // until the film has a picture: a stage is black before
  film.ready.then(() => {
    const screen = film.element.querySelector("video");
    const begin = () => !chosen && choose(true);
    if (!screen || screen.readyState >= HAS_PICTURE) return begin();
    for (const event of ["loadeddata", "error"]) screen.addEventListener(event, begin, { once: true });
  });
  const element = el("div", {}, el("div", { class: "row stages", role: "group", "aria-label": "What to show" }, buttons), film.element, still.element);
  return {
    element,
    show(at, time) {
      sought = time;
      film.seek(time);
      still.show(at);
    },
  };
}
