"""A drawn film over RTSP into a library, for an hour: delay, missed, double. `python -m tests.bench.live FILM LOOP`.

FILM is drawn, with its script; LOOP is the same as a transport stream, over and over. The server is GStreamer's, on
this machine. After a third of the time the watching process is killed and started again; after two thirds the server
goes away for half a minute. A reader in this process looks at the library twice a second; notices come to a server in
this process, which answers every fifth with an error the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kinodex.errors import KinodexError
from kinodex.index.library import Library
from kinodex.index.metadata import shown_at
from kinodex.index.rows import VideoRow
from kinodex.index.sweep import audit
from kinodex.ingestion import ingest
from kinodex.jobs.library import grey_values
from kinodex.jobs.open import load_text_tower
from tests.support.servers import rtsp_server
from tests.world.drawn_space import DRAWN

QUERIES = (
    "a purple horse in the forest",
    "three flags and three green cats in the desert",
    "a bicycle in the mountains",
    "a blue flag",
    "a blue horse",
)
"""Shown in one shot of the film each, but for the last, which is in none."""
LOGIN = ("bench", "not-to-be-seen")
LOOK_S, AWAY_S, GAP_S, NEAR_S = 0.5, 30.0, 10.0, 2.0
COMMAND = [sys.executable, "-c", "from kinodex.cli.main import main; main()"]


class Receiver:
    """Takes notices, and refuses every fifth once."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, dict[str, Any]]] = []
        self.refused: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                notice = json.loads(self.rfile.read(int(self.headers["content-length"])))
                ids = {each["id"] for _, each in outer.taken} | outer.refused
                refuse = notice["id"] not in ids and len(ids) % 5 == 4
                if refuse:
                    outer.refused.add(notice["id"])
                else:
                    outer.taken.append((time.time(), notice))
                self.send_response(500 if refuse else 200)
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def start_server(film: str, port: int, sent: str) -> tuple[subprocess.Popen[str], str]:
    command = [rtsp_server.SYSTEM_PYTHON, rtsp_server.__file__, film, str(port), sent, *LOGIN]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


def start_watch(address: str, notify: str, log: str) -> subprocess.Popen[bytes]:
    place = address.replace("://", f"://{':'.join(LOGIN)}@")
    asked = [word for query in QUERIES for word in ("--query", query)]
    with Path(log).open("ab") as out:
        return subprocess.Popen(
            [*COMMAND, "watch", place, "--library", "library", "--space", DRAWN, "--name", "camera",
             "--notify", notify, *asked],
            stdout=out, stderr=out,
        )  # fmt: skip


def look(seen: list[tuple[float, str, float]], library: Library | None) -> Library | None:
    """Note how far each part reaches for a reader now."""
    try:
        library = library or Library.open("library")
        reached = {video_id: end_s for _, video_id, end_s in seen}
        seen += [
            (time.time(), row.video_id, row.end_s)
            for row in library.videos()
            if reached.get(row.video_id, -1.0) < row.end_s
        ]
    except KinodexError:  # it is being made
        return None
    return library


def run(film: str, seconds: float) -> tuple[list[tuple[float, str, float]], Receiver, float]:
    """Stream and watch; returns what a reader saw, what was told, and CPU seconds of the second watching process."""
    receiver, seen, library = Receiver(), list[tuple[float, str, float]](), None
    notify = f"http://127.0.0.1:{receiver.server.server_port}/told"
    server, address = start_server(film, 0, "sent.txt")
    port = int(address.rpartition(":")[2].partition("/")[0])
    watch = start_watch(address, notify, "watch.log")
    began, is_killed, away_until = time.monotonic(), False, 0.0
    while (spent_s := time.monotonic() - began) < seconds:
        if not is_killed and spent_s > seconds / 3:
            watch.kill()
            watch.wait()
            watch, is_killed = start_watch(address, notify, "watch.log"), True
        if not away_until and spent_s > 2 * seconds / 3:
            server.kill()
            server.wait()
            away_until = time.monotonic() + AWAY_S
        if away_until and time.monotonic() > away_until and server.poll() is not None:
            server, address = start_server(film, port, "sent.txt")
        library = look(seen, library)
        assert watch.poll() is None, Path("watch.log").read_text()
        time.sleep(LOOK_S)
    watch.send_signal(signal.SIGINT)
    _, _, usage = os.wait4(watch.pid, 0)
    server.kill()
    return seen, receiver, usage.ru_utime + usage.ru_stime


# What came of it.


