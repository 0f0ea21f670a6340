// A model of the server looks at the first moments that a search found, and says of each if it is there.

import { button, el } from "viewer/shared/dom.js";
import { send } from "viewer/shared/source.js";
import { plural } from "viewer/shared/words.js";

const FIRST = 5;

/**
 * A button that has the model `looks` look at the first of `moments` for `text`; null without a model, or where all were
 * looked at. Verdicts are written into the moments, and `done(claim)` gets what may be said of them.
 */
export function lookButton(key, looks, text, moments, done) {
  const left = moments.slice(0, FIRST);
  if (!looks || !text || !left.length || left.every((each) => each.reason)) return null;
  const said = el("span", { class: "quiet", role: "status" });
  const begin = button(`Have ${looks} look at the first ${left.length}`, look);

  async function look() {
    begin.disabled = true;
    said.replaceChildren(` ${looks} looks at ${plural(left.length, "moment")}…`);
    const asked = left.map(({ video_id, start_s, end_s }) => ({ video_id, start_s, end_s }));
    try {
      const found = await send(`libraries/${key}/verify`, { text, moments: asked });
      left.forEach((each, at) => Object.assign(each, { ...found.moments[at], ...(found.moments[at].present === null ? { basis: each.basis } : {}) }));
      done(found.claim);
    } catch (error) {
      begin.disabled = false;
      said.replaceChildren(` ${error.message}`);
    }
  }

  return el("p", { class: "look" }, begin, said);
}
