// The end of a run in words: an answer, too little evidence, or a limit, and what checked it.

import { el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";

/** The end of a run in words, by the name of the budget that was spent. */
const SPENT = {
  rounds: "no further round was allowed",
  frames: "no further frame was allowed",
  tokens: "no more tokens were allowed",
  seconds: "the time was up",
  cost: "the money was spent",
  stopped: "you stopped it",
};

/** Lines about an answer that is not a plain one; none for one that is. */
export function verdict(final) {
  return [ended(final), cited(final), checked(final)].filter(Boolean);
}

function ended({ status, reason, text }) {
  const why = SPENT[reason] ?? reason;
  if (status === "answered") return reason ? warning(`Its best answer so far: ${reason}.`) : null;
  if (status === "budget_exhausted")
    return text === null
      ? warning("The search ended without an answer: ", why, ".")
      : warning("The search ended early, since ", why, ". This is its best answer so far.");
  if (status === "evidence_only")
    return warning("These moments fit the question best. An answer in words needs a language model.");
  if (status === "insufficient_evidence")
    return warning("What it saw did not suffice for an answer", why ? `, and ${why}` : "", ". Ask again with more rounds or frames, or more narrowly.");
  return warning("No ", term("invalid", "reply of its model could be used"), why ? `: ${why}` : ".");
}

function cited({ evidence_cited: named, evidence, text }) {
  if (named !== false || text === null || !evidence.length) return null;
  return el("p", { class: "quiet" }, "It did not say what its answer rests on: below is all that its model saw last.");
}

function checked({ supported, unverified }) {
  if (supported === true) return el("p", { class: "quiet" }, "A second look at the evidence alone came to the same answer.");
  if (supported === false) return warning("A second look at the evidence alone did not come to this answer", unverified ? `: ${unverified}` : "", ".");
  return null;
}

const warning = (...words) => el("p", { class: "warn" }, words);