def read_sent() -> list[tuple[float, int, float]]:
    """When each picture left the server, to which client (those of a second server from 100 on), and its time."""
    found, server, last = list[tuple[float, int, float]](), 0, 0
    for line in Path("sent.txt").read_text().splitlines():
        client, pts_s, at = line.split()
        server += 100 * (int(client) < last)  # it counts anew
        last = int(client)
        found.append((float(at), server + last, float(pts_s)))
    return sorted(found)


def at_clock(left: list[float], moment: datetime) -> int:
    """The place of the picture that left nearest to a moment."""
    at = bisect_left(left, moment.timestamp())
    return min(
        (each for each in (at - 1, at) if 0 <= each < len(left)), key=lambda n: abs(left[n] - moment.timestamp())
    )


Moments = dict[str, list[tuple[float, float]]]


def true_moments(film: str) -> Moments:
    """The moments of each query in the film as a file, by the same space and threshold."""
    ingest(film, library="as_file", space=DRAWN)
    library = Library.open("as_file")
    (video,) = library.videos()
    held = library.vectors(video.video_id)
    found: dict[str, list[tuple[float, float]]] = {}
    for query, vector in zip(QUERIES, load_text_tower(library, None).embed_text(list(QUERIES)), strict=True):
        sigmoid = library.sigmoid(library.fingerprint, query)
        assert sigmoid is not None
        cosines = (held.vectors.astype(np.float64) @ vector.astype(np.float64)).tolist()
        moments: list[tuple[float, float]] = []
        for time_s, cosine in zip(held.time_s.tolist(), cosines, strict=True):
            if sigmoid.probability(cosine) < 0.5:
                continue
            goes_on = moments and time_s - moments[-1][1] <= GAP_S
            moments = [*moments[:-1], (moments[-1][0], time_s)] if goes_on else [*moments, (time_s, time_s)]
        found[query] = moments
    return found


