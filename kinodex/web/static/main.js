// The view for an address. Addresses are #/, #/trace/KEY,KEY, #/run/0, #/library/0, #/library/0/search/FIELDS
// and #/library/0/video/ID/SECONDS; #/trace/KEY,KEY/ROUND,ROUND is of a round. #/ask/0 and #/ask/0/KEY need a server
// that answers questions.

import { ask } from "viewer/ask/ask.js";
import { button, el } from "viewer/shared/dom.js";
import { watchServer } from "viewer/shared/gone.js";
import { goToBox } from "viewer/home/box.js";
import { home } from "viewer/home/home.js";
import { library } from "viewer/library/library.js";
import { run } from "viewer/run/run.js";
import { alone, load } from "viewer/shared/source.js";
import { nameOf } from "viewer/shared/words.js";
import { traces } from "viewer/trace/traces.js";
import { video } from "viewer/library/video.js";

const page = document.getElementById("page");
let onKey = () => {};
let draws = 0;
let toBox = false;
const NOTHING = { serve: null, runs: [], libraries: [] };

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=range]), select, textarea, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== "/" || alone) return onKey(event);
  event.preventDefault(); // some browsers search the page by it
  if (goToBox()) return;
  toBox = true;
  location.hash = "#/";
});
document.addEventListener("click", (event) => {
  // On the way back the reader is where this link was clicked; a link to the same view begins at its top.
  if (event.target.closest('a[href^="#"]')) history.replaceState({ down_px: window.scrollY }, "");
});
window.addEventListener("hashchange", draw);

async function draw() {
  const mine = (draws += 1);
  onKey = () => {};
  const down_px = history.state?.down_px ?? 0;
  let there = null;
  try {
    const [kind, key, what, inner] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    there = await load("home");
    const views = {
      ask: () => ask(key, what, inner, there),
      trace: () => traces(key.split(","), what),
      run: () => run(key),
      library: () => (what === "video" ? video(key, inner) : library(key, what, inner, there)),
    };
    const view = await (views[kind] ?? (() => only(there) ?? home(there)))();
    if (mine !== draws) return;
    onKey = view.onKey ?? onKey;
    document.title = `${view.title} · kinodex`;
    const main = el("main", { tabindex: -1 }, view.element);
    page.replaceChildren(top(there, view), main);
    if (draws > 1) main.focus({ preventScroll: true }); // not on what the reader has left
    view.ready?.();
    if (toBox) goToBox();
    toBox = false;
    if (down_px) await view.filled;
  } catch (error) {
    if (mine !== draws) return;
    page.replaceChildren(top(there ?? NOTHING, {}), el("main", { tabindex: -1 }, failure(error)));
    if (!error.status && !error.gone) throw error; // a fault of the page, for the console
  }
  if (mine === draws) window.scrollTo(0, down_px);
}

/** In place of a page that cannot be drawn: why, and the way on. */
function failure(error) {
  const name = error.gone ? "No answer" : error.status === 404 ? "Not here" : "This page cannot be drawn";
  document.title = `${name} · kinodex`;
  return [
    el("h1", {}, name),
    error.gone ? null : el("div", { class: "banner", role: "alert" }, error.message),
    el("p", {}, remedy(error)),
    el(
      "div",
      { class: "row" },
      error.status === 404 ? null : button("Try again", draw, { class: "plain strong" }),
      el("a", { class: "plain", href: "#/" }, "Back to the start"),
    ),
  ].filter(Boolean);
}

/** The one thing to do about it. */
function remedy({ gone, status }) {
  if (gone) return "The server was asked and did not answer. Start it again, then try again.";
  if (status === 404) return "The server does not have it: it may have been renamed, or belong to another library.";
  return status >= 500
    ? "The server failed. Its terminal shows why; try again once that is mended."
    : "Try again; if it stays so, reload the page.";
}

/** The one thing there is to see, if it is one; null otherwise. */
function only(there) {
  const { traces: all, runs, libraries } = there;
  const questions = new Set(all.map((each) => JSON.stringify([each.question, each.videos])));
  if (questions.size === 1 && !runs.length) return traces(all.map((each) => each.key));
  if (!all.length && runs.length === 1) return run("0");
  return !all.length && !runs.length && libraries.length === 1 ? library("0", "", undefined, there) : null;
}

function top(there, view) {
  const links = [
    ...(there.serve ? [["#/ask/0", "Ask"]] : []),
    ...there.runs.map((each) => [`#/run/${each.key}`, each.folder]),
    ...there.libraries.map((each) => [`#/library/${each.key}`, nameOf(each.uri)]),
  ];
  return el(
    "header",
    { class: "top" },
    el("a", { href: "#/", class: "brand" }, "kinodex"),
    el(
      "nav",
      { "aria-label": "Pages" },
      links.map(([href, name]) => el("a", { href, "aria-current": view.here === href ? "page" : null }, name)),
    ),
    alone ? el("span", { class: "quiet" }, "one file, no network") : null,
  );
}

watchServer(page, draw);
draw();
