// Frames as small pictures, and one of them at full size.

import { button, copy, el } from "viewer/shared/dom.js";
import { picture } from "viewer/shared/source.js";
import { clock } from "viewer/shared/words.js";

/** A row of frames of a library; `marks` gives a frame's classes and words by its key. A click shows it at full size. */
export function strip(frames, library, titles, marks = () => ({})) {
  const several = Object.keys(titles).length > 1;
  return el(
    "div",
    { class: "strip" },
    frames.map((frame, at) => {
      const mark = marks(frame);
      const name =
        `${titles[frame.video_id] ?? ""} ${clock(frame.time_s)}${mark.words ? `, ${mark.words}` : ""}`.trim();
      const below = el("span", {}, mark.sign ?? "", several ? `${titles[frame.video_id] ?? ""} ` : "", clock(frame.time_s));
      const look = { class: `frame ${mark.class ?? ""}`, title: name, "aria-label": `Frame at ${name}` };
      return button([image(library, frame), below], () => enlarge(frames, at, library, titles), look);
    }),
  );
}

/** The picture of a frame, or the words that there is none. */
export function image(library, { video_id: video, frame_no: number }) {
  const source = picture(library, video, number);
  if (source === null) return el("span", { class: "blank" }, "no picture");
  return el("img", { src: source, alt: "", loading: "lazy", decoding: "async" });
}

/** A dialog with one of some frames; the arrow keys go to its neighbours. */
export function enlarge(frames, first, library, titles) {
  let at = first;
  const shown = el("div", { class: "large" });
  const caption = el("p", { class: "quiet" });
  const position = () => `${titles[frames[at].video_id] ?? frames[at].video_id} ${clock(frames[at].time_s)}`;
  const draw = () => {
    shown.replaceChildren(image(library, frames[at]));
    caption.replaceChildren(`${position()} · frame ${frames[at].frame_no} · ${at + 1} of ${frames.length}`);
  };
  const go = (step) => {
    at = (at + step + frames.length) % frames.length;
    draw();
  };
  const dialog = el(
    "dialog",
    {
      class: "lightbox",
      "aria-label": "Frame at full size",
      onclose: () => dialog.remove(),
      onclick: (event) => event.target === dialog && dialog.close(),
      onkeydown: (event) => {
        if (event.key === "ArrowLeft") go(-1);
        if (event.key === "ArrowRight") go(1);
        event.stopPropagation();
      },
    },
    shown,
    caption,
    el(
      "div",
      { class: "row" },
      button("← Before", () => go(-1)),
      button("Next →", () => go(1)),
      button("Copy position", () => copy(position())),
      button("Close", () => dialog.close(), { autofocus: true }),
    ),
  );
  draw();
  document.body.append(dialog);
  dialog.showModal();
}
