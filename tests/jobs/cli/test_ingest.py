"""`kinodex ingest` as a user has it: settings from everywhere, manifests, failures retried or ending a run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from kinodex.cli.ingest import interruptible, stop_on_interrupt
from kinodex.index.library import Library
from kinodex.jobs.ingest.commit import Progress
from tests.support.command import Kinodex, bad


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from kinodex.sketch.sample import sample

    folder = tmp_path_factory.mktemp("sample") / "films"
    sample(folder, 0.01, 3)
    return folder


def test_settings_from_a_file_last_and_are_told_with_their_origin(
    kinodex: Kinodex, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, config = tmp_path / "library", tmp_path / "ingest.yaml"
    config.write_text("space: builtin\nfps: 0.5\njpeg_side_px: 64\n")
    asked = ("ingest", films / "film-01.mp4", "--library", library, "--config", config, "--set", "window_s=5")
    assert kinodex(*asked).code == 0
    info = json.loads(kinodex("info", library, "--json").out)
    assert (info["settings"]["fps"], info["settings"]["jpeg_side_px"], info["settings"]["window_s"]) == (0.5, 64, 5)

    monkeypatch.setenv("KINODEX_INGEST_CUT_S", "30")
    printed = kinodex("ingest", "--library", library, "--workers", 1, "--print-config").out
    origins = {line.partition(" =")[0]: line.partition("# ")[2].partition(":")[0] for line in printed.splitlines()}
    assert (origins["fps"], origins["space"], origins["workers"]) == ("the library", "the library", "command line")
    assert (origins["cut_s"], origins["bundle"]) == ("environment", "default")
    again = tmp_path / "printed.toml"
    again.write_text(printed)
    assert kinodex("ingest", films / "film-01.mp4", "--library", library, "--config", again).code == 0


def test_a_manifest_names_videos_and_where_they_lie(kinodex: Kinodex, films: Path, tmp_path: Path) -> None:
    manifest, library = films / "list.csv", tmp_path / "library"
    manifest.write_text("uri,id,title\nfilm-01.mp4,7,The first\nfilm-02.mp4,8,\n")
    ran = kinodex("ingest", manifest, "--library", library, "--space", "builtin")
    manifest.unlink()
    assert ran.code == 0
    assert sorted(row["title"] for row in json.loads(kinodex("info", library, "--json").out)["videos"]) == [
        "8",
        "The first",
    ]


def test_failures_are_left_out_until_they_are_retried(kinodex: Kinodex, films: Path, tmp_path: Path) -> None:
    folder, library = tmp_path / "films", tmp_path / "library"
    folder.mkdir()
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (folder / name).write_text(f"no video {name}")
    to = ("--library", library, "--space", "builtin")
    assert kinodex("ingest", folder, *to).code == 3
    left = json.loads(kinodex("ingest", folder, *to, "--json").out)
    assert (left["left_out"], left["sources"]) == (3, [])

    shutil.copy(films / "film-01.mp4", folder / "b.mp4")
    retried = json.loads(kinodex("ingest", "--retry-failed", *to, "--json").out)
    assert {Path(each["uri"]).name: each["state"] for each in retried["sources"]} == {
        "a.mp4": "failed",
        "b.mp4": "indexed",
        "c.mp4": "failed",
    }
    info = json.loads(kinodex("info", library, "--json").out)
    assert [(Path(row["uri"]).name, row["attempts"]) for row in info["failures"]] == [("a.mp4", 2), ("c.mp4", 2)]
    short = kinodex("info", library, "--limit", 1)
    assert "and 1 more; --limit 0 shows all" in short.out


def test_enough_failures_end_a_run(kinodex: Kinodex, tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number:02d}.mp4").write_text(f"no video {number}")
    to = ("ingest", folder, "--space", "builtin", "--workers", 1, "--set", "bundle=1", "--json")
    fast = kinodex(*to, "--library", tmp_path / "one", "--fail-fast")
    assert fast.code == 3
    assert 1 <= len(json.loads(fast.out)["sources"]) < 12
    some = json.loads(kinodex(*to, "--library", tmp_path / "two", "--max-failures", 4).out)
    assert 5 <= len(some["sources"]) < 12
    assert "4 were allowed" in some["stopped"]
    everything = json.loads(kinodex(*to, "--library", tmp_path / "three", "--max-failures", 12).out)
    assert (len(everything["sources"]), everything["stopped"]) == (12, None)


def test_bad_settings(kinodex: Kinodex, films: Path, tmp_path: Path) -> None:
    to = ("--library", tmp_path / "library")
    bad(kinodex, "ingest", films, code=2, says="--library")
    bad(kinodex, "ingest", *to, code=2, says="--retry-failed")
    bad(kinodex, "ingest", "--retry-failed", *to, code=4, says="no library")
    bad(kinodex, "ingest", films, *to, "--set", "fps", code=2, says="NAME=VALUE")
    bad(kinodex, "ingest", films, *to, "--set", "fsp=2", code=2, says="did you mean fps?")
    bad(kinodex, "ingest", films, *to, "--decoder", "pyaf", code=2, says="did you mean pyav?")
    bad(kinodex, "ingest", films, *to, "--config", tmp_path / "none.toml", code=2, says="none.toml")
    bad(kinodex, "ingest", tmp_path / "none.csv", *to, code=2, says="none.csv")
    assert not (tmp_path / "library").exists()


HALF = Progress(1, 2, 0, 30, 30.0, 5_000, 10_000, {"decode": 0.9}, "decode", "a film")


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
def test_a_watch_takes_what_arrives_in_one_line_a_round_until_it_is_interrupted(films: Path, tmp_path: Path) -> None:
    folder, library = tmp_path / "films", tmp_path / "library"
    folder.mkdir()

    def move_in(name: str, data: bytes) -> None:
        (tmp_path / "away").write_bytes(data)
        os.utime(tmp_path / "away", (0, 0))
        (tmp_path / "away").rename(folder / name)

    watched = ("ingest", str(folder), "--watch", "--every", "0.1", "--library", str(library), "--space", "builtin")
    command = [sys.executable, "-c", "from kinodex.cli.main import main; main()", *watched, "--no-text-tower"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert "a folder without a video" in run.stderr.readline(), "the watch has not begun"
        move_in("a.mp4", (films / "film-01.mp4").read_bytes())
        assert "1 indexed, 0 already there, 0 failed" in run.stdout.readline()
        move_in("b.mp4", b"no video")
        assert "0 indexed, 0 already there, 1 failed (NotAVideo 1)" in run.stdout.readline()
        run.send_signal(signal.SIGINT)
        rest, words = run.communicate()
    assert run.returncode == 3, words
    assert rest == ""
    assert "Traceback" not in words
    assert [Path(row.uri).name for row in Library.open(str(library)).ingest_log.failures()] == ["b.mp4"]


def test_a_watch_needs_something_to_watch(kinodex: Kinodex, tmp_path: Path) -> None:
    to = ("--library", tmp_path / "library", "--watch")
    bad(kinodex, "ingest", "--retry-failed", *to, code=2, says="nothing to watch")
    assert kinodex("ingest", tmp_path, *to, "--every", "0").code == 2


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
def test_a_limit_of_addresses_that_is_too_low_is_named_before_anything_is_made(films: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    kinodex = f"{sys.executable} -c 'from kinodex.cli.main import main; main()'"
    command = f"ulimit -v 1500000; exec {kinodex} ingest {films} --library {library} --space builtin"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert run.returncode == 2, run.stderr
    assert "got a limit of 1536 MB of addresses (ulimit -v), and an ingest needs 2500 MB or more" in run.stderr
    assert not library.exists()
