// Frames as small pictures, and one of them at full size.

import { copy, el } from "viewer/shared/dom.js";
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
      return el(
        "button",
        {
          class: `frame ${mark.class ?? ""}`,
          type: "button",
          title: name,
          "aria-label": `Frame at ${name}`,
          onclick: () => enlarge(frames, at, library, titles),
        },
        image(frame, library),
        el("span", {}, mark.sign ?? "", several ? `${titles[frame.video_id] ?? ""} ` : "", clock(frame.time_s)),
      );
    }),
  );
}

function image(frame, library) {
  const source = picture(library, frame.video_id, frame.frame_no);
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
    shown.replaceChildren(image(frames[at], library));
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
      el("button", { type: "button", class: "plain", onclick: () => go(-1) }, "← Before"),
      el("button", { type: "button", class: "plain", onclick: () => go(1) }, "Next →"),
      el("button", { type: "button", class: "plain", onclick: () => copy(position()) }, "Copy position"),
      el("button", { type: "button", class: "plain", autofocus: true, onclick: () => dialog.close() }, "Close"),
    ),
  );
  draw();
  document.body.append(dialog);
  dialog.showModal();
}
