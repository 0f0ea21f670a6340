// A picture as a search: dropped on the page, pasted, or chosen.

import { button, el, tell } from "viewer/shared/dom.js";
import { valueOf } from "viewer/shared/source.js";

const MOST_BYTES = 10_000_000;
/** Pictures of this visit by the name that the address holds: an address cannot hold a picture. */
const held = new Map();

export const heldPicture = (name) => held.get(name) ?? null;

/** Takes a picture and passes the name that stands for it in the address to `found`. */
function take(file, found) {
  if (!file) return;
  if (!file.type.startsWith("image/")) return tell("That is not a picture. Drop a JPEG, PNG, WebP, GIF or BMP file.");
  if (file.size > MOST_BYTES) return tell("That picture is larger than 10 MB. Make it smaller and drop it again.");
  const name = `${held.size + 1}`;
  held.set(name, file);
  found(name);
}

/** A button to choose a picture; while `place` is on the page, a picture can also be dropped anywhere, or pasted. */
export function pictureButton(place, found) {
  const chooser = el("input", {
    type: "file",
    accept: "image/jpeg,image/png,image/webp,image/gif,image/bmp",
    hidden: true,
    "aria-label": "Picture to search by",
    onchange: () => {
      take(chooser.files[0], found);
      chooser.value = "";
    },
  });
  const listeners = {
    dragover: (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      place.classList.add("drop");
    },
    dragleave: (event) => event.relatedTarget === null && place.classList.remove("drop"),
    drop: (event) => {
      place.classList.remove("drop");
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault(); // else the browser opens the file in place of the page
      take(event.dataTransfer.files[0], found);
    },
    paste: (event) => {
      const file = [...(event.clipboardData?.files ?? [])].find((each) => each.type.startsWith("image/"));
      if (file) take(file, found);
    },
  };
  for (const [name, listen] of Object.entries(listeners)) {
    const once = (event) => {
      if (place.isConnected) listen(event);
      else document.removeEventListener(name, once);
    };
    document.addEventListener(name, once);
  }
  const title = "Find frames that look like a picture. It can also be dropped on this page, or pasted";
  return [button("By picture…", () => chooser.click(), { title }), chooser];
}

/** Searches by a held picture, with the other fields of the search. */
export async function searchPicture(key, name, query) {
  const file = held.get(name);
  if (!file) throw new Error("The picture of this search is gone with the visit. Drop it here again.");
  const headers = { "content-type": file.type };
  const reply = await fetch(`/data/libraries/${key}/search/picture?${query}`, { method: "POST", headers, body: file });
  return valueOf(reply);
}
