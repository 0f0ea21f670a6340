// What can be done with a moment: play it.

import { el } from "viewer/shared/dom.js";
import { clock } from "viewer/shared/words.js";
import { openPlayer } from "viewer/play/player.js";

const BEFORE_S = 1;
const LEAST_S = 6;

/** A button that plays a hit, which may be a single frame, with some seconds around it. */
export function playButton(key, { video_id: videoId, title, duration_s: length }, { start_s: start, end_s: end }) {
  const start_s = Math.max(0, start - BEFORE_S);
  const end_s = Math.max(end, Math.min(start_s + LEAST_S, Math.max(length, end)));
  return el(
    "button",
    {
      type: "button",
      class: "chip play",
      "aria-label": `Play ${title} ${clock(start)}`,
      onclick: () => openPlayer(key, videoId, title, { start_s, end_s }),
    },
    "▶ Play",
  );
}
