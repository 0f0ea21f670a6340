"""Sources that grow: their rows are those of the finished film, whatever happens in between, and moments told once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.container import InputContainer

from kinodex.index.library import Library
from kinodex.index.metadata import shown_at
from kinodex.index.sweep import audit, sweep
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.live.source import LiveSource, NewRows
from kinodex.jobs.live.watch import watch_live
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.standing_queries import StandingQueries
from kinodex.pipeline.errors import PlaylistRefused, SourceForbidden, SourceMissing, SourceUnreachable
from kinodex.pipeline.live.playlist import read_playlist
from kinodex.pipeline.sample import FrameRow
from kinodex.requests import Find
from kinodex.search.finder import Finder
from tests.support.command import Kinodex
from tests.support.house.once import made_once
from tests.support.libraries.corpus import draw_film, ingest
from tests.support.loopback import address_without_server, serve_handler
from tests.support.processes import ending_process
from tests.support.servers import rtsp_server
from tests.support.servers.files import serve_folder
from tests.support.servers.looking_server import looking_server
from tests.world.drawn_space import DRAWN

CONFIG = IngestConfig(space=DRAWN, text_tower=False)
QUICK = LiveSource("", "camera", flush_s=0.2, stall_s=1.0)
FILM_S = 21.0
"""Length of the film, of which a frame a second is stored; key frames are ten seconds apart."""
PART_BYTES = 20_000
LATE_S = 10
"""Presentation time at which the stream begins."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film as a transport stream, whole, and as an HLS playlist of its parts from key frame to key frame."""

    def make(folder: Path) -> None:
        folder.mkdir()
        draw_film(folder / "film.mp4", FILM_S, 3)
        lengths = _write_streams(folder / "film.mp4", folder)
        lines = [line for at, length_s in enumerate(lengths) for line in (f"#EXTINF:{length_s:.3f},", f"{at}.ts")]
        head = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXT-X-MEDIA-SEQUENCE:0"]
        (folder / "list.m3u8").write_text("\n".join([*head, *lines, "#EXT-X-ENDLIST", ""]))

    return made_once(tmp_path_factory, "streams", make)


def _write_streams(film: Path, folder: Path) -> list[float]:
    """Write a film as a transport stream, and its parts as others whose times go on; returns their lengths in s."""
    with av.open(str(film)) as source:
        packets = [packet for packet in source.demux(source.streams.video[0]) if packet.dts is not None]
        starts = [at for at, packet in enumerate(packets) if packet.is_keyframe]
        times_s = [float((packets[at].pts or 0) * packets[at].time_base) for at in starts] + [FILM_S]
        spans = enumerate(zip(starts, [*starts[1:], len(packets)], strict=True))
        _mux(source, folder / "film.ts", 0, None)
        for number, span in spans:
            _mux(source, folder / f"{number}.ts", *span)
    return [after - before for before, after in pairwise(times_s)]


def _mux(source: InputContainer, out: Path, first: int, until: int | None) -> None:
    source.seek(0)
    packets = [packet for packet in source.demux(source.streams.video[0]) if packet.dts is not None]
    with av.open(str(out), "w", format="mpegts") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in packets[first:until]:
            later = round(LATE_S / packet.time_base)  # so that no time is below 0, and none is moved
            packet.pts, packet.dts = (packet.pts or 0) + later, (packet.dts or 0) + later
            packet.stream = stream
            target.mux(packet)


def rows_of(place: Path | str) -> tuple[list[int], list[float], Any]:
    """Numbers, times after the beginning and vectors of the frames of a library's one video."""
    library = Library.open(str(place))
    (video,) = library.videos()
    held = library.vectors(video.video_id)
    return held.frame_no.tolist(), [round(at - video.start_s, 3) for at in held.time_s.tolist()], held.vectors


