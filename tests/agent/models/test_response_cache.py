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
from kinodex.agent.models.roles import ResponseCache, Role
from kinodex.agent.protocol import Question, Reply, Turn
from kinodex.agent.requests.tree import ScoreSegments
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
    at_s: float


LOOK = {"tool": "look", "at_s": 1.0}
CALLS = (Call, OtherCall)


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


def test_an_invalid_reply_is_asked_for_again_and_the_good_one_kept(tmp_path: Path) -> None:
    """A server that was mended must not be hidden behind the nonsense that it wrote before."""
    with ResponseCache(tmp_path / "c") as cache, ChatServer(in_turn(refusing("no"), QUERIES)) as server:
        bad, good, kept = ask(server, discover(), discover(), discover(), cache=cache)
    assert (bad.invalid, bad.cached) == ("refused: no", False)
    assert (good.invalid, good.cached) == (None, False)
    assert (kept.reply, kept.cached) == (good.reply, True)
    assert len(server.seen) == 2


def test_an_invalid_reply_that_was_stored_earlier_is_replaced(tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "c") as cache:
        with ChatServer(lambda _: QUERIES) as server:
            ask(server, discover(), cache=cache)
            nonsense = _store_nonsense(tmp_path / "c")
            good, kept = ask(server, discover(), discover(), cache=cache)
        assert nonsense == 1
        assert (good.cached, kept.cached, kept.invalid) == (False, True, None)


def _store_nonsense(file: Path) -> int:
    """Write nonsense into every stored completion, as versions before stored it; gives their number."""
    with closing(sqlite3.connect(file)) as database, database:
        rows = database.execute("SELECT key, reply FROM replies").fetchall()
        for key, reply in rows:
            changed = json.dumps(json.loads(reply) | {"text": "Lorem ipsum."})
            database.execute("UPDATE replies SET reply = ? WHERE key = ?", (changed, key))
    return len(rows)


def again(**differs: object) -> Any:
    """The request that `score` gives, with the same words, of a class that differs."""
    kind: Any = type("Again", (ScoreSegments,), differs)
    asked = score()
    return kind(question=asked.question, videos=asked.videos, segments=asked.segments, frames=asked.frames)


def test_whatever_matters_in_a_request_makes_a_different_question(tmp_path: Path) -> None:
    with ResponseCache(tmp_path / "c") as cache, ChatServer(lambda _: SCORES) as server:
        ask(server, score(), cache=cache)
        for other in (
            score((replace(frame(20), jpeg=frame(21).jpeg), frame(40))),
            score((frame(40), frame(20))),
            replace(score(), question=Question("What colour is the kite?", ("red", "green"))),
            again(turns=(Turn("assistant", "Well."), Turn("user", "Go on."))),
            replace(score(), complaint="too long", bad_reply="{}"),
            again(**DESCRIBED),
            again(form="tools", tools=(Call,)),
            score((frame(20), frame(41))),
            score((frame(20, size=(64, 46)), frame(40))),
            replace(score(), attempt=1),
        ):
            [exchange] = ask(server, other, cache=cache)
            assert not exchange.cached, other
        [exchange] = ask(server, score(), cache=cache, sample=1)
        assert not exchange.cached


def test_endpoint_form_and_tools_make_a_different_question(tmp_path: Path) -> None:
    as_json, as_text = again(**DESCRIBED), again(**DESCRIBED, form="text")
    few, more = (again(**DESCRIBED | {"Reply": Look}, form="tools", tools=tools) for tools in (CALLS[:1], CALLS))
    with (
        ChatServer(lambda body: calling(LOOK) if body.get("tools") else {"text": "a kite"}) as one,
        ChatServer(lambda _: {"text": "a kite"}) as other,
        ResponseCache(tmp_path / "c") as cache,
    ):
        asked = (one, as_json), (one, as_text), (one, few), (one, more), (other, as_json)
        first = [ask(server, request, cache=cache) for server, request in asked]
        second = [ask(server, request, cache=cache) for server, request in asked]
    assert not any(exchange.cached for [exchange] in first)
    assert all(exchange.cached for [exchange] in second)


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


