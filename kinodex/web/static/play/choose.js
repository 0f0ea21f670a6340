// How to play a video: what the server says of it, or the stored frames where there is no server that plays.

import { alone, load } from "viewer/shared/source.js";

const WORDS = {
  file: "Plays the file itself",
  remuxed: "Repacked while it streams: the same pictures in a container that browsers open",
  transcoded: "Converted while it streams: the pictures are encoded again, which costs some quality",
  slideshow: "Stored frames with the transcript",
};

/** One line that says how a video is shown, and why. */
export const said = (playback) => `${WORDS[playback.way]}, because ${playback.why}.`;

/** Asks the server how to play a video from a time on; `failed` are ways that this browser tried in vain. */
export async function choose(library, row, from, failed) {
  const slideshow = (why) => ({ way: "slideshow", why, start_s: row.start_s, duration_s: row.duration_s });
  if (alone) return slideshow("this is one file without a server");
  const home = await load("home");
  if (!home.serve) return slideshow("This page shows what is stored; “kinodex serve” with the library plays the file");
  const query = new URLSearchParams({ from, failed: [...failed].join(","), hevc: plays(HEVC) ? 1 : 0 });
  return load(`libraries/${library}/videos/${encodeURIComponent(row.video_id)}/playback?${query}`);
}

const HEVC = 'video/mp4; codecs="hvc1.1.6.L93.B0"';
const plays = (type) => document.createElement("video").canPlayType(type) === "probably";