@pytest.fixture(scope="session")
def finished(streams: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[int], list[float], Any]:
    """The rows of the whole stream, as an ingest makes them."""
    folder = tmp_path_factory.mktemp("finished")
    shutil.copy(streams / "film.ts", folder / "film.ts")
    ingest(folder, folder / "library")
    return rows_of(folder / "library")


def check_as_finished(place: Path, finished: tuple[list[int], list[float], Any]) -> None:
    """Every frame of the film is there once, with its time and its vector, and so the library says itself."""
    numbers, times_s, vectors = rows_of(place)
    assert (numbers, times_s) == finished[:2]
    assert np.array_equal(vectors, finished[2])
    assert audit(Library.open(str(place)), deep=True).problems == ()


@contextmanager
def written(film: Path, path: Path, pause_s: float = 0.1) -> Iterator[None]:
    """Write a film bit by bit, as a recorder does, within a block and to its end."""

    def write() -> None:
        content = film.read_bytes()
        with path.open("ab") as file:
            for first in range(0, len(content), PART_BYTES):
                file.write(content[first : first + PART_BYTES])
                file.flush()
                time.sleep(pause_s)

    thread = threading.Thread(target=write)
    thread.start()
    yield
    thread.join()


def test_a_file_that_is_written_becomes_the_rows_of_the_finished_film_as_it_comes(
    streams: Path, finished: tuple[list[int], list[float], Any], tmp_path: Path
) -> None:
    seen: list[NewRows] = []
    path, place = tmp_path / "film.ts", tmp_path / "library"
    began = time.time()
    with written(streams / "film.ts", path):
        watch_live(CONFIG, replace(QUICK, address=str(path)), str(place), on_rows=seen.append)
    assert len(seen) > 3, "rows came while it was written"
    assert seen[0].is_first and [each.frames for each in seen] != [FILM_S]
    check_as_finished(place, finished)
    library = Library.open(str(place))
    (video,) = library.videos()
    columns = library.metadata.of([video.video_id])[video.video_id]
    assert columns["live_source"] == "camera" and "gap_s" not in columns
    first_at = shown_at(columns, video, video.start_s)
    assert first_at is not None and began - 60 < first_at.timestamp() < time.time()
    (hit,) = Finder(library).find(Find(query="a boat", in_="frames", k=1))
    assert hit.recorded_at == shown_at(columns, video, hit.time_s)
    segments = library.segments(video.video_id)
    assert [each.start_s for each in segments[1:]] == [each.end_s for each in segments[:-1]]
    assert segments[-1].end_s == video.end_s

    watch_live(CONFIG, replace(QUICK, address=str(path)), str(place))  # nothing is new
    assert ingest(path, place).left_out == 1, "an ingest knows it too"
    check_as_finished(place, finished)


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from kinodex.cli.main import main; main()", "watch", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_watch_goes_on_without_a_gap_or_a_double(
    streams: Path, finished: tuple[list[int], list[float], Any], tmp_path: Path, kinodex: Kinodex
) -> None:
    path, place = tmp_path / "film.ts", tmp_path / "library"
    options = ("--live", "--space", DRAWN, "--json", "--stall", "3")
    arguments = (str(path), "--library", str(place), *options)
    content = (streams / "film.ts").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    watching = start(*arguments)
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    assert first["frames"] and first["recorded_at"]
    watching.send_signal(signal.SIGKILL)
    watching.communicate()
    with path.open("ab") as file:
        file.write(content[len(content) // 2 :])
    library = Library.open(str(place))
    (video,) = library.videos()
    assert 0 < video.frames < FILM_S
    held = library.frames(video.video_id, [0])[0]
    surplus = [
        FrameRow(900, 900.0, held.width_px, held.height_px, held.jpeg, library.vectors(video.video_id).vectors[0])
    ]
    library.writer.add_frames({video.video_id: surplus})  # as if it had died before the row of the part
    assert audit(library).broken == (video.video_id,)
    with library.lease("ingest", "test"):
        assert sweep(library) == 1
    assert audit(library).problems == ()

    again = kinodex("watch", *arguments)
    assert again.code == 0, again
    assert sum(json.loads(line)["frames"] for line in again.out.splitlines()) == FILM_S - video.frames
    check_as_finished(place, finished)


class Publisher:
    """Publishes the segments of a playlist one after the other, of which the last few are listed."""

    def __init__(self, streams: Path, folder: Path) -> None:
        self.folder, self._streams = folder, streams
        text = (streams / "list.m3u8").read_text().splitlines()
        self.lengths = [line for line in text if line.startswith("#EXTINF")]
        folder.mkdir()

    def publish(self, first: int, until: int, ended: bool = False, dated: bool = False) -> None:
        """List the segments `[first, until)`; `dated` says when the first was shown, else it was by its arrival."""
        for at in range(first, until):
            shutil.copy(self._streams / f"{at}.ts", self.folder / f"{at}.ts")
        lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", f"#EXT-X-MEDIA-SEQUENCE:{first}"]
        if dated:
            before_s = sum(float(line.removeprefix("#EXTINF:").rstrip(",")) for line in self.lengths[:first])
            shown = datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(seconds=before_s)
            lines.append(f"#EXT-X-PROGRAM-DATE-TIME:{shown.isoformat()}")
        for at in range(first, until):
            lines += [self.lengths[at], f"{at}.ts"]
        part = self.folder / "list.part"
        part.write_text("\n".join([*lines, *(["#EXT-X-ENDLIST"] if ended else []), ""]))
        part.rename(self.folder / "list.m3u8")


def test_a_playlist_is_gone_on_with_where_it_was_left_and_what_is_gone_is_a_gap(
    streams: Path, finished: tuple[list[int], list[float], Any], tmp_path: Path
) -> None:
    publisher = Publisher(streams, tmp_path / "site")
    count = len(publisher.lengths)
    assert count >= 3, "the film is cut at key frames"
    place, late = str(tmp_path / "library"), str(tmp_path / "late")
    with serve_folder(publisher.folder, login="door:open-sesame") as site:
        address = f"{site.replace('://', '://door:open-sesame@')}/list.m3u8"
        live = replace(QUICK, address=address)
        for library, dated in ((place, False), (late, True)):
            publisher.publish(0, 1, dated=dated)
            with pytest.raises(SourceUnreachable, match="no new segment"):
                watch_live(CONFIG, live, library, stop=lambda: False, on_wait=_raise)
        publisher.publish(0, count, ended=True)
        watch_live(CONFIG, live, place)
        publisher.publish(count - 1, count, ended=True, dated=True)
        watch_live(CONFIG, live, late)
        with pytest.raises(SourceForbidden, match="wants a user and a password"):
            watch_live(CONFIG, replace(live, address=f"{site}/list.m3u8"), str(tmp_path / "other"))
        with pytest.raises(SourceMissing):
            watch_live(CONFIG, replace(live, address=f"{address}.none"), str(tmp_path / "other"))
    check_as_finished(Path(place), finished)
    reader = Library.open(late)
    before, after = sorted(reader.videos(), key=lambda row: row.title)
    lost_s = sum(float(line.removeprefix("#EXTINF:").rstrip(",")) for line in publisher.lengths[1:-1])
    assert reader.metadata.of([after.video_id])[after.video_id]["gap_s"] == pytest.approx(lost_s, abs=0.1)
    assert before.frames + after.frames < FILM_S and audit(reader).problems == ()
    stored = b"".join(each.read_bytes() for each in Path(place).rglob("*") if each.is_file())
    assert b"open-sesame" not in stored and b"live_source" in stored


def test_a_part_ends_with_its_last_frame_whenever_what_waited_was_given_out(streams: Path, tmp_path: Path) -> None:
    publisher = Publisher(streams, tmp_path / "site")
    publisher.publish(0, 1)
    with serve_folder(publisher.folder) as site, pytest.raises(SourceUnreachable, match="no new segment"):
        live = replace(QUICK, address=f"{site}/list.m3u8")
        each_frame = CONFIG.model_copy(update={"batch_size": 1})
        watch_live(each_frame, live, str(tmp_path / "library"), stop=lambda: False, on_wait=_raise)
    (row,) = Library.open(str(tmp_path / "library")).videos()
    length_s = float(publisher.lengths[0].removeprefix("#EXTINF:").rstrip(","))
    assert row.duration_s == pytest.approx(length_s, abs=0.1)


def test_a_long_stream_goes_on_in_another_part_without_a_gap(streams: Path, tmp_path: Path) -> None:
    with serve_folder(streams) as site:
        live = replace(QUICK, address=f"{site}/list.m3u8", part_s=5.0)
        watch_live(CONFIG, live, str(tmp_path / "library"))
    library = Library.open(str(tmp_path / "library"))
    columns = library.metadata.of(list(library.video_ids()))
    parts = sorted(library.videos(), key=lambda row: columns[row.video_id]["recorded_at"])
    assert len(parts) > 1 and [columns[row.video_id].get("gap_s") for row in parts] == [None, *[0.0] * (len(parts) - 1)]
    assert sum(row.frames for row in parts) == FILM_S and audit(library, deep=True).problems == ()
    shown = [
        moment.timestamp()
        for row in parts
        for time_s in library.vectors(row.video_id).time_s.tolist()
        if (moment := shown_at(columns[row.video_id], row, time_s))
    ]
    assert np.allclose(np.diff(shown), 1.0, atol=0.1), "a frame a second, by the clock, across the parts"


def _raise(reason: str) -> None:
    raise SourceUnreachable(reason)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8", "give one of them: http://here/low.m3u8"),
        ("#EXTINF:4,\nhttp://elsewhere/0.ts", "another server"),
        ("#EXTINF:4,\nfile:///etc/passwd", "another server"),
        ('#EXT-X-KEY:METHOD=AES-128,URI="key"\n#EXTINF:4,\n0.ts', "#EXT-X-KEY"),
    ],
)
def test_a_playlist_is_refused_that_leads_elsewhere(lines: str, says: str) -> None:
    with pytest.raises(PlaylistRefused, match=says):
        read_playlist(f"#EXTM3U\n{lines}\n", "http://here/list.m3u8", "http://here/list.m3u8")


