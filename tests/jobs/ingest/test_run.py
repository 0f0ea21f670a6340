"""Ingest as a whole: many sources, each once, in parts or whole, on threads, with the same rows."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.errors import LibraryBusy, SettingsMismatch, SpaceError
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.reports import Progress
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.source import Source
from kinodex.pipeline.sources import list_sources
from tests.support.command import Kinodex, bad
from tests.support.libraries.corpus import assert_same, counts, draw_film, ingest
from tests.support.libraries.random_library import WHEN
from tests.support.models.stage_models import tiny_film
from tests.support.playlists import FILM_S, ffconcat, m3u8, make_films
from tests.support.processes import ending_process
from tests.support.servers.files import serve_folder
from tests.support.servers.ray_node import ingest as begin
from tests.support.servers.ray_node import log_of, named
from tests.world.drawn_space import DRAWN
from tests.world.sketch.render import render_film
from tests.world.sketch.script import write_script

SMALL: dict[str, Any] = {"space": DRAWN, "workers": 1}


@pytest.mark.slow
def test_every_source_has_its_outcome_once_and_a_video_of_two_names_is_one(corpus: Path, tmp_path: Path) -> None:
    """Again, only what is new is looked into, and what failed when that is asked for."""
    told: list[Progress] = []
    films = Path(shutil.copytree(corpus, tmp_path / "films"))
    report = run_ingest(IngestConfig(**SMALL), list_sources([str(films)]), str(tmp_path / "library"), told.append)
    assert told[-1].done == told[-1].total == 6 and told[-1].failed == 1
    assert told[-1].bytes_done == told[-1].bytes_total
    assert told[-1].frames > 0 and told[-1].video_s > 12
    library = Library.open(str(tmp_path / "library"))
    assert counts(report) == (4, 1, 1)
    assert len(library.videos()) == 4
    assert [row.uri for row in library.ingest_log.failures()] == [str(films / "poison-000.mp4")]
    named = {Path(uri).name: row.video_id for uri, row in library.ingest_log.sources().items()}
    assert named["again-000.mp4"] == named["film-000.mp4"] != ""
    assert named["poison-000.mp4"] == ""

    again = ingest(films, tmp_path / "library")
    assert (counts(again), again.left_out) == ((0, 0, 0), 6)
    assert counts(ingest(films, tmp_path / "library", retry_failed=True)) == (0, 0, 1)
    assert [row.attempts for row in library.ingest_log.failures()] == [2]

    shutil.copy(films / "film-001.mp4", films / "new-name.mp4")
    (films / "film-002.mp4").write_bytes((films / "film-003.mp4").read_bytes())
    changed = ingest(films, tmp_path / "library")
    assert (counts(changed), changed.left_out) == ((0, 2, 0), 5)
    draw_film(films / "poison-000.mp4", 4.0, 99)
    assert counts(ingest(films, tmp_path / "library")) == (1, 0, 0)
    assert library.ingest_log.failures() == []
    assert ingest(films, tmp_path / "library", check_content=True).count("already there") == 7


@pytest.mark.slow
def test_a_run_without_anything_new_loads_no_model(
    tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, films, place = tmp_path / "model", tmp_path / "films", str(tmp_path / "library")
    shutil.copytree(tiny_model("space"), model)
    films.mkdir()
    tiny_film(films / "boat.mp4", 3, 0)
    settings: dict[str, Any] = {"space": f"local-dir:{model}", "workers": 1, "text_tower": False}
    assert counts(ingest(films, Path(place), **settings)) == (1, 0, 0)
    shutil.rmtree(model)
    report = ingest(films, Path(place), **settings)
    assert (counts(report), report.left_out) == ((0, 0, 0), 1)
    last = Library.open(place).ingest_log.runs()[-1]
    assert last.state == "done"
    with pytest.raises(SettingsMismatch, match=r"got fps=2\.0"):
        ingest(films, Path(place), **settings, fps=2.0)
    tiny_film(films / "kite.mp4", 3, 1)
    assert counts(ingest(films, Path(place), **settings)) == (1, 0, 0), "its tower was exported here"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    tiny_film(films / "goat.mp4", 3, 2)
    with pytest.raises(SpaceError, match="model"):
        ingest(films, Path(place), **settings)
    assert len(Library.open(place).videos()) == 2


@pytest.mark.slow
def test_a_library_without_its_videos_is_left_as_it_is_until_it_is_repaired(
    kinodex: Kinodex, corpus: Path, whole: Library, tmp_path: Path
) -> None:
    place = shutil.copytree(whole.uri, tmp_path / "library")
    shutil.rmtree(place / "videos.lance")
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    texts = tmp_path / "texts.json"
    texts.write_text('{"film": ["a boat"]}')
    for command in (
        ("search", place, "a dog"),
        ("ingest", corpus, "--library", place),
        ("info", place),
        ("import", "captions", texts, place, "--model", "m"),
        ("add", "vectors", place, "--space", DRAWN),
        ("maintain", place),
    ):
        bad(kinodex, *command, code=4, says=f"kinodex maintain {place} --repair")
    bad(kinodex, "maintain", place, "--repair", "--purge", code=2, says="got --repair, which deletes nothing")
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    ran = kinodex("maintain", place, "--repair")
    assert (ran.code, "made again: videos; 4 rows of videos" in ran.out) == (3, True), ran
    assert "lost: of all these videos: titles that were no file names" in ran.out
    mended = Library.open(str(place))
    assert [replace(row, ingested_at=WHEN) for row in mended.videos()] == [
        replace(row, ingested_at=WHEN) for row in whole.videos()
    ]
    assert counts(ingest(corpus, place)) == (0, 0, 0)
    assert audit(mended).problems == ()


@pytest.mark.slow
def test_a_video_that_cannot_be_kept_is_a_failure_and_the_others_are_there(tmp_path: Path) -> None:
    films = [tiny_film(tmp_path / f"{name}.mp4", 2, number) for number, name in enumerate(("boat", "kite"))]
    sources = [Source(str(films[0]), "half a letter: \ud800"), Source(str(films[1]), "kite")]
    report = run_ingest(IngestConfig(**SMALL), sources, str(tmp_path / "library"))
    assert counts(report) == (1, 0, 1)
    library = Library.open(str(tmp_path / "library"))
    (failure,) = library.ingest_log.failures()
    assert (failure.stage, failure.error_class, failure.uri) == ("write", "NotKept", str(films[0]))
    assert [row.title for row in library.videos()] == ["kite"]
    assert audit(library).problems == ()


@pytest.mark.slow
def test_a_silent_web_server_costs_its_video_the_time_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses between the tries, which are not the server's, are short here."""
    pytest.importorskip("aiohttp")
    for pause in ("FIRST_WAIT_S", "JITTER_S"):
        monkeypatch.setattr(f"kinodex.pipeline.filesystems.{pause}", 0.01)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}/film.mp4"
        config = IngestConfig(**SMALL, source_timeout_s=0.1)
        report = run_ingest(config, [Source(uri, "film")], str(tmp_path / "library"))
    (outcome,) = report.outcomes
    assert (outcome.uri, outcome.error_class) == (uri, "SourceUnreachable")
    assert "sent nothing for too long" in (outcome.problem or "")


