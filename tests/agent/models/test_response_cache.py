"""The cache of replies: what hits, what must not, several processes at once, damage."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import pytest
from pydantic import BaseModel

from kinodex.agent.errors import CacheDamaged, ModelRejected
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.response_cache import ResponseCache
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import Reply
from kinodex.agent.protocol.request import Turn
from kinodex.agent.variants.eea.requests import RewardSegments
from kinodex.jobs.models import REPLY_SETTINGS
from tests.support.servers.chat_server import Behaviour, ChatServer, calling, failing, hanging, in_turn, refusing
from tests.support.servers.wire import (
    ANSWER,
    QUERIES,
    SCORES,
    ask,
    decide,
    discover,
    frame,
    role,
    score,
)


class Call(BaseModel):
    """Looks."""

    tool: Literal["look"]
    at_s: float


class OtherCall(BaseModel):
    """Listens."""

    tool: Literal["listen"]


class Look(Reply):
    tool: str
    at_s: float


class Described(Reply):
    text: str

    @classmethod
    def from_text(cls, text: str) -> Self:
        return cls(text=text)


DESCRIBED: dict[str, Any] = {
    "Reply": Described,
    "bounds": lambda request: {},
    "example": lambda request: {"text": "a kite"},
    **dict.fromkeys(("check", "missing"), lambda request, reply: None),
    "interpret": lambda request, reply: reply,
}
"""The parts of a request that are about its reply."""


def test_an_invalid_reply_is_asked_for_again_and_the_good_one_kept_or_replaced(tmp_path: Path) -> None:
    """A server that was mended must not be hidden behind the nonsense that it wrote, or that was stored, before."""
    with ResponseCache(tmp_path / "c") as cache, ChatServer(in_turn(refusing("no"), QUERIES)) as server:
        bad, good, kept = ask(server, *[discover()] * 3, cache=cache)
        assert (bad.invalid, bad.cached) == ("refused: no", False)
        assert (good.invalid, good.cached) == (None, False)
        assert (kept.reply, kept.cached, len(server.seen)) == (good.reply, True, 2)
        with closing(sqlite3.connect(tmp_path / "c")) as database, database:
            [(key, reply)] = database.execute("SELECT key, reply FROM replies").fetchall()
            nonsense = json.dumps(json.loads(reply) | {"text": "Lorem ipsum."})  # as versions before stored it
            database.execute("UPDATE replies SET reply = ? WHERE key = ?", (nonsense, key))
        good, kept = ask(server, discover(), discover(), cache=cache)
    assert (good.cached, kept.cached, kept.invalid) == (False, True, None)


def again(**differs: object) -> Any:
    """The request that `score` gives, with the same words, of a class that differs."""
    kind: Any = type("Again", (RewardSegments,), differs)
    asked = score()
    return kind(question=asked.question, videos=asked.videos, segments=asked.segments, frames=asked.frames)


def test_whatever_matters_in_a_request_makes_a_different_question(tmp_path: Path) -> None:
    def reply(body: dict) -> Any:
        return calling({"tool": "look", "at_s": 1.0}) if body.get("tools") else SCORES

    look = again(**DESCRIBED | {"Reply": Look}, form="tools", tools=(Call,))
    differing = (
        score((replace(frame(20), jpeg=frame(21).jpeg), frame(40))),
        score((frame(40), frame(20))),
        replace(score(), question=Question("What colour is the kite?", ("red", "green"))),
        again(turns=(Turn("assistant", "Well."), Turn("user", "Go on."))),
        replace(score(), complaint="too long", bad_reply="{}"),
        again(**DESCRIBED),
        again(**DESCRIBED, form="text"),
        look,
        again(**DESCRIBED | {"Reply": Look}, form="tools", tools=(Call, OtherCall)),
        score((frame(20), frame(41))),
        score((frame(20, size=(64, 46)), frame(40))),
        replace(score(), attempt=1),
    )
    with ResponseCache(tmp_path / "c") as cache, ChatServer(reply) as server, ChatServer(reply) as elsewhere:
        asked = ask(server, score(), *differing, cache=cache)
        assert [each.cached for each in asked] == [False] * 13
        assert not ask(server, score(), cache=cache, sample=1)[0].cached
        assert not ask(elsewhere, score(), cache=cache)[0].cached
        assert [each.cached for each in ask(server, score(), look, cache=cache)] == [True] * 2


def asked_together(server: ChatServer, path: Path, cancel_first: bool = False) -> list[Any]:
    """Send three equal requests at once; return their exchanges, or the errors instead."""

    async def run() -> list[Any]:
        with ResponseCache(path) as cache:
            async with OpenAIModel(role(server), cache=cache) as model:
                first, *others = [asyncio.ensure_future(model.ask(discover())) for _ in range(3)]
                while not server.seen:
                    await asyncio.sleep(0.005)
                if cancel_first:
                    first.cancel()
                return await asyncio.gather(first, *others, return_exceptions=True)

    return asyncio.run(run())


def test_what_is_under_way_already_is_waited_for_and_asked_by_the_next_where_it_fails(tmp_path: Path) -> None:
    with ChatServer(lambda _: Behaviour(json.dumps(QUERIES), after_s=0.1)) as server:
        exchanges = asked_together(server, tmp_path / "waited")
    assert (len(server.seen), [each.cached for each in exchanges]) == (1, [False, True, True])
    assert len({each.raw for each in exchanges}) == 1
    for first, kind in (
        (hanging(0.5), asyncio.CancelledError),
        (replace(failing(400, "not now"), after_s=0.1), ModelRejected),
    ):
        with ChatServer(in_turn(first, QUERIES)) as server:
            cancelled = kind is asyncio.CancelledError
            gone, paid, free = asked_together(server, tmp_path / kind.__name__, cancel_first=cancelled)
        assert isinstance(gone, kind)
        assert (len(server.seen), paid.cached, free.cached) == (2, False, True), kind


WRITER = """
import sys, time
from pathlib import Path
from kinodex.agent.models.response_cache import ResponseCache
folder, begin, name = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
for number in range(30):
    time.sleep(max(0.0, begin + 0.02 * number - time.time()))
    with ResponseCache(folder / str(number)) as cache:
        for at in range(10):
            cache.put(f"shared {at}", {"text": "same"})
            cache.put(f"{name} {at}", {"text": name})
            assert cache.get(f"shared {at}") == {"text": "same"}