def test_what_is_under_way_already_is_waited_for(tmp_path: Path) -> None:
    with ChatServer(lambda _: Behaviour(json.dumps(QUERIES), after_s=0.1)) as server:
        exchanges = asked_together(server, tmp_path / "c")
    assert len(server.seen) == 1
    assert [each.cached for each in exchanges] == [False, True, True]
    assert len({each.raw for each in exchanges}) == 1


def test_whoever_goes_away_leaves_the_asking_to_the_next(tmp_path: Path) -> None:
    with ChatServer(in_turn(hanging(0.5), QUERIES)) as server:
        gone, paid, free = asked_together(server, tmp_path / "c", cancel_first=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert (len(server.seen), paid.cached, free.cached) == (2, False, True)


WRITER = """
import sys
from pathlib import Path
from kinodex.agent.models.roles import ResponseCache
with ResponseCache(Path(sys.argv[1])) as cache:
    for number in range(200):
        cache.put(f"shared {number}", {"text": "same"})
        cache.put(f"{sys.argv[2]} {number}", {"text": sys.argv[2]})
        assert cache.get(f"shared {number}") == {"text": "same"}
"""


@pytest.mark.slow
def test_several_processes_may_use_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "replies.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b", "c")]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    with ResponseCache(path) as cache:
        for name in ("a", "b", "c"):
            assert all(cache.get(f"{name} {number}") == {"text": name} for number in range(200))


def test_a_file_that_is_no_cache_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(CacheDamaged) as caught:
        ResponseCache(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes().startswith(b"not a database")


PRICE = {"input": 1.0, "output": 1.0}


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
    "joint_schema": True,
    "context_tokens": 9999,
    "seed": 4,
    "extra": {"reasoning_effort": "low"},
    "image_side_px": 32,
    "detail": "low",
    "images": 1,
}


MATTERS_NOT: dict[str, Any] = {
    "key_env": None,
    "price": PRICE,
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
    with ChatServer(lambda _: QUERIES) as server:
        for at, row in enumerate(OTHER_SHAPES):
            stored: object = row if at % 2 else row.decode(errors="replace")
            with ResponseCache(tmp_path / f"{at}") as cache:
                ask(server, discover(), kites(), cache=cache)
            with closing(sqlite3.connect(tmp_path / f"{at}")) as database, database:
                key = database.execute("SELECT key FROM replies ORDER BY rowid").fetchone()[0]
                database.execute("UPDATE replies SET reply = ? WHERE key = ?", (stored, key))
            with ResponseCache(tmp_path / f"{at}") as cache:
                again, other, kept = ask(server, discover(), kites(), discover(), cache=cache)
            assert (again.cached, other.cached, kept.cached) == (False, True, True), row[:40]
            assert again.reply == kept.reply is not None, row[:40]


def kites() -> Any:
    """Another request with the same reply."""
    return replace(discover(), question=Question("How many kites are there?"))


def test_after_a_failure_the_next_one_asks_itself(tmp_path: Path) -> None:
    with ChatServer(in_turn(replace(failing(400, "not now"), after_s=0.1), QUERIES)) as server:
        refused, paid, free = asked_together(server, tmp_path / "c")
    assert isinstance(refused, ModelRejected)
    assert (len(server.seen), paid.cached, free.cached) == (2, False, True)


OPENER = """
import sys, time
from pathlib import Path
from kinodex.agent.models.roles import ResponseCache
for number in range(50):
    time.sleep(max(0.0, float(sys.argv[2]) + 0.02 * number - time.time()))
    with ResponseCache(Path(sys.argv[1]) / str(number)) as cache:
        cache.put(sys.argv[3], {"text": "made"})
"""


@pytest.mark.slow
def test_several_processes_may_make_one_file_in_the_same_moment(tmp_path: Path) -> None:
    begin = str(time.time() + 1.0)
    openers = [
        subprocess.Popen([sys.executable, "-c", OPENER, str(tmp_path), begin, name]) for name in ("a", "b", "c", "d")
    ]
    assert [opener.wait(timeout=60) for opener in openers] == [0, 0, 0, 0]