def misplaced(library: Library, video: VideoRow, start_s: float, as_file: Library, loop_s: float) -> tuple[int, int]:
    """Of how many pictures the film shows another at their time than is stored, and of how many that was asked."""
    (film,) = as_file.videos()
    frames = as_file.vectors(film.video_id)
    greys = np.stack([grey_values(each) for each in as_file.frames(film.video_id, frames.frame_no.tolist())]).astype(
        float
    )
    held = library.vectors(video.video_id)
    rows = library.frames(video.video_id, held.frame_no.tolist()[:: max(1, len(held.frame_no) // 400)])
    wrong = 0
    for row in rows:
        errors = np.abs(greys - grey_values(row).astype(float)).reshape(len(greys), -1).mean(1)
        off_s = np.abs((frames.time_s - start_s - row.time_s + loop_s / 2) % loop_s - loop_s / 2)
        wrong += bool(errors[off_s <= NEAR_S].min() > errors.min() + 1.0)
    return wrong, len(rows)


def occurrences(
    library: Library, parts: list[VideoRow], starts_s: list[float], truth: Moments, loop_s: float
) -> list[tuple[str, float, float]]:
    """Every time that a query was to be seen, by the clock; those of one query less than a gap apart are one."""
    found: dict[str, list[tuple[float, float]]] = {query: [] for query in QUERIES}
    columns = library.metadata.of([row.video_id for row in parts])
    for row, start_s in zip(parts, starts_s, strict=True):
        began = shown_at(columns[row.video_id], row, row.start_s)
        assert began is not None
        for query, moments in truth.items():
            for loop in range(int(row.duration_s / loop_s) + 2):
                for first_s, last_s in moments:
                    lower, upper = (loop * loop_s + each - start_s for each in (first_s, last_s))
                    if min(upper, row.duration_s) - max(lower, 0.0) >= 1.0:  # at least one sample of it
                        at = began.timestamp() + max(lower, 0.0), began.timestamp() + min(upper, row.duration_s)
                        before = found[query][-1:] if found[query] and at[0] - found[query][-1][1] <= GAP_S else []
                        if before:
                            found[query][-1] = (before[0][0], at[1])
                        else:
                            found[query].append(at)
    return [(query, *each) for query, several in found.items() for each in several]


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    at = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"median {statistics.median(ordered):.1f} s, 95 % {at:.1f} s, most {ordered[-1]:.1f} s"


def report(
    film: str, seconds: float, seen: list[tuple[float, str, float]], taken: list[Any], refused: int, cpu_s: float
) -> None:
    library, sent = Library.open("library"), read_sent()
    left = [at for at, _, _ in sent]
    parts = library.videos()
    columns = library.metadata.of([row.video_id for row in parts])
    parts.sort(key=lambda row: columns[row.video_id]["recorded_at"])
    truth = true_moments(film)
    as_file = Library.open("as_file")
    loop_s = as_file.videos()[0].duration_s
    delays, clock_off, holes, doubles, frames = list[float](), list[float](), 0, 0, 0
    for row in parts:
        reached = [(end_s, at) for at, video_id, end_s in seen if video_id == row.video_id]
        numbers = library.tables.rows("frames", None, ["video_id", "frame_no"]).to_pylist()
        counts = Counter(each["frame_no"] for each in numbers if each["video_id"] == row.video_id)
        doubles += sum(count - 1 for count in counts.values())
        holes += max(counts) + 1 - len(counts)
        held = library.vectors(row.video_id)
        frames += len(held.frame_no)
        for time_s in held.time_s.tolist():
            shown = shown_at(columns[row.video_id], row, time_s)
            assert shown is not None
            nearest = left[at_clock(left, shown)]
            clock_off.append(abs(nearest - shown.timestamp()))
            if visible := [each for end_s, each in reached if end_s > time_s]:
                delays.append(visible[0] - nearest)
    print(f"RTSP for {seconds / 60:.0f} minutes, {frames:,} frames stored in {len(parts)} parts, at 1 a second")
    print(f"picture to row, as another process reads it: {spread(delays)}")
    print(f"clock of a row and when its picture left: {spread(clock_off)}")
    print(f"missed within parts: {holes}; double: {doubles}")
    for before, row in pairwise(parts):
        borders = (before, before.end_s), (row, row.start_s)
        ends, begins = (shown_at(columns[each.video_id], each, at) for each, at in borders)
        assert ends is not None and begins is not None
        true_s = sent[at_clock(left, begins)][0] - sent[bisect_right(left, ends.timestamp() + 0.2) - 1][0]
        said_s = columns[row.video_id]["gap_s"]
        print(f"between two parts: gap_s says {said_s:.1f} s, the server's pictures {true_s:.1f} s")
    starts_s = []
    for row in parts:
        began = shown_at(columns[row.video_id], row, row.start_s)
        assert began is not None
        _, client, pts_s = sent[at_clock(left, began)]
        starts_s.append(pts_s - next(each[2] for each in sent if each[1] == client))
        wrong, looked = misplaced(library, row, starts_s[-1], as_file, loop_s)
        print(f"part of {row.duration_s / 60:.1f} minutes: {wrong} of {looked} pictures are not those of their time")
    occurred = occurrences(library, parts, starts_s, truth, loop_s)
    told = [
        (notice["query"], datetime.fromisoformat(notice["recorded_at"]).timestamp(), at, notice["id"])
        for at, notice in taken
    ]
    per_moment = [
        sum(query == asked and first_s - NEAR_S <= at_s <= last_s + NEAR_S for asked, at_s, _, _ in told)
        for query, first_s, last_s in occurred
    ]
    stray = [
        asked
        for asked, at_s, _, _ in told
        if not any(
            query == asked and first_s - NEAR_S <= at_s <= last_s + NEAR_S for query, first_s, last_s in occurred
        )
    ]
    ids = Counter(each[3] for each in told)
    print(
        f"standing queries: {len(occurred)} moments shown, {sum(count > 0 for count in per_moment)} told, "
        f"{per_moment.count(0)} missed, {sum(count > 1 for count in per_moment)} told twice, {len(stray)} of nothing; "
        f"{refused} refused once by the receiver, {sum(count - 1 for count in ids.values())} came twice by id"
    )
    print(f"moment to notice: {spread([at - at_s for _, at_s, at, _ in told])}")
    problems = audit(library, deep=True).problems
    files = [path for path in Path("library").rglob("*") if path.is_file()]
    size_bytes = sum(path.stat().st_size for path in files)
    print(f"library: {len(problems)} problems, {size_bytes / 1e6:.0f} MB in {len(files):,} files")
    print(f"CPU of the watching process since its restart: {60 * cpu_s / (seconds * 2 / 3):.1f} s a minute")
    written = b"".join(path.read_bytes() for path in [*files, Path("watch.log")])
    print(f"the camera's password in library or output: {written.count(LOGIN[1].encode())} times")
    print("watch said:", *sorted(Counter(Path("watch.log").read_text().splitlines()).items()), sep="\n  ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("film")
    parser.add_argument("loop")
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    looked, came, spent_s = run(given.loop, given.minutes * 60)
    kept = [given.minutes * 60, looked, came.taken, len(came.refused), spent_s]
    Path("seen.json").write_text(json.dumps(kept))
    report(given.film, *kept)
