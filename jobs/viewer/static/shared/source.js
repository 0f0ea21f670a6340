// Data and pictures, from the server or from this very file.

import { ROWS } from "viewer/shared/table.js";

const held = JSON.parse(document.getElementById("held")?.textContent ?? "null");

export const alone = held !== null;

export async function load(path) {
  if (held) {
    if (path in held.data) return held.data[path];
    throw new Error("That is not in this file; kinodex view shows it.");
  }
  const reply = await fetch(`/data/${path}`);
  const value = await reply.json();
  if (!reply.ok) throw new Error(value.error);
  return value;
}

/** A library's videos or failures that have some words, from the `start`-th on, as `{count, rows}`. */
export async function rows(key, what, words, start) {
  const path = `libraries/${key}/${what}`;
  if (!held) return load(`${path}?${new URLSearchParams({ words, start })}`);
  const text = (row) => [row.title, row.uri, row.message].join(" ").toLowerCase();
  const found = (await load(path)).filter((row) => text(row).includes(words.toLowerCase()));
  return { count: found.length, rows: found.slice(start, start + ROWS) };
}

/** The address of a frame's picture; null where there is none. */
export function picture(library, videoId, frameNo) {
  if (library === null || library === undefined || frameNo === null) return null;
  const name = `${library}/${videoId}/${frameNo}`;
  return held ? (held.pictures[name] ?? null) : `/pictures/${name}`;
}
