"""`kinodex add captions --batch-api`: half the price, nothing outside of batches, nothing paid twice after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.add.batch_api import STATE, UNCHANGED, job_folder
from kinodex.jobs.add.captions import Captions
from tests.support.command import Kinodex, json_of
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.servers.batch_server import USAGE, BatchServer, serving

LIMIT_S = 120.0
PRICES = ("--input-price", 2.0, "--output-price", 8.0)
CACHE = "KINODEX_CACHE"


def boat(body: dict) -> dict:
    return {"caption": "a boat", "confidence": 50}


def options(library: Library, server: BatchServer) -> tuple[object, ...]:
    endpoint = ("--model", "tester", "--base-url", server.base_url)
    return ("add", "captions", library.uri, *endpoint, "--batch-api", *PRICES)


def segments_of(library: Library) -> int:
    return sum(row.segments for row in library.videos())


def test_all_segments_are_captioned_at_half_the_price(kinodex: Kinodex, library: Library) -> None:
    with serving(BatchServer(boat)) as server:
        server.gate.set()
        report = json_of(kinodex, *options(library, server))
        count = segments_of(library)
        assert (report["rows"], len(server.answered), server.online) == (count, count, 0)
        paid = count * (2.0 * USAGE["prompt_tokens"] + 8.0 * USAGE["completion_tokens"]) / 1e6
        assert report["usage"]["cost"] == pytest.approx(paid / 2)
        assert report["usage"]["input_tokens"] == count * USAGE["prompt_tokens"]
        captions = [each for row in library.videos() for each in library.captions(row.video_id)]
        assert [each.text for each in captions] == ["a boat"] * count
        assert json_of(kinodex, *options(library, server))["outcomes"] == []
        assert len(server.batches) == 1
    assert not list((Path(os.environ[CACHE]) / "batches").glob(f"*/{STATE}"))


def test_a_reply_that_cannot_be_used_is_asked_for_by_another_batch(kinodex: Kinodex, library: Library) -> None:
    def empty_first(body: dict) -> dict:
        return boat(body) if len(body["messages"]) > 1 else {"caption": " ", "confidence": 50}

    with serving(BatchServer(empty_first)) as server:
        server.gate.set()
        report = json_of(kinodex, *options(library, server))
    count = segments_of(library)
    assert (report["rows"], len(server.batches), len(server.answered), server.online) == (count, 2, 2 * count, 0)


def test_expired_requests_are_sent_again(kinodex: Kinodex, library: Library) -> None:
    with serving(BatchServer(boat, expire_after=2)) as server:
        server.gate.set()
        report = json_of(kinodex, *options(library, server))
    assert report["rows"] == len(server.answered) == segments_of(library) > 2
    assert len(server.batches) == 2 and len(set(server.answered)) == len(server.answered)


def test_refused_requests_leave_segments_without_caption(kinodex: Kinodex, library: Library) -> None:
    refused: list[dict] = []

    def refuse_one(body: dict) -> str | None:
        refused.append(body)
        return "this picture is not allowed" if body == refused[0] else None

    with serving(BatchServer(boat, refuse=refuse_one)) as server:
        server.gate.set()
        ran = kinodex(*options(library, server))
    assert "this picture is not allowed" in ran.out and server.online == 0
    assert sum(len(library.captions(row.video_id)) for row in library.videos()) < segments_of(library)


@needs_ffmpeg
def test_a_copy_of_a_film_in_another_container_sends_nothing_twice(kinodex: Kinodex, tmp_path: Path) -> None:
    film = tiny_film(tmp_path / "film.mp4", 6, 1)
    ffmpeg("-i", film, "-c", "copy", tmp_path / "copy.mkv")
    library = library_of(tmp_path / "library", [film, tmp_path / "copy.mkv"])
    with serving(BatchServer(boat)) as server:
        server.gate.set()
        report = json_of(kinodex, *options(library, server))
    files = [server.files[batch["input_file_id"]] for batch in server.batches.values()]
    lines = [json.loads(line)["custom_id"] for file in files for line in file.splitlines()]
    assert len(library.videos()) == 2 and report["rows"] == segments_of(library)
    assert len(lines) == len(set(lines)) == len(server.answered) == segments_of(library) / 2
    paid = len(lines) * (2.0 * USAGE["prompt_tokens"] + 8.0 * USAGE["completion_tokens"]) / 1e6
    assert report["usage"]["cost"] == pytest.approx(paid / 2)


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_batch(kinodex: Kinodex, library: Library) -> None:
    with serving(BatchServer(boat)) as server:
        arguments = ["kinodex", *map(str, options(library, server))]
        code = f"import sys; sys.argv = {arguments!r}; from kinodex.cli.main import main; main()"
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert server.created.wait(LIMIT_S)
        process.send_signal(signal.SIGKILL)  # while the batch is worked on, or before its id is written down
        process.wait(LIMIT_S)
        assert library.additions.counts("captions") == {}
        server.gate.set()
        report = json_of(kinodex, *options(library, server))
    assert len(server.batches) == 1
    assert report["rows"] == len(server.answered) == len(set(server.answered)) == segments_of(library)


def test_what_it_would_cost_is_printed_first(kinodex: Kinodex, library: Library) -> None:
    with serving(BatchServer(boat)) as server:
        ran = kinodex(*options(library, server), "--dry-run")
        assert ran.code == 0 and f"| captions | {segments_of(library)} | {segments_of(library)} |" in ran.out
        assert server.batches == {} and server.online == 0
    assert kinodex("add", "captions", library.uri, "--model", "x", "--dry-run").code == 2
    assert library.additions.counts("captions") == {}


def test_no_server_and_no_batch_api_are_said_in_a_line(kinodex: Kinodex, library: Library) -> None:
    with serving(BatchServer(boat)) as server:
        nowhere = BatchServer(boat, base_url=server.base_url.replace("/v1", "/v2"))
        ran = kinodex(*options(library, nowhere))
        assert ran.code == 3 and "has no Batch API" in ran.err and "leave out --batch-api" in ran.err
    ran = kinodex(*options(library, server))
    assert ran.code == 5 and "nobody answers at" in ran.err


def test_the_jobs_of_a_library_are_found_by_any_of_its_paths(library: Library, tmp_path: Path) -> None:
    """`a/../lib` and a link are the same library: else its batches would be sent and paid for twice."""
    place, link = Path(library.uri), tmp_path / "link"
    link.symlink_to(place)
    role = Captions("tester", "http://127.0.0.1:1/v1").role
    folders = []
    for path in (str(place), str(place.parent / "a" / ".." / place.name), str(link)):
        (place.parent / "a").mkdir(exist_ok=True)
        with job_folder(tmp_path / "batches", Library.open(path), role, 4, UNCHANGED) as folder:
            folders.append(folder.path)
    assert len(set(folders)) == 1