class Receiver:
    """Takes notices; the first `failures` requests are answered with an error."""

    def __init__(self, failures: int) -> None:
        self.asked, self.taken = 0, list[dict[str, Any]]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                notice = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked += 1
                fails = outer.asked <= failures
                if not fails:
                    outer.taken.append(notice)
                self.send_response(500 if fails else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.handler = Handler


def test_a_moment_is_told_once_also_over_a_restart_and_to_a_receiver_that_fails_first(
    streams: Path, tmp_path: Path
) -> None:
    path, place, receiver = tmp_path / "film.ts", str(tmp_path / "library"), Receiver(failures=1)
    content = (streams / "film.ts").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    live = replace(QUICK, address=str(path))
    with serve_handler(receiver.handler) as site:
        # Every frame fits from the least cosine on: one moment, which a restart does not end.
        asked = StandingQueries(("a boat",), threshold=-1.0, notify=f"{site}/told?token=secret", pictures=tmp_path)
        watch_live(CONFIG, live, place, queries=asked)
        with path.open("ab") as file:
            file.write(content[len(content) // 2 :])
        watch_live(CONFIG, live, place, queries=asked)
    assert receiver.asked == 2, "once in vain"
    (notice,) = receiver.taken
    library = Library.open(place)
    (video,) = library.videos()
    assert (notice["video_id"], notice["frame_no"], notice["query"]) == (video.video_id, 0, "a boat")
    assert Path(notice["picture"]).read_bytes() == library.frames(video.video_id, [0])[0].jpeg
    assert notice["recorded_at"] and notice["start_s"] == video.start_s
    stored = json.dumps([run.report for run in library.ingest_log.runs()])
    assert '"unsent": []' in stored and "secret" not in stored


def test_a_notice_that_nobody_took_is_told_by_the_next_process_with_the_same_id(
    streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinodex.jobs.notices.ATTEMPTS", 2)  # the waits between more take seven seconds
    path, place = tmp_path / "film.ts", str(tmp_path / "library")
    shutil.copy(streams / "film.ts", path)
    live = replace(QUICK, address=str(path))
    with address_without_server() as gone:
        asked = StandingQueries(("a boat",), threshold=-1.0, notify=gone)
        watch_live(CONFIG, live, place, queries=asked)
    (run,) = Library.open(place).ingest_log.runs()
    (unsent,) = run.report["unsent"]
    receiver = Receiver(0)
    with serve_handler(receiver.handler) as site:
        watch_live(CONFIG, live, place, queries=replace(asked, notify=site))
    assert receiver.taken == [unsent]
    (run,) = Library.open(place).ingest_log.runs()
    assert run.report["unsent"] == []


def test_a_model_that_looks_decides_what_is_told(
    streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    shutil.copy(streams / "film.ts", tmp_path / "film.ts")
    live, told = replace(QUICK, address=str(tmp_path / "film.ts")), list[dict[str, Any]]()
    looks = 0

    def sees(number: int, line: str) -> bool:
        nonlocal looks
        looks += 1
        return looks > 1

    with looking_server(sees) as server:
        asked = StandingQueries(("a boat",), threshold=-1.0, verify=ModelChoice("tester", server.base_url))
        place = str(tmp_path / "library")
        watch_live(CONFIG, live, place, queries=asked, on_rows=lambda rows: told.extend(rows.notices))
    (notice,) = told
    assert looks == 2 and notice["basis"] == "verified" and notice["reason"].startswith("a boat is in the picture")
    assert notice["frame_no"] > 0, "the first frames were looked at in vain"


def test_a_query_that_the_space_cannot_decide_needs_a_threshold(streams: Path, tmp_path: Path) -> None:
    shutil.copy(streams / "film.ts", tmp_path / "film.ts")
    live = replace(QUICK, address=str(tmp_path / "film.ts"))
    with pytest.raises(UsageError, match="give --threshold"):
        watch_live(CONFIG, live, str(tmp_path / "library"), queries=StandingQueries(("a quark",)))


@pytest.mark.slow
@pytest.mark.skipif(not rtsp_server.is_there(), reason="no GStreamer with an RTSP server here (docs/live.md)")
def test_a_camera_is_watched_by_its_password_which_is_written_nowhere(streams: Path, tmp_path: Path) -> None:
    command = [
        rtsp_server.SYSTEM_PYTHON,
        rtsp_server.__file__,
        str(streams / "film.ts"),
        "0",
        str(tmp_path / "sent"),
        "door",
        "open-sesame",
    ]
    waits: list[str] = []
    frames: list[int] = []
    with ending_process(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            live = replace(QUICK, name="", stall_s=5.0, address=address)
            with pytest.raises(SourceForbidden, match="USER:PASSWORD"):
                watch_live(CONFIG, live, str(tmp_path / "library"))
            live = replace(live, address=address.replace("://", "://door:open-sesame@"))

            def take(rows: NewRows) -> None:
                frames.append(rows.frames)
                if len(frames) == 3:
                    server.kill()

            watch_live(
                CONFIG, live, str(tmp_path / "library"), on_rows=take, on_wait=waits.append, stop=lambda: bool(waits)
            )
        finally:
            server.kill()
    library = Library.open(str(tmp_path / "library"))
    (video,) = library.videos()
    assert video.frames == sum(frames) > 0 and video.uri == address
    assert library.vectors(video.video_id).frame_no.tolist() == list(range(video.frames))
    stored = b"".join(each.read_bytes() for each in Path(library.uri).rglob("*") if each.is_file())
    assert b"open-sesame" not in stored + "".join(waits).encode()
    assert "opened again" in waits[0]
