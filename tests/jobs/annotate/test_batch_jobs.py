"""Jobs of the Batch API: files within limits, replies in any order, and a job that is found again."""

from __future__ import annotations

import json
from pathlib import Path

import openai
import pytest

from kinodex.jobs.add.batch_api import STATE, BatchFailed, JobFolder, Limits
from tests.support.servers.batch_server import BatchServer, serving

REQUESTS = [(f"id-{number}", {"model": "m", "messages": [], "n": number}) for number in range(5)]
QUICK = Limits(poll_s=0.01)


def reply(body: dict) -> dict:
    return {"caption": str(body["n"]), "confidence": 50}


def client(server: BatchServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0)


def silent(line: str) -> None:
    """Nobody reads the progress of these jobs."""


def test_replies_are_found_by_their_ids(tmp_path: Path) -> None:
    with serving(BatchServer(reply)) as server, client(server) as asking:
        server.gate.set()
        folder = JobFolder(tmp_path, QUICK)
        assert folder.add_requests(REQUESTS) == 5
        folder.work(asking, silent)
    found = folder.replies().completions
    assert {key: json.loads(each["choices"][0]["message"]["content"])["caption"] for key, each in found.items()} == {
        f"id-{number}": str(number) for number in range(5)
    }
    assert sorted(server.answered) == [key for key, _ in REQUESTS]


@pytest.mark.parametrize(("limits", "jobs"), [(Limits(2, 10**6, 0.01), 3), (Limits(99, 300, 0.01), 3), (QUICK, 1)])
def test_files_stay_within_the_limits(tmp_path: Path, limits: Limits, jobs: int) -> None:
    with serving(BatchServer(reply)) as server, client(server) as asking:
        server.gate.set()
        folder = JobFolder(tmp_path, limits)
        folder.add_requests(REQUESTS)
        folder.work(asking, silent)
    assert len(server.batches) == len(folder.jobs) == jobs
    sent = [server.files[batch["input_file_id"]] for batch in server.batches.values()]
    assert all(len(each) <= limits.bytes and each.count(b"\n") <= limits.requests for each in sent)
    assert len(folder.replies().completions) == 5


def test_a_job_whose_id_was_not_heard_is_found_by_its_name(tmp_path: Path) -> None:
    """As if the process was killed after the server had made the batch, and before the id was written down."""
    with serving(BatchServer(reply)) as server, client(server) as asking:
        server.gate.set()
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        folder.work(asking, silent)
        state = json.loads((tmp_path / STATE).read_text())
        (tmp_path / STATE).write_text(json.dumps([each | {"batch_id": "", "status": ""} for each in state]))
        again = JobFolder(tmp_path, QUICK)
        again.work(asking, silent)
    assert len(server.batches) == 1 and len(server.answered) == 5
    assert len(again.replies().completions) == 5 and again.jobs[0].batch_id == "batch_1"


def test_a_list_that_begins_again_is_read_once(tmp_path: Path) -> None:
    """A server that does not know the parameter `after` sends the same page for ever."""
    with serving(BatchServer(reply, endless="same")) as server, client(server) as asking:
        server.gate.set()
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        folder.work(asking, silent)
    assert len(folder.replies().completions) == 5
    assert server.pages == 2


def test_a_list_that_does_not_end_is_an_error_before_anything_is_sent(tmp_path: Path) -> None:
    with serving(BatchServer(reply, endless="new")) as server, client(server) as asking:
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        with pytest.raises(BatchFailed, match=r"lists more than 10,000 batches.*leave out --batch-api"):
            folder.work(asking, silent)
    assert server.batches == {} and server.files == {}


def test_expired_requests_have_no_reply_and_refused_ones_a_reason(tmp_path: Path) -> None:
    refuse = BatchServer(reply, refuse=lambda body: "picture 1 is not allowed" if body["n"] == 1 else None)
    refuse.expire_after = 3
    with serving(refuse) as server, client(server) as asking:
        server.gate.set()
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        folder.work(asking, silent)
    replies = folder.replies()
    assert folder.jobs[0].status == "expired"
    assert sorted(replies.completions) == ["id-0", "id-2"]
    assert replies.refusals == {"id-1": "picture 1 is not allowed"}


def test_a_batch_that_the_server_refuses_as_a_whole(tmp_path: Path) -> None:
    with serving(BatchServer(reply, invalid="the model is not served in batches")) as server, client(server) as asking:
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        with pytest.raises(BatchFailed, match="not served in batches"):
            folder.work(asking, silent)
        assert folder.jobs[0].status == "failed"
        folder.work(asking, silent)  # it is over
    assert len(server.batches) == 1


def test_a_cancelled_batch_is_not_sent_again_in_the_same_run(tmp_path: Path) -> None:
    with serving(BatchServer(reply)) as server, client(server) as asking:
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        server.end_as = "cancelled"
        server.gate.set()
        with pytest.raises(BatchFailed, match="batch_1 was cancelled; the same command goes on"):
            folder.work(asking, silent)
        assert folder.jobs[0].status == "cancelled" and len(folder.replies().completions) == 5
    assert len(server.batches) == 1


def test_a_status_that_is_not_known_ends_the_waiting_and_not_the_job(tmp_path: Path) -> None:
    with serving(BatchServer(reply)) as server, client(server) as asking:
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        server.end_as = "archived"
        server.gate.set()
        with pytest.raises(BatchFailed, match="batch_1 has the status 'archived', which is none of validating"):
            folder.work(asking, silent)
        server.batches["batch_1"]["status"] = "completed"
        JobFolder(tmp_path, QUICK).work(asking, silent)
        assert len(JobFolder(tmp_path).replies().completions) == 5
    assert len(server.batches) == 1


def test_a_batch_whose_making_was_answered_with_an_error_is_made_once(tmp_path: Path) -> None:
    """As a gateway answers that gave up waiting for a server which made the batch; the client alone would try again."""
    with serving(BatchServer(reply, lost_replies=2)) as server:
        server.gate.set()
        folder = JobFolder(tmp_path, QUICK)
        folder.add_requests(REQUESTS)
        with openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=2) as asking:
            folder.work(asking, silent)
    assert len(server.batches) == 1 and len(server.answered) == 5


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"status_code": 400, "body": "no such picture"}, "no such picture"),
        ({"status_code": 400, "body": {"error": "too long"}}, "too long"),
        ({"status_code": 400, "body": {"error": {"code": 7}}}, "status 400"),
        ({"status_code": 400, "body": None}, "status 400"),
        ({"status_code": 200, "body": None}, None),
        ({"status_code": 503, "body": "busy"}, None),
    ],
)
def test_refusals_of_other_servers_are_read(tmp_path: Path, response: dict, reason: str | None) -> None:
    folder = JobFolder(tmp_path)
    folder.add_requests(REQUESTS[:1])
    line = {"custom_id": "id-0", "response": response, "error": None}
    (tmp_path / f"{folder.jobs[0].name}.errors.jsonl").write_text(json.dumps(line) + "\n\n")
    replies = folder.replies()
    assert replies.completions == {} and replies.refusals == ({"id-0": reason} if reason else {})
