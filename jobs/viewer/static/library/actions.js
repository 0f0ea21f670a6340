// What can be done with a moment: play it.

import { el } from "viewer/shared/dom.js";
import { clock } from "viewer/shared/words.js";

export function playButton() {
  return null;
}
