// A banner while the server does not answer, with a button that tries again.

import { button, el } from "viewer/shared/dom.js";
import { load } from "viewer/shared/source.js";

/** Shows the banner at the top of `page`'s parent whenever a request finds no server; `redraw` is called once one does. */
export function watchServer(page, redraw) {
  const again = button("Try again", tryAgain);
  const said = el("span", {}, "The server does not answer: it was stopped, or this computer slept. Start it again, then try again.");
  const banner = el("div", { class: "banner gone", role: "alert" }, said, again);

  async function tryAgain() {
    again.disabled = true;
    try {
      await load("home");
      redraw();
    } catch {
      again.focus(); // the banner stays, and says why
    } finally {
      again.disabled = false;
    }
  }

  window.addEventListener("reach", (event) => {
    if (event.detail) banner.remove();
    else if (!banner.isConnected) page.before(banner);
  });
}
