"""Cuts of ingest and of `kinodex add shots` against true ones: found within a frame, missed, false; and their cost.

Run: python -m tests.support.scenes.measure_cuts join FOLDER CLIPS, which has ffmpeg join pieces of real clips by hard
cuts, dissolves and fades at known places (FOLDER/NAME.cuts.json); then, with libraries in which shots were not added,
python -m tests.support.scenes.measure_cuts measure LIBRARY FOLDER INGEST_CPU_S, or `filter` for the cuts that ffmpeg's
`select='gt(scene,0.4)'` finds in the library's own files.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from kinodex.index.library import Library
from kinodex.index.rows import SegmentRow, VideoRow
from kinodex.jobs.add.run import add
from kinodex.jobs.add.stages import Shots

True_ = tuple[float, float]
"""First frame that is not only of the shot before, and first that is only of the one after: the same for a cut."""
FPS, PIECES, LONGEST_S = 25, 24, 6.0
POOL = (
    ("moviepy__big_buck_bunny_0_30.webm", 1.0, 11.5),
    ("simpl__gbike_ride_31s.webm", 0.0, 30.0),
    ("intel__one-by-one-person-detection.mp4", 0.0, 130.0),
    ("video2dataset__test_video.mp4", 0.0, 120.0),
    ("askanything__making_cake.mp4", 0.0, 9.5),
    ("clipvideoencode__vid2.mp4", 0.0, 5.0),
)
"""Clips that the thresholds of kinodex/pipeline/cuts.py were not chosen by, and a stretch of each without cuts."""


def join(folder: Path, clips: Path, films: int = 3) -> None:
    """Join pieces of clips to films, and note where."""
    folder.mkdir(parents=True)
    for number in range(films):
        _joined(folder / f"joined-{number}.mp4", clips, random.Random(1000 + number))


def _joined(out: Path, clips: Path, rng: random.Random) -> None:
    inputs: list[str] = []
    graph, true, place, last = [], list[True_](), 0, ""
    shown = "scale=640:360:force_original_aspect_ratio=increase,crop=640:360,setsar=1,format=yuv420p"
    still = f"settb=1/{FPS},setpts=N"
    for number in range(PIECES):
        name, start_s, end_s = rng.choice([each for each in POOL if each[0] != last])
        last, frames = name, round(rng.uniform(2.5, min(LONGEST_S, end_s - start_s)) * FPS)
        begin_s = round(rng.uniform(start_s, end_s - frames / FPS), 3)
        inputs += ["-ss", str(begin_s), "-t", str(frames / FPS + 1), "-i", str(clips / name)]
        pad = f"tpad=stop=-1:stop_mode=clone,trim=end_frame={frames},{still}"
        graph.append(f"[{number}:v]{shown},fps={FPS},{pad}[v{number}]")
        if not number:
            graph.append("[v0]null[x0]")
            place = frames
            continue
        before, here = f"[x{number - 1}]", f"[v{number}]"
        way, long = rng.choice(["cut", "cut", "cut", "dissolve", "fade"]), rng.choice([12, 20, 30])
        if way == "dissolve":
            graph.append(f"{before}{here}xfade=duration={long / FPS}:offset={(place - long) / FPS},{still}[x{number}]")
            true.append(((place - long + 1) / FPS, place / FPS))
            place += frames - long
            continue
        if way == "fade":
            graph.append(f"{before}fade=t=out:start_frame={place - long}:nb_frames={long}[o{number}]")
            graph.append(f"{here}fade=t=in:start_frame=0:nb_frames={long}[i{number}]")
            before, here = f"[o{number}]", f"[i{number}]"
        graph.append(f"{before}{here}concat=n=2,{still}[x{number}]")
        true.append(((place - long + 1) / FPS, (place + long) / FPS) if way == "fade" else (place / FPS, place / FPS))
        place += frames
    command = ["ffmpeg", "-nostdin", "-v", "error", *inputs, "-filter_complex", ";".join(graph), "-map"]
    encoded = ["-r", str(FPS), "-c:v", "libx264", "-preset", "veryfast", str(out)]
    subprocess.run([*command, f"[x{PIECES - 1}]", *encoded], check=True)
    out.with_suffix(".cuts.json").write_text(json.dumps(true), encoding="utf-8")


def true_cuts(video: VideoRow, folder: Path | None) -> list[True_]:
    """The cuts of a film by the note beside it, by its script, or by ffmpeg's filter."""
    path = Path(unquote(video.uri.removeprefix("file://")))
    if folder is None:
        find = ["-vf", "select='gt(scene,0.4)',metadata=print:file=-", "-an", "-f", "null", "-"]
        printed = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), *find], check=True, capture_output=True)
        times_s = [
            float(line.split("pts_time:")[1]) for line in printed.stdout.decode().splitlines() if "pts_t" in line
        ]
        return [(each - video.zero_s, each - video.zero_s) for each in times_s]
    note = folder / f"{path.stem}.cuts.json"
    if note.exists():
        return [(begin_s, end_s) for begin_s, end_s in json.loads(note.read_text(encoding="utf-8"))]
    from tests.world.sketch.render import FADE_FRAMES
    from tests.world.sketch.script import FPS as DRAWN_FPS

    script = json.loads((folder / f"{path.stem}.script.json").read_text(encoding="utf-8"))
    fade_s = {"cut": 0.0}
    faded_s = (FADE_FRAMES - 1) / DRAWN_FPS
    return [(each["start_s"], each["start_s"] + fade_s.get(each["entry"], faded_s)) for each in script["shots"][1:]]


