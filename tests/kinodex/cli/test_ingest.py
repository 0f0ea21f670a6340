"""`kinodex ingest`: settings from everywhere, manifests, failures, watching, progress, and the report."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from kinodex.cli.ingest import interruptible, stop_on_interrupt
from kinodex.cli.ingest_report import show_report
from kinodex.cli.outcome_lines import MOST_LINES, OutcomeLines, outcome_line
from kinodex.cli.progress_bars import fraction_done, progress_bar, progress_line
from kinodex.cli.runs import show_runs
from kinodex.index.library import Library
from kinodex.index.rows import RunRow
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.sweep import audit
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.reports import IngestReport, Progress, SourceOutcome, Totals, summary
from tests.support.command import Kinodex, bad, json_of
from tests.support.processes import ending_process
from tests.world.drawn_space import DRAWN


@pytest.mark.slow
def test_settings_from_a_file_last_and_are_told_with_their_origin(
    kinodex: Kinodex, short_films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, config = tmp_path / "library", tmp_path / "ingest.yaml"
    config.write_text(f"space: {DRAWN}\nfps: 0.5\njpeg_side_px: 64\n")
    asked = ("ingest", short_films / "film-01.mp4", "--library", library, "--config", config, "--set", "window_s=5")
    assert kinodex(*asked).code == 0
    info = json_of(kinodex, "info", library)
    assert (info["settings"]["fps"], info["settings"]["jpeg_side_px"], info["settings"]["window_s"]) == (0.5, 64, 5)

    monkeypatch.setenv("KINODEX_INGEST_CUT_S", "30")
    printed = kinodex("ingest", "--library", library, "--workers", 1, "--print-config").out
    origins = {line.partition(" =")[0]: line.partition("# ")[2].partition(":")[0] for line in printed.splitlines()}
    assert (origins["fps"], origins["space"], origins["workers"]) == ("the library", "the library", "command line")
    assert (origins["cut_s"], origins["bundle"]) == ("environment", "default")
    again = tmp_path / "printed.toml"
    again.write_text(printed)
    assert kinodex("ingest", short_films / "film-01.mp4", "--library", library, "--config", again).code == 0


@pytest.mark.slow
def test_a_manifest_names_videos_and_failures_are_left_out_until_they_are_retried(
    kinodex: Kinodex, short_films: Path, tmp_path: Path
) -> None:
    manifest, library = tmp_path / "list.csv", tmp_path / "library"
    good = f"{short_films / 'film-01.mp4'},7,The first,\n{short_films / 'film-03.mp4'},8,,\n"
    manifest.write_text(f"uri,id,title,sidecars\n{good}a.mp4,9,,words.srt\nb.mp4,,,\nc.mp4,,,\n")
    for name in "abc":
        (tmp_path / f"{name}.mp4").write_text(f"no video {name}")
    to = ("--library", library, "--space", DRAWN)
    assert kinodex("ingest", manifest, *to).code == 3
    left = json_of(kinodex, "ingest", manifest, *to)
    assert (left["left_out"], left["sources"]) == (5, [])
    shutil.copy(short_films / "film-02.mp4", tmp_path / "b.mp4")
    retried = json_of(kinodex, "ingest", "--retry-failed", *to, code=3)
    assert {Path(row["uri"]).name: row["state"] for row in retried["sources"]} == {
        "a.mp4": "failed",
        "b.mp4": "indexed",
        "c.mp4": "failed",
    }
    info = json_of(kinodex, "info", library)
    assert sorted(row["title"] for row in info["videos"]) == ["8", "The first", "b"]
    assert [(Path(row["uri"]).name, row["attempts"]) for row in info["failures"]] == [("a.mp4", 2), ("c.mp4", 2)]
    assert "and 1 more; --limit 0 shows all" in kinodex("info", library, "--limit", 1).out

    # With the manifest a retry also knows title and subtitles, of which a failure keeps nothing.
    (tmp_path / "a.mp4").write_bytes((short_films / "film-02.mp4").read_bytes() + b"\0\0\0\x08free")
    (tmp_path / "words.srt").write_text("1\n00:00:00,500 --> 00:00:01,500\nhello\n")
    assert json_of(kinodex, "ingest", manifest, "--retry-failed", *to, code=3)["left_out"] == 3
    info = json_of(kinodex, "info", library)
    assert {row["title"]: row["speech_lines"] for row in info["videos"]} == {"8": 0, "9": 1, "The first": 0, "b": 0}
    assert [(Path(row["uri"]).name, row["attempts"]) for row in info["failures"]] == [("c.mp4", 3)]


@pytest.mark.slow
def test_enough_failures_end_a_run_and_lose_nothing(kinodex: Kinodex, short_films: Path, tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    shutil.copy(short_films / "film-01.mp4", folder / "film.mp4")
    for number in range(12):
        (folder / f"{number:02d}.mp4").write_text(f"no video {number}")
    to = ("ingest", folder, "--space", DRAWN, "--workers", 1, "--set", "bundle=1")
    fast = json_of(kinodex, *to, "--library", tmp_path / "one", "--fail-fast", code=3)
    assert 1 <= len(fast["sources"]) < 12
    some = json_of(kinodex, *to, "--library", tmp_path / "two", "--max-failures", 4, code=3)
    assert 5 <= len(some["sources"]) < 12 and "4 were allowed" in some["stopped"]
    rest = json_of(kinodex, *to, "--library", tmp_path / "two", "--max-failures", 12, code=3)
    assert rest["stopped"] is None
    library = Library.open(str(tmp_path / "two"))
    assert [run.state for run in library.ingest_log.runs()] == ["done", "stopped"]
    assert (len(library.videos()), audit(library).problems) == (1, ())


def test_bad_settings(kinodex: Kinodex, short_films: Path, tmp_path: Path) -> None:
    to = ("--library", tmp_path / "library")
    for arguments, says in (
        ((short_films,), "--library"),
        (to, "--retry-failed"),
        ((short_films, *to, "--set", "fps"), "NAME=VALUE"),
        ((short_films, *to, "--set", "fsp=2"), "did you mean fps?"),
        ((short_films, *to, "--decoder", "pyaf"), "did you mean pyav?"),
        ((short_films, *to, "--config", tmp_path / "none.toml"), "none.toml"),
        ((tmp_path / "none.csv", *to), "none.csv"),
        (("--retry-failed", *to, "--watch"), "nothing to watch"),
    ):
        bad(kinodex, "ingest", *arguments, code=2, says=says)
    bad(kinodex, "ingest", "--retry-failed", *to, code=4, says="no library")
    assert kinodex("ingest", tmp_path, *to, "--watch", "--every", "0").code == 2
    assert not (tmp_path / "library").exists()


def test_an_interrupt_that_was_dropped_is_raised_with_the_next_progress() -> None:
    shown: list[Progress] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible(shown.append) as watch:
        watch(HALF)
        with suppress(KeyboardInterrupt):  # as Python does in a finalizer
            os.kill(os.getpid(), signal.SIGINT)
            signal.sigtimedwait([], 1.0)
        watch(HALF)
    assert shown == [HALF]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_a_watch_takes_what_arrives_in_one_line_a_round_until_it_is_interrupted(
    short_films: Path, tmp_path: Path
) -> None:
    folder, library = tmp_path / "films", tmp_path / "library"
    folder.mkdir()

    def move_in(name: str, data: bytes) -> None:
        (tmp_path / "away").write_bytes(data)
        os.utime(tmp_path / "away", (0, 0))
        (tmp_path / "away").rename(folder / name)

    watched = ("ingest", str(folder), "--watch", "--every", "0.1", "--library", str(library), "--space", DRAWN)
    command = [sys.executable, "-c", "from kinodex.cli.main import main; main()", *watched, "--no-text-tower"]
    with ending_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert "a folder without a video" in run.stderr.readline(), "the watch has not begun"
        move_in("a.mp4", (short_films / "film-01.mp4").read_bytes())
        assert "1 indexed, 0 already there, 0 failed" in run.stdout.readline()
        move_in("b.mp4", b"no video")
        assert "0 indexed, 0 already there, 1 failed (NotAVideo 1)" in run.stdout.readline()
        run.send_signal(signal.SIGINT)
        rest, words = run.communicate()
    assert run.returncode == 3, words
    assert rest == ""
    assert "Traceback" not in words
    assert [Path(row.uri).name for row in Library.open(str(library)).ingest_log.failures()] == ["b.mp4"]


@pytest.mark.usefixtures("ctrl_c")
def test_the_first_interrupt_ends_the_pause_and_the_second_the_round() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt() as pause:
        assert not pause(0.0)
        timer = threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        assert pause(600.0), "the pause goes on after Ctrl-C"
        timer.join()
        assert pause(600.0), "a pause that begins after Ctrl-C waits"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            signal.sigtimedwait([], 1.0)
        assert pause.pressed == 2
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_a_limit_of_addresses_that_is_too_low_is_named_before_anything_is_made(
    short_films: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    kinodex = f"{sys.executable} -c 'from kinodex.cli.main import main; main()'"
    command = f"ulimit -v 1500000; exec {kinodex} ingest {short_films} --library {library} --space {DRAWN}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert run.returncode == 2, run.stderr
    assert "got a limit of 1536 MB of addresses (ulimit -v), and an ingest needs 2500 MB or more" in run.stderr
    assert not library.exists()


HALF = Progress(
    done=1200,
    total=4000,
    failed=3,
    frames=90_000,
    video_s=90_000.0,
    bytes_done=5_000,
    bytes_total=10_000,
    busy={"decode": 0.93, "embed": 0.4},
    bottleneck="decode",
    current="a [bold] :b: film",
)


def test_a_run_in_one_line_on_a_terminal_and_elsewhere() -> None:
    assert progress_line(HALF, 900.0) == (
        "1,200 of 4,000 videos, 25.0 hours, 100 frames/s, 100x real time, 15 min left, 3 failed, "
        "decode is the slowest (93% busy)"
    )
    start = replace(HALF, done=0, failed=0, frames=0, video_s=0.0, bytes_done=0, bottleneck=None)
    assert progress_line(start, 0.0) == "0 of 4,000 videos, 0.0 hours, 0 frames/s, 0x real time"
    uncounted = replace(HALF, bytes_total=None)
    assert [fraction_done(each) for each in (HALF, uncounted, replace(uncounted, total=0))] == [0.5, 0.3, 0.0]
    for every_s, lines in ((0.0, 2), (30.0, 0)):
        out = io.StringIO()
        with progress_bar(Console(file=out, width=40), every_s=every_s) as watch:
            watch(HALF)
            watch(HALF)
        assert [line.partition(",")[0] for line in out.getvalue().splitlines()] == ["1"] * lines
    bar = io.StringIO()
    with progress_bar(Console(file=bar, force_terminal=True, width=200, color_system=None)) as watch:
        watch(HALF)
    assert "1,200 of 4,000 videos" in bar.getvalue() and "a [bold] :b: film" in bar.getvalue()
    assert bar.getvalue().endswith("\x1b[2K")


FILM = SourceOutcome("/a.mp4", "a [b] film", "indexed", "aaaa", 10, 10.0)
BROKEN = SourceOutcome("/b.mp4", "b", "failed", problem="no video", error_class="NotAVideo")
KNOWN = SourceOutcome("/c.mp4", "c", "already there", "aaaa")


def report(*outcomes: SourceOutcome) -> IngestReport:
    return IngestReport("run", datetime(2026, 1, 1, tzinfo=UTC), 1.0, outcomes)


def test_each_outcome_is_a_line_once_and_no_more_than_people_read() -> None:
    out = io.StringIO()
    lines = OutcomeLines(Console(file=out, width=80))
    lines(replace(HALF, outcomes=()))
    lines(replace(HALF, outcomes=(FILM,)))
    assert out.getvalue().splitlines() == ["indexed        a [b] film: 10 frames of 0:10.0"]
    lines(replace(HALF, outcomes=(FILM, KNOWN, BROKEN)))
    lines.finish(report(FILM, KNOWN, BROKEN, replace(FILM, title="late")))
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["indexed", "failed", "indexed"]

    out = io.StringIO()
    lines = OutcomeLines(Console(file=out, width=80))
    many = (*[FILM] * (MOST_LINES + 7), BROKEN)
    lines(replace(HALF, outcomes=many))
    lines.finish(report(*many))
    assert out.getvalue().splitlines()[-2:] == [
        "failed         b: no video",
        "and 7 more; `kinodex info` lists all videos, and what failed",
    ]
    damaged = outcome_line(replace(FILM, decode_errors=2, problem="subtitles: not UTF-8"))
    assert "10 frames of 0:10.0, 2 damaged packets skipped" in damaged and "(subtitles: not UTF-8)" in damaged


@pytest.fixture
def empty(tmp_path: Path) -> Library:
    return Library.create(str(tmp_path / "library"), {"fps": 1.0}, Fingerprint("tiny", "0" * 12, "0" * 64, "{}", 4))


def long_report(indexed: int, failed: int) -> IngestReport:
    good = [SourceOutcome(f"/{n}.mp4", f"film {n}", "indexed", str(n), 10, 10.0) for n in range(indexed)]
    bad = [
        SourceOutcome(
            f"/bad {n}.mp4", f"bad {n}", "failed", problem=f"/bad {n}.mp4: no [video]", error_class="NotAVideo"
        )
        for n in range(failed)
    ]
    return IngestReport(
        run_id="0123456789abcdef",
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        seconds=50.0,
        outcomes=(*good, *bad, SourceOutcome("/again.mp4", "again", "already there", "0")),
        left_out=7,
        stopped="2 sources failed, and 1 were allowed",
        seconds_by_stage={"decode": 75.0, "embed": 25.0, "total": 100.0},
        utilisation={"decode": 0.75, "embed": 0.5},
        settings={"fps": 1.0, "workers": None},
        versions={"av": "18"},
        arithmetic="float32, torch 2",
        workers=2,
        retried=4,
        fell_back={"decord: no such codec": 5},
    )


def test_a_long_report_is_short_and_shows_failures_too(empty: Library, capsys: pytest.CaptureFixture[str]) -> None:
    show_report(long_report(1000, 2), empty, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("failed ")).endswith("bad 0: /bad 0.mp4: no [video]")
    assert sum("indexed  " in line for line in lines) == MOST_LINES
    text = "\n".join(lines)
    for each in (
        "and 950 more",
        "1,000 indexed, 1 already there, 2 failed, 7 left out as known; 10,000 frames",
        "stopped early: 2 sources failed",
        "failures by class: NotAVideo 2",
        "decord: no such codec 5",
        "4 pieces of work were done again",
        "2 workers, 1 embedders",
        "decode 75%, embed 50%",
    ):
        assert each in text
    assert [line.split() for line in lines if line.startswith("decode ")] == [["decode", "75.0", "75%"]]
    assert "total" not in text


def test_a_report_counts_outcomes_that_it_does_not_hold_and_as_json_has_those_it_does(
    empty: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    totals = Totals({"indexed": 900_000, "failed": 70}, {"NotAVideo": 70}, 9_000_000, 9e6)
    show_report(replace(long_report(100, 2), totals=totals), empty, as_json=False)
    text = capsys.readouterr().out
    assert f"and {900_070 - MOST_LINES - 2:,} more" in text
    assert "900,000 indexed, 0 already there, 70 failed" in text and "NotAVideo 70" in text
    show_report(long_report(60, 1), empty, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["sources"]) == 62
    assert shown["counts"] == {"indexed": 60, "already there": 1, "moved": 0, "failed": 1}
    assert shown["failures_by_class"] == {"NotAVideo": 1}
    assert (shown["frames"], shown["video_s"], shown["library"]) == (600, 600.0, empty.uri)


def test_runs_are_read_back_from_the_library(empty: Library, capsys: pytest.CaptureFixture[str]) -> None:
    show_runs(empty, None, as_json=False)
    assert "no run" in capsys.readouterr().out
    told = json.loads(json.dumps(summary(long_report(3, 1)), default=str))
    began = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    empty.ingest_log.add_run(RunRow("aaaa1111", "ingest", "stopped", began, began + timedelta(seconds=50), told))
    later = began + timedelta(hours=1)
    empty.ingest_log.add_run(RunRow("aaaa2222", "add captions", "done", later, later, {"added": 12}))

    show_runs(empty, None, as_json=False)
    both = capsys.readouterr().out
    assert both.index("aaaa2222") < both.index("aaaa1111")
    assert "added 12" in both
    show_runs(empty, "aaaa1", as_json=False)
    one = capsys.readouterr().out
    assert "3 indexed, 1 already there, 1 failed" in one
    assert "settings: fps 1.0" in one
    assert "workers None" not in one
    show_runs(empty, "aaaa1", as_json=True)
    assert json.loads(capsys.readouterr().out)["report"] == told
    for wrong in ("aaaa", "bbbb"):
        with pytest.raises(UsageError, match=f"--run {wrong}"):
            show_runs(empty, wrong, as_json=False)
