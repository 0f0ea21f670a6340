"""`kinodex add captions --batch-api`: half the price, nothing outside of batches, nothing paid twice after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest

from kinodex.index.library import Library
from kinodex.jobs.add.batch_jobs import STATE, BatchFailed, JobFolder, Limits
from tests.support.command import Kinodex, json_of
from tests.support.ffmpeg import ffmpeg, needs_ffmpeg
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.servers.batch_server import USAGE, BatchServer, serving

REQUESTS = [(f"id-{number}", {"model": "m", "messages": [], "n": number}) for number in range(5)]
QUICK = Limits(poll_s=0.01)


@contextmanager
def jobs(place: Path, limits: Limits = QUICK, opened: bool = True, **server: Any) -> Iterator[Jobs]:
    """A server, and a folder with requests that have not been sent; unless `opened`, it works at nothing yet."""
    making = BatchServer(lambda body: {"caption": str(body["n"]), "confidence": 50}, **server)
    with (
        serving(making) as serve,
        openai.OpenAI(base_url=serve.base_url, api_key="none", max_retries=0) as client,
    ):
        if opened:
            serve.gate.set()
        folder = JobFolder(place, limits)
        with folder.requests() as requests:
            for each in (*REQUESTS, REQUESTS[0]):
                requests.add(*each)
        assert requests.count == 5
        yield Jobs(serve, client, folder)


class Jobs(NamedTuple):
    """The parts that a test of jobs needs."""

    server: BatchServer
    client: openai.OpenAI
    folder: JobFolder

    def work(self) -> None:
        self.folder.work(self.client, lambda line: None)


def test_replies_are_found_by_their_ids_and_files_stay_within_the_limits(tmp_path: Path) -> None:
    for limits, count in ((QUICK, 1), (Limits(2, 10**6, 0.01), 3), (Limits(99, 300, 0.01), 3)):
        with jobs(tmp_path / str(limits.bytes), limits) as at:
            at.work()
        found = at.folder.replies().completions
        captions = {id_: json.loads(each["choices"][0]["message"]["content"])["caption"] for id_, each in found.items()}
        assert captions == {f"id-{number}": str(number) for number in range(5)}
        assert sorted(at.server.answered) == [key for key, _ in REQUESTS]
        assert len(at.server.batches) == len(at.folder.jobs) == count, limits
        sent = [at.server.files[batch["input_file_id"]] for batch in at.server.batches.values()]
        assert all(len(each) <= limits.bytes and each.count(b"\n") <= limits.requests for each in sent)


def test_a_job_whose_id_was_not_heard_is_found_by_its_name(tmp_path: Path) -> None:
    """As if the process was killed after the server had made the batch, and before the id was written down."""
    with jobs(tmp_path) as at:
        at.work()
        state = json.loads((tmp_path / STATE).read_text())
        (tmp_path / STATE).write_text(json.dumps([each | {"batch_id": "", "status": ""} for each in state]))
        at._replace(folder=JobFolder(tmp_path, QUICK)).work()
    assert len(at.server.batches) == 1 and len(at.server.answered) == 5
    assert len(at.folder.replies().completions) == 5 and at.folder.jobs[0].batch_id == "batch_1"


@pytest.mark.slow
def test_a_list_that_begins_again_is_read_once_and_one_that_does_not_end_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not know the parameter `after` sends the same page for ever."""
    with jobs(tmp_path / "same", endless="same") as at:
        at.work()
    assert len(at.folder.replies().completions) == 5
    assert at.server.pages == 2
    monkeypatch.setattr("kinodex.jobs.add.batch_jobs.MOST_LISTED", 1_000)
    with jobs(tmp_path / "new", opened=False, endless="new") as at:
        with pytest.raises(BatchFailed, match=r"lists more than 1,000 batches.*leave out --batch-api"):
            at.work()
        assert at.server.batches == {} and at.server.files == {}


def test_expired_requests_have_no_reply_and_refused_ones_a_reason(tmp_path: Path) -> None:
    def refuse(body: dict) -> str | None:
        return "picture 1 is not allowed" if body["n"] == 1 else None

    with jobs(tmp_path, refuse=refuse, expire_after=3) as at:
        at.work()
    replies = at.folder.replies()
    assert at.folder.jobs[0].status == "expired"
    assert sorted(replies.completions) == ["id-0", "id-2"]
    assert replies.refusals == {"id-1": "picture 1 is not allowed"}


def test_a_batch_that_ends_otherwise_is_not_sent_again_in_the_same_run(tmp_path: Path) -> None:
    with jobs(tmp_path / "invalid", opened=False, invalid="the model is not served in batches") as at:
        with pytest.raises(BatchFailed, match="not served in batches"):
            at.work()
        assert at.folder.jobs[0].status == "failed"
        at.work()  # it is over
        assert len(at.server.batches) == 1
    with jobs(tmp_path / "cancelled", opened=False) as at:
        at.server.end_as = "cancelled"
        at.server.gate.set()
        with pytest.raises(BatchFailed, match="batch_1 was cancelled; the same command goes on"):
            at.work()
        assert at.folder.jobs[0].status == "cancelled" and len(at.folder.replies().completions) == 5
        assert len(at.server.batches) == 1
    with jobs(tmp_path / "archived", opened=False) as at:
        at.server.end_as = "archived"
        at.server.gate.set()
        with pytest.raises(BatchFailed, match="batch_1 has the status 'archived', which is none of validating"):
            at.work()
        at.server.batches["batch_1"]["status"] = "completed"
        at._replace(folder=JobFolder(tmp_path / "archived", QUICK)).work()
        assert len(JobFolder(tmp_path / "archived").replies().completions) == 5
        assert len(at.server.batches) == 1


def test_a_batch_whose_making_was_answered_with_an_error_is_made_once(tmp_path: Path) -> None:
    """As a gateway answers that gave up waiting for a server which made the batch; the client alone would try again."""
    with jobs(tmp_path, lost_replies=2) as at:
        at._replace(client=at.client.with_options(max_retries=2)).work()
    assert len(at.server.batches) == 1 and len(at.server.answered) == 5


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_no_server_and_no_batch_api_are_said_in_a_line(kinodex: Kinodex, library: Library) -> None:
    with serving(BatchServer(boat)) as server:
        nowhere = BatchServer(boat, base_url=server.base_url.replace("/v1", "/v2"))
        ran = kinodex(*options(library, nowhere))
        assert ran.code == 3 and "has no Batch API" in ran.err and "leave out --batch-api" in ran.err
    ran = kinodex(*options(library, server))
    assert ran.code == 5 and "nobody answers at" in ran.err