def agreement(true: Sequence[True_], shots: Sequence[SegmentRow], frame_s: float) -> dict[str, int]:
    """Count the true cuts and fades that are found within a frame of where they are, those found at all, and others.

    A cut within 1.5 s is found at all. Of a fade that is found exactly both ends are within a frame; without ends, as
    ingest finds it, it is where it lies in the fade.
    """
    near_s, exact_s = 1.5, 1.01 * frame_s
    left = [*shots]
    counts = dict.fromkeys(("cuts", "cuts exact", "cuts near", "fades", "fades in", "fades exact", "false"), 0)
    for begin_s, end_s in true:
        kind = "cuts" if begin_s == end_s else "fades"
        counts[kind] += 1
        low_s, high_s = begin_s - near_s, end_s + near_s
        found = [each for each in left if low_s <= each.start_s <= high_s]
        if not found:
            continue
        best = min(found, key=lambda each: abs(each.start_s - (begin_s + end_s) / 2))
        left = [each for each in left if each is not best and not (kind == "fades" and each in found)]
        is_in = begin_s - exact_s <= best.start_s <= end_s + exact_s
        if kind == "cuts":
            counts["cuts near"] += 1
            counts["cuts exact"] += is_in
            continue
        counts["fades in"] += is_in
        if best.fade_start_s is not None and best.fade_end_s is not None:
            off_s = max(abs(best.fade_start_s - begin_s), abs(best.fade_end_s - end_s))
            counts["fades exact"] += off_s <= exact_s
    return counts | {"false": len(left)}


def measure(uri: str, folder: Path | None, ingest_cpu_s: float) -> None:
    library = Library.open(uri)
    true = {video.video_id: true_cuts(video, folder) for video in library.videos()}
    _print("ingest", library, true, f"{ingest_cpu_s:.1f} s")
    before_s = cpu_s()
    add(library, Shots())
    _print("add shots", Library.open(uri), true, f"{cpu_s() - before_s:.1f} s")


def _print(name: str, library: Library, true: dict[str, list[True_]], cost: str) -> None:
    total = dict[str, int]()
    for video in library.videos():
        shots = [each for each in library.segments(video.video_id)[1:] if each.start_s in _shot_starts(library, video)]
        counts = agreement(true[video.video_id], shots, 1 / (video.fps or 25.0))
        total = {key: total.get(key, 0) + count for key, count in counts.items()}
    missed = total["cuts"] - total["cuts near"]
    print(
        f"{name}: cuts within a frame {total['cuts exact']}/{total['cuts']}, missed {missed}; "
        f"fades: cut inside {total['fades in']}/{total['fades']}, both ends within a frame {total['fades exact']}; "
        f"false {total['false']}; CPU {cost}"
    )


def _shot_starts(library: Library, video: VideoRow) -> set[float]:
    from kinodex.jobs.export.moment_rule import cut_times

    return set(cut_times(library.segments(video.video_id)))


def cpu_s() -> float:
    """CPU seconds of this process and its children that ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "join":
        join(Path(arguments[0]), Path(arguments[1]))
    elif what == "timed":
        subprocess.run(arguments[1:], check=True, stdout=sys.stderr)
        Path(arguments[0]).write_text(str(cpu_s()), encoding="utf-8")
    else:
        taken_s = float(Path(arguments[-1]).read_text(encoding="utf-8"))
        measure(arguments[0], None if what == "filter" else Path(arguments[1]), taken_s)
