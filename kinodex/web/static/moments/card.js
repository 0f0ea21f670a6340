// One moment: its first and its last picture, its times, why it was found, and what can be done with it.

import { videoAddress } from "viewer/moments/address.js";
import { playButton } from "viewer/play/player.js";
import { button, el } from "viewer/shared/dom.js";
import { image } from "viewer/shared/frames.js";
import { takeAway } from "viewer/shared/take_away.js";
import { clock, judged, span } from "viewer/shared/words.js";

const FOUND_IN = {
  frames: "seen in the pictures",
  words: "in what is said, written or described",
  evidence: "what the agent's answer rests on",
};

/** The card of a range of `video`; `seek(time)` goes there on the page of the video itself, null elsewhere. */
export function momentCard(key, video, range, text, fields, seek) {
  const name = `${video.title} ${span(range)}`;
  const open = { href: videoAddress(key, video.video_id, range.start_s, fields), "aria-label": `Open ${name}` };
  const ends = [end(key, video, range.begin_frame, "begins", range.start_s), end(key, video, range.end_frame, "ends", range.end_s)];
  return el(
    "article",
    { class: "card hit moment-card", "aria-label": `Moment ${range.number}: ${span(range)}` },
    seek
      ? button(ends, () => seek(range.start_s), { class: "ends", "aria-label": `Go to ${span(range)}` })
      : el("a", { ...open, class: "ends" }, ends),
    el(
      "div",
      {},
      el("div", { class: "hit-line" }, el("b", { class: "number" }, range.number), el("b", {}, span(range)), el("span", { class: "quiet" }, length(range)), judged(range)),
      el("p", { class: "why", dir: "auto" }, range.words ? [`${FOUND_IN.words}: `, range.words] : (FOUND_IN[range.found_in] ?? range.found_in)),
      el(
        "div",
        { class: "hit-line" },
        playButton(key, video, name, range.play),
        seek ? null : el("a", { ...open, class: "like", "aria-label": `On the time line: ${name}` }, "On the time line"),
        takeAway(key, video.video_id, [range.play], text),
      ),
    ),
  );
}

/** One end of a range as a picture with its time. */
const end = (key, { video_id }, frame_no, word, time) =>
  el("span", { class: "end" }, image(key, { video_id, frame_no }), el("small", {}, `${word} ${clock(time)}`));

const length = ({ start_s, end_s }) => `${(end_s - start_s).toFixed(1)} s long`;