"""


@pytest.mark.slow
def test_several_processes_may_make_and_use_one_file_in_the_same_moment(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "new"), str(time.time() + 1.0)]
    writers = [subprocess.Popen([*command, name]) for name in "abc"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    with ResponseCache(tmp_path / "new" / "29") as cache:
        assert all(cache.get(f"{name} {at}") == {"text": name} for name in "abc" for at in range(10))


def test_a_file_that_is_no_cache_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(CacheDamaged) as caught:
        ResponseCache(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes().startswith(b"not a database")


def test_a_reply_takes_the_place_of_the_one_that_was_read_and_of_no_other(tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "c") as cache:
        cache.put("key", {"text": "first"})
        cache.put("key", {"text": "second"})
        assert cache.get("key") == {"text": "first"}
        cache.put("key", {"text": "third"}, instead={"text": "second"})
        assert cache.get("key") == {"text": "first"}
        cache.put("key", {"text": "fourth"}, instead={"text": "first"})
        assert cache.get("key") == {"text": "fourth"}


MATTERS: dict[str, Any] = {
    "model": "another",
    "temperature": 0.9,
    "max_tokens": 99,
    "reasoning": False,
    "context_tokens": 9999,
    "seed": 4,
    "extra": {"reasoning_effort": "low"},
    "image_side_px": 32,
    "detail": "low",
    "images": 1,
}


MATTERS_NOT: dict[str, Any] = {
    "key_env": None,
    "price": {"input": 1.0, "output": 1.0},
    "at_once": 1,
    "timeout_s": 3.0,
    "attempts": 1,
    "give_up_after_s": 1.0,
}


def test_a_stored_reply_is_used_only_if_all_settings_that_it_depends_on_are_the_same(tmp_path: Path) -> None:
    """Of those that matter the plan of a run tells too: `kinodex.jobs.models`."""
    assert {*MATTERS, *MATTERS_NOT, "base_url"} == set(Role.model_fields), "say of a new one if replies depend on it"
    assert set(MATTERS) - {"model"} == REPLY_SETTINGS
    with ChatServer(lambda _: ANSWER, models=("tester", "another")) as server:
        for setting, value in (MATTERS | MATTERS_NOT).items():
            with ResponseCache(tmp_path / setting) as cache:
                ask(server, decide(), cache=cache)
                [exchange] = ask(server, decide(), cache=cache, **{setting: value})
            assert exchange.cached == (setting in MATTERS_NOT), setting


OTHER_SHAPES = [
    b"null",
    b"[]",
    b"{}",
    b"7",
    b'"text"',
    b"not json",
    b"",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"a": ' * 100_000,
    b'{"text": 5}',
    b'{"text": null}',
    b'{"text": "x", "calls": "many"}',
    b'{"text": "x", "input_tokens": 1e400}',
    b'{"text": "\\ud800"}',
    b'{"completion": {"text": "x"}}',
]


def test_a_row_in_another_shape_is_asked_for_again_and_replaced(tmp_path: Path) -> None:
    kites = replace(discover(), question=Question("How many kites are there?"))
    with ChatServer(lambda _: QUERIES) as server:
        with ResponseCache(tmp_path / "c") as cache:
            ask(server, discover(), kites, cache=cache)
        for at, row in enumerate(OTHER_SHAPES):
            stored: object = row if at % 2 else row.decode(errors="replace")
            with closing(sqlite3.connect(tmp_path / "c")) as database, database:
                key = database.execute("SELECT MIN(key) FROM replies").fetchone()[0]
                database.execute("UPDATE replies SET reply = ? WHERE key = ?", (stored, key))
            with ResponseCache(tmp_path / "c") as cache:
                exchanges = ask(server, discover(), kites, discover(), kites, cache=cache)
            assert sorted(each.cached for each in exchanges) == [False, True, True, True], row[:40]
            assert [each.cached for each in exchanges[2:]] == [True, True], row[:40]
            assert len({str(each.reply) for each in exchanges}) == 1 and exchanges[0].reply, row[:40]
