"""Workers: lost ones are replaced, poison is set apart; a cluster that is not there; children without interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import ModelUnreachable
from kinodex.index.library import Library
from kinodex.jobs import workers
from kinodex.jobs.add import ray
from kinodex.jobs.add.run import add
from kinodex.jobs.child_processes import without_interrupts
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ray_cluster import connected, restored_process
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, rows_held
from tests.support.models.dying_stage import Dying


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_an_address_where_nobody_listens_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=f"cannot reach Ray at {address}.*--ray without one"), connected(address):
        pass


def test_what_ray_changes_in_the_process_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    handler = signal.getsignal(signal.SIGTERM)
    with restored_process():
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_OF_THE_TEST"] = "1"
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert (os.environ["RAY_AUTH_MODE"], os.environ.get("RAY_OF_THE_TEST")) == ("disabled", None)
    assert signal.getsignal(signal.SIGTERM) == handler


BLOCKED = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


def started() -> str:
    return subprocess.run([sys.executable, "-S", "-c", BLOCKED], capture_output=True, text=True, check=True).stdout


def test_a_process_started_in_the_block_gets_no_interrupt_and_a_later_one_does() -> None:
    with without_interrupts():
        assert started() == "True\n"
    assert started() == "False\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


class Ended(BaseException):
    """The end of the process of a worker that stands in for an actor."""


class HereActor:
    """An actor in this process."""

    started = 0

    def __init__(self, kind: type, *arguments: Any, **options: Any) -> None:
        self.handle, self.is_lost = kind(*arguments), False
        self.calls: set[Future[Any]] = set()
        HereActor.started += 1

    @property
    def load(self) -> int:
        return len(self.calls)

    def call(self, method: str, *arguments: Any) -> Future[Any]:
        call: Future[Any] = Future()
        try:
            call.set_result(getattr(self.handle, method)(*arguments))
        except BaseException as error:
            call.set_exception(error)
        self.calls.add(call)
        return call

    def result(self, call: Future[Any]) -> Any:
        self.calls.discard(call)
        self.is_lost = isinstance(call.exception(), Ended)
        return None if self.is_lost else call.result()

    def end(self) -> None:
        self.is_lost = True


@dataclass(frozen=True)
class Poison(Dying):
    """As many rows as the video's number says, written before some videos end their worker."""

    deadly: tuple[str, ...] = ()

    def write(self, rows: Mapping[str, Any]) -> None:
        assert self.library is not None
        self.library.additions.add_detections(rows, self.model)
        if set(self.deadly) & rows.keys():
            raise Ended


@pytest.fixture
def videos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library of sixteen videos, and actors that are in this process."""
    monkeypatch.setattr(ray, "Actor", HereActor)
    monkeypatch.setattr(ray, "total_resources", lambda: {"CPU": 2.0})
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    made_of = [made(f"{number:08d}", 3, number) for number in range(1, 17)]
    library.writer.add_frames({video.video_id: video.frame_rows() for video in made_of})
    assert library.writer.complete([video.video_row() for video in made_of]) == ()
    return library


def test_poison_and_what_gets_no_reply_are_set_apart_and_the_others_are_added(videos: Library) -> None:
    deadly, unheard = "00000011", ("00000005", "00000006")
    started = HereActor.started
    poison = Poison("", unheard=unheard, deadly=(deadly,))
    report = add(videos, poison, executor=partial(ray.add_on_ray, 2))
    failed = {each.video_id: (each.error_class, each.problem) for each in report.outcomes if each.is_failed}
    assert failed.pop(deadly)[0] == "WorkerLost"
    assert failed == dict.fromkeys(unheard, ("ModelUnreachable", "nobody answers"))
    assert HereActor.started - started == 2 + workers.TRIES - 1, "a lost one is replaced once, if there is work for it"
    ids = videos.video_ids()
    held = rows_held(videos.tables, "detections", "dying", ids)
    assert {id_: held[id_] for id_ in ids} == {id_: 0 if id_ in (deadly, *unheard) else int(id_) for id_ in ids}
    assert {row.video_id for row in videos.additions.pending("detections", "dying")} == {deadly, *unheard}


def test_an_endpoint_that_is_gone_ends_the_run(videos: Library) -> None:
    ids = tuple(sorted(videos.video_ids()))
    for asked in (None, ids[:1]):
        with pytest.raises(ModelUnreachable, match=r"got (no|a) reply, the last because: nobody answers"):
            add(videos, Poison("", unheard=ids), asked, executor=partial(ray.add_on_ray, 2))
    assert videos.ingest_log.failures() == []
