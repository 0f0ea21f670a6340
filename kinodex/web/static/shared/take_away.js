// A menu that hands ranges of a video to other programs: files to download, and the command that makes them.

import { button, copy, el } from "viewer/shared/dom.js";
import { alone, load } from "viewer/shared/source.js";

const KINDS = [
  ["clip", "Clip (MP4)", "The pictures and sound of these ranges as a film, with what is said as subtitles."],
  ["vtt", "Subtitles (VTT)", "What is said, as a text file that web pages and players show."],
  ["srt", "Subtitles (SRT)", "What is said, as a text file that most players show."],
  ["edl", "Edit list (EDL)", "A list of cuts that editing programs such as Resolve or Premiere open."],
  ["otio", "Time line (OTIO)", "A time line for editing programs that read OpenTimelineIO."],
  ["csv", "Table (CSV)", "The ranges as a table for a spreadsheet."],
  ["jsonl", "Table (JSON lines)", "The ranges for your own programs."],
];

/**
 * A small menu for ranges of one video, each `{start_s, end_s}` in the library's time; `label` names them.
 * It is filled when it is opened. Without ranges it is about the whole video.
 */
export function takeAway(library, videoId, ranges, label = "") {
  if (alone || library === null || library === undefined) return null;
  const list = el("ul", { class: "take-list" });
  return el(
    "details",
    { class: "take-away", ontoggle: (event) => event.target.open && fill(list, { library, videoId, ranges, label }),
      onkeydown: closeOnEscape },
    el("summary", { title: "Download these ranges, or copy the command that exports them" }, "Export"),
    list,
  );
}

function closeOnEscape(event) {
  const menu = event.currentTarget;
  if (event.key !== "Escape" || !menu.open) return;
  event.stopPropagation();
  menu.open = false;
  menu.querySelector("summary").focus();
}

async function fill(list, moment) {
  if (list.childElementCount) return;
  const home = await load("home");
  const downloads = home.serve ? KINDS.filter(([kind]) => kind !== "clip" || moment.ranges.length).map((each) => link(moment, each)) : [];
  const uri = home.libraries[moment.library]?.uri ?? "LIBRARY";
  const about = { class: "link", title: "The command that cuts these ranges into files" };
  const commands = button("Copy the command", () => copy(command(uri, moment)), about);
  list.replaceChildren(...downloads, el("li", {}, commands));
  const isOver = list.getBoundingClientRect().right > document.documentElement.clientWidth;
  list.classList.toggle("from-right", isOver);
}

function link(moment, [kind, name, meaning]) {
  return el("li", {}, el("a", { href: address(moment, kind), download: "", title: meaning }, name));
}

/** The address of a download. */
export function address({ library, videoId, ranges, label }, kind) {
  const query = new URLSearchParams({ video: videoId });
  if (ranges.length) query.set("ranges", ranges.map(({ start_s, end_s }) => `${start_s}-${end_s}`).join(","));
  if (label && kind !== "vtt" && kind !== "srt") query.set("label", label);
  return `/data/libraries/${library}/export/${kind}?${query}`;
}

/** The command line of the same, one line a range. */
export function command(uri, { videoId, ranges }) {
  const parts = ranges.length ? ranges : [null];
  return parts
    .map((range, at) => {
      const folder = parts.length > 1 ? `clips-${at + 1}` : "clips";
      const times = range ? ` --from ${range.start_s} --to ${range.end_s}` : " --of videos";
      return `kinodex export clips ${quoted(uri)} ${folder} --video ${quoted(videoId)}${times}`;
    })
    .join("\n");
}

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
