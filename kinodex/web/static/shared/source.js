// Data and pictures, from the server or from this very file.

import { ROWS } from "viewer/shared/table.js";

const held = JSON.parse(document.getElementById("held")?.textContent ?? "null");

export const alone = held !== null;

export async function load(path) {
  if (held) {
    if (path in held.data) return held.data[path];
    throw new Error("That is not in this file; kinodex serve shows it.");
  }
  return valueOf(await reach(`/data/${path}`));
}

/** Sends a value to the server, and gives its reply. */
export async function send(path, value) {
  const headers = { "content-type": "application/json" };
  return valueOf(await reach(`/data/${path}`, { method: "POST", headers, body: JSON.stringify(value) }));
}

/** Fetches from the server; says to the whole page whether it answers ("reach" with `detail` true or false). */
async function reach(address, options) {
  let reply;
  try {
    reply = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    window.dispatchEvent(new CustomEvent("reach", { detail: false }));
    throw Object.assign(new Error("The server does not answer."), { gone: true, cause: error });
  }
  window.dispatchEvent(new CustomEvent("reach", { detail: true }));
  return reply;
}

/** The value of a reply; an error with the server's own words, whatever stands before it said them. */
export async function valueOf(reply) {
  const text = await reply.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    value = { error: `${new URL(reply.url).pathname} was answered with ${reply.status} ${reply.statusText}: ${text.trim().slice(0, 200) || "nothing"}` };
    if (reply.ok) throw Object.assign(new Error(value.error), { status: reply.status, unread: true });
  }
  if (!reply.ok) throw Object.assign(new Error(value.error), { status: reply.status });
  return value;
}

const ORDERS = {
  length: (one, other) => other.duration_s - one.duration_s,
  newest: (one, other) => String(other.ingested_at).localeCompare(String(one.ingested_at)),
};

/** A library's videos or failures that have some words, from the `start`-th on, as `{count, rows}`; `sort` is of videos. */
export async function rows(key, what, words, start, sort = "title", where = "") {
  const path = `libraries/${key}/${what}`;
  const order = { ...(what === "videos" && sort !== "title" ? { sort } : {}), ...(where ? { where } : {}) };
  if (!held) return load(`${path}?${new URLSearchParams({ words, start, ...order })}`);
  const text = (row) => [row.title, row.uri, row.message].join(" ").toLowerCase();
  const parts = words.toLowerCase().split(/\s+/);
  const found = (await load(path)).filter((row) => parts.every((part) => text(row).includes(part)));
  if (order.sort) found.sort(ORDERS[sort]);
  return { count: found.length, rows: found.slice(start, start + ROWS) };
}

/** The address of a frame's picture; null where there is none. */
export function picture(library, videoId, frameNo) {
  if (library === null || library === undefined || frameNo === null) return null;
  const name = `${library}/${videoId}/${frameNo}`;
  return held ? (held.pictures[name] ?? null) : `/pictures/${name}`;
}

/** The address of a video's poster; null where it has no frames, or this file has none. */
export function poster(library, row) {
  if (!row.frames) return null;
  return held ? picture(library, row.video_id, row.poster ?? null) : `/posters/${library}/${row.video_id}`;
}
