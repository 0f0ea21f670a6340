// Where data and pictures come from: the server, or this very file.

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

/** The address of a frame's picture; null where there is none. */
export function picture(library, videoId, frameNo) {
  if (library === null || library === undefined || frameNo === null) return null;
  const name = `${library}/${videoId}/${frameNo}`;
  return held ? (held.pictures[name] ?? null) : `/pictures/${name}`;
}