@pytest.mark.slow
def test_the_rows_do_not_depend_on_workers_or_bundles(corpus: Path, whole: Library, tmp_path: Path) -> None:
    ingest(corpus, tmp_path / "library", workers=3, bundle=5, frames_a_commit=7)
    assert_same(Library.open(str(tmp_path / "library")), whole)
    (row,) = whole.ingest_log.runs()
    report = row.report
    assert report["counts"] == {"indexed": 4, "already there": 1, "moved": 0, "failed": 1}
    assert report["settings"]["cut_s"] == 0.0 and report["versions"]["av"]
    assert report["arithmetic"].startswith("float32, ")
    assert {"decode", "jpeg", "prepare", "embed", "write", "fetch"} <= set(report["seconds_by_stage"])
    assert 0 < report["utilisation"]["decode"] <= 1.05


@pytest.mark.slow
def test_a_library_that_another_ingest_writes_is_refused(corpus: Path, whole: Library, tmp_path: Path) -> None:
    library = Library.open(str(shutil.copytree(whole.uri, tmp_path / "library")))
    hold = "import sys; from kinodex.index.library import Library\n"
    hold += "with Library.open(sys.argv[1]).lease('ingest', 'kinodex ingest of another'):\n"
    hold += "    print('held', flush=True); input()"
    with ending_process(
        [sys.executable, "-c", hold, library.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(LibraryBusy, match=f"kinodex ingest of another.*{holder.pid}"):
            ingest(corpus, tmp_path / "library")
        holder.kill()
    assert counts(ingest(corpus, tmp_path / "library", retry_failed=True)) == (0, 0, 1)


def test_decoded_on_the_device_that_embeds_the_frames_and_times_are_the_same(corpus: Path, tmp_path: Path) -> None:
    try:
        import torchcodec  # noqa: F401
    except (ImportError, RuntimeError, OSError):
        pytest.skip("torchcodec, or the FFmpeg that it needs, is not installed")
    film = tmp_path / "films"
    film.mkdir()
    shutil.copy(corpus / "film-000.mp4", film)
    ingest(film, tmp_path / "device", decoder="nvdec", device="cpu")
    ingest(film, tmp_path / "host", decoder="pyav")
    device, host = (Library.open(str(tmp_path / name)) for name in ("device", "host"))
    (row,) = host.videos()
    mine, theirs = device.vectors(row.video_id), host.vectors(row.video_id)
    assert mine.frame_no.tolist() == theirs.frame_no.tolist() and mine.time_s.tolist() == theirs.time_s.tolist()
    cosines = (mine.vectors.astype(np.float32) * theirs.vectors.astype(np.float32)).sum(axis=1)
    assert cosines.min() > 0.99
    assert device.ingest_log.runs()[0].report["fell_back"] == {}


@pytest.mark.slow
def test_an_interrupted_ingest_says_how_to_go_on_and_leaves_no_process(tmp_path: Path) -> None:
    films, place = tmp_path / "films", tmp_path / "library"
    films.mkdir()
    render_film(write_script("long", 30.0, 3), films / "long.mp4")
    run = begin(films, place, None, "--fps", "4", "--workers", "1")
    while run.poll() is None and not named(run.pid, "sandbox_child"):
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    assert run.wait() == 130
    assert "interrupted: completed work is kept" in log_of(place).read_text()
    assert ingest(films, place, fps=4.0).count("indexed") == 1
    assert [run.state for run in Library.open(str(place)).ingest_log.runs()] == ["done", "interrupted"]


@pytest.mark.slow
def test_a_playlist_is_refused_wherever_it_lies_and_indexed_where_it_is_allowed(tmp_path: Path) -> None:
    films = make_films(tmp_path / "films")
    secret = tmp_path / "secret.ts"
    shutil.copy(films / "b.ts", secret)
    served = films / "served"
    served.mkdir()
    (served / "far.m3u8").write_text(m3u8(f"file://{secret}"))
    (films / "near.m3u8").write_text(m3u8("a.ts", "b.ts"))
    (films / "other.mp4").write_text(ffconcat("a.mp4", "b.mp4"))
    library = tmp_path / "library"
    with serve_folder(served) as address:
        names = [f"{address}/far.m3u8", str(films / "near.m3u8"), str(films / "other.mp4")]
        for allow_playlists, outcome in ((False, (0, 0, 3)), (True, (2, 0, 1)), (True, (0, 2, 1))):
            config = IngestConfig(**SMALL, allow_playlists=allow_playlists)
            report = run_ingest(config, list_sources(names), str(library))
            assert counts(report) == outcome
            assert {each.error_class for each in report.outcomes if each.state == "failed"} == {"PlaylistRefused"}
    videos = Library.open(str(library)).videos()
    assert [(Path(video.uri).name, video.frames) for video in videos] == [
        ("near.m3u8", 2 * FILM_S),
        ("other.mp4", 2 * FILM_S),
    ]


@pytest.mark.slow
def test_an_interrupt_ends_the_hashing_of_a_large_file(tmp_path: Path) -> None:
    """The file is a terabyte of zeros that take no room: to read it whole takes half an hour."""
    films, place = tmp_path / "films", tmp_path / "library"
    films.mkdir()
    with (films / "film.mp4").open("wb") as file:
        file.truncate(2**40)
    run = begin(films, place, None, "--workers", "1")
    try:
        while run.poll() is None and not reads(run, films / "film.mp4"):
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=30) == 130
    finally:
        run.kill()
    assert "interrupted: completed work is kept" in log_of(place).read_text()


def reads(process: subprocess.Popen[Any], path: Path) -> bool:
    """True once a process has read a hundred megabytes of a file."""
    for each in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):
            if each.readlink() == path:
                place = Path(f"/proc/{process.pid}/fdinfo/{each.name}").read_text().split()[1]
                return int(place) > 100_000_000
    return False
