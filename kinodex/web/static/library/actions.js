// What can be done with a moment: play it.

import { el } from "viewer/shared/dom.js";
import { clock } from "viewer/shared/words.js";
import { openPlayer } from "viewer/play/player.js";

/** A button that plays a hit, which may be a single frame, with the seconds around it that the server gives. */
export function playButton(key, { video_id: videoId, title }, { start_s: start, play }) {
  return el(
    "button",
    {
      type: "button",
      class: "chip play",
      "aria-label": `Play ${title} ${clock(start)}`,
      onclick: () => openPlayer(key, videoId, title, play),
    },
    "▶ Play",
  );
}
