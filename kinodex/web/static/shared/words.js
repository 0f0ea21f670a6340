// Times and amounts for people.

import { el } from "viewer/shared/dom.js";

/** 75.5 -> "1:15.5", 3675 -> "1:01:15.0", as the command line writes them. */
export function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  const minutes = Math.floor(tenths / 600);
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  const hours = Math.floor(minutes / 60);
  return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** The same without tenths, for axes. */
export const shortClock = (seconds) => clock(Math.round(seconds)).slice(0, -2);

/** "75", "1:15" or "1:01:15.5" -> seconds. */
export const seconds = (text) => text.split(":").reduce((before, part) => 60 * before + Number(part), 0);

export const span = (each) => `${clock(each.start_s)} to ${clock(each.end_s)}`;

export function amount(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

/** 0.00123 -> "$0.0012", 12.3 -> "$12.30". */
export const money = (dollars) => `$${dollars >= 1 || !dollars ? dollars.toFixed(2) : dollars.toPrecision(2)}`;

export const letter = (option) => String.fromCharCode(65 + option);

export const plural = (count, one, many = `${one}s`) => `${amount(count)} ${count === 1 ? one : many}`;

/** "text on screen" -> "Text on screen". */
export const capitalised = (words) => words.charAt(0).toUpperCase() + words.slice(1);

export const spoken = (name) => name.replaceAll("_", " ");

/** The length of a film for a label: whole seconds, "0:05" and "1:02:03"; at least one. */
export const roundClock = (seconds) => shortClock(Math.max(1, seconds));

/** The last part of the place of a library. */
export const nameOf = (uri) => uri.replace(/\/+$/, "").split("/").pop() || uri;

const VERDICTS = { true: "yes", false: "no", null: "unsaid" };

/** What is known of one moment: a model's yes or no with its reason, or the space's probability; null of an order. */
export function judged({ present, probability, reason }) {
  if (reason) return el("small", { class: `judged ${VERDICTS[present]}`, dir: "auto" }, present === null ? reason : [el("b", {}, VERDICTS[present]), reason]);
  return probability === null ? null : el("small", { class: "judged quiet" }, `probability ${probability.toFixed(2)}`);
}
