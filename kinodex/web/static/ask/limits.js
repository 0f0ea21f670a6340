// Limits of one question, and two rules for its answer.

import { el } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";

const FIELDS = {
  rounds: ["round", "Rounds", 1],
  frames: ["frame", "Frames", 1],
  tokens: ["token", "Tokens", 1],
  seconds: [null, "Seconds", "any"],
  cost: ["cost", "Dollars", "any"],
};

/** The fields, closed unless a limit is set; an empty one is no limit beyond the server's own. */
export function limits({ budget = {}, rules: { force_choice: force, verify } = {} } = {}) {
  const isSet = force || verify || Object.values(budget).some((value) => value !== null);
  return el(
    "details",
    { open: isSet },
    el("summary", {}, "Limits"),
    el(
      "p",
      { class: "quiet" },
      "When one is reached, you get the best answer so far. An empty field sets none; the server may have limits of its own.",
    ),
    el(
      "div",
      { class: "limits" },
      Object.entries(FIELDS).map(([name, [word, shown, step]]) =>
        el(
          "div",
          { class: "field" },
          el("b", {}, el("label", { for: `limit-${name}` }, shown), word ? [" ", term(word, "?")] : null),
          el("input", { type: "number", id: `limit-${name}`, name, min: 0, step, value: budget[name] ?? "", inputmode: "decimal" }),
        ),
      ),
    ),
    check("force_choice", force, "Choose one of the answers even if the video does not show which is right"),
    check("verify", verify, "Check the answer with a second look at its evidence alone (costs a few calls more)"),
  );
}

const check = (name, checked, words) =>
  el("label", { class: "check" }, el("input", { type: "checkbox", name, checked: Boolean(checked) }), ` ${words}`);

/** The limits and rules of a form as a request holds them. */
export function readLimits({ elements }) {
  const budget = Object.fromEntries(
    Object.keys(FIELDS).map((name) => [name, elements[name].value === "" ? null : Number(elements[name].value)]),
  );
  return { budget, rules: { force_choice: elements.force_choice.checked || null, verify: elements.verify.checked } };
}
