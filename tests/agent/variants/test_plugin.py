"""Agents of one's own, from a file or a module: found, asked, measured, resumed, and refused where they are unclear."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from kinodex.agent.catalogue import find_variant
from kinodex.agent.errors import UnknownAgent
from kinodex.agent.limits.budget import Budget
from kinodex.agent.traces.trace import read_trace
from kinodex.agent.variants.baselines.uniform import UNIFORM
from kinodex.agent.variants.settings import with_settings
from kinodex.agent.videos.environment import Environment
from kinodex.desk import Desk
from kinodex.jobs.eval.folder import read_results
from kinodex.mcp.ask_tool import AskOptions, answer_here
from kinodex.mcp.server import make_server
from kinodex.web.sentences import round_sentences
from tests.support.command import Kinodex
from tests.support.libraries.agent_library import ScriptedModel, environment_of, film, make_library
from tests.support.runs.eval_runs import OWN_AGENT, caption_library, write_questions
from tests.support.servers.chat_server import ChatServer
from tests.world.benchmark import SKETCHES

ANSWER = {"bears": True, "action": "answer", "option": "A", "answer": "red", "evidence": [1]}
OWN = '''
"""Captions are read a few at a time until some speak of the question: a whole agent, with all that it brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.reply import Reasoned
from kinodex.agent.protocol.request import Request
from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.similarity.replies import reply_to
from kinodex.agent.similarity.words import shares
from kinodex.agent.traces.events import Acted
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines.uniform import UNIFORM


@dataclass(frozen=True, slots=True)
class Parameters:
    lines: int = 3
    rounds: int = 4


class Bearing(Reasoned):
    bears: bool


@dataclass(frozen=True, kw_only=True)
class BearsOnIt(Request[Bearing]):
    Reply = Bearing
    role: ClassVar[str] = "policy"
    template: ClassVar[str] = '{% include "_question.jinja" %}\\n{% include "_notes.jinja" %}\\nDo they bear on it?\\n'
    question: Question
    videos: tuple = ()
    notes: tuple[Note, ...]


@reply_to.register(BearsOnIt)
def _bears(request, environment):
    return {"bears": bool(shares([request.question.text], request.notes).max() > 0.5)}


async def run(session, parameters):
    (video, *_), question, read = session.environment.videos, session.question, ()
    while True:
        number = session.account.begin_round()
        first = parameters.lines * (number - 1)
        some = session.environment.captions(video.video_id)[first : first + parameters.lines]
        reply = await session.ask(BearsOnIt(question=question, notes=tuple(some)))
        session.emit(Acted(number, "read_on", {"lines": len(some)}))
        read += tuple(some)
        if session.over() or (reply and reply.bears):
            return await session.conclude(AnswerNotes(question=question, videos=(video,), notes=read))


FIRST = Variant("first-lines", "the first captions that speak of it", run, lambda longest_s: Parameters(), ("policy",),
                ("captions",), {"one line": {"lines": 1}}, plain="Reads on until it knows.",
                words={"read_on": lambda step: f"read {step['arguments']['lines']} lines"},
                assumes=lambda request: {"reasoning": "", "bears": False} if isinstance(request, BearsOnIt) else None)
'''


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "first.py"
    path.write_text(OWN)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `library` and `questions.jsonl`."""
    folder = tmp_path_factory.mktemp("own")
    caption_library(folder / "library", ("harbour",))
    write_questions(folder, ("harbour",))
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda body: ANSWER) as server:
        yield server


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_of(make_library(tmp_path_factory.mktemp("library"), {"film": film(1, 40)}))


def at(server: ChatServer) -> tuple[object, ...]:
    return "--model", "tester", "--base-url", server.base_url, "--no-cache"


def test_a_file_a_name_in_it_and_a_module_mean_the_same(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(own.parent)
    found = [find_variant(spec) for spec in (str(own), f"{own}:FIRST", "first:FIRST")]
    assert [each.name for each in found] == ["first-lines"] * 3 and found[0] is found[1]
    assert with_settings(found[0].parameters(60.0), {"lines": "7"}).lines == 7
    assert find_variant(f"{own}:UNIFORM") is UNIFORM
    own.write_text(OWN.replace("lines: int = 3", "lines: int = 5"))
    assert (found[0].parameters(60.0).lines, find_variant(str(own)).parameters(60.0).lines) == (3, 5), "changed"


def test_what_means_no_agent_is_refused(tmp_path: Path) -> None:
    for code, spec, says in (
        (None, "{}/none.py", "cannot read .*none.py: .*No such file"),
        ("X = 1", "{}/own.py", "defines no Variant at its top level"),
        (OWN_AGENT, "{}/own.py:OTHER", "which defines UNIFORM, MINE; write FILE.py, FILE.py:NAME"),
        (OWN_AGENT + 'TOO = replace(MINE, name="too")', "{}/own.py", "which defines MINE, TOO"),
        (OWN_AGENT.replace('"mine"', '"eea"'), "{}/own.py", "an agent 'eea', which is one of kinodex's own"),
        (None, "{}/own.py:not a name", "for an agent; write"),
        (None, "no_such_module:NAME", "there is no module 'no_such_module'"),
        (None, "eea.py:", "for an agent; write"),
        (None, ".eea:EEA", "for an agent; write"),
    ):
        if code is not None:
            (tmp_path / "own.py").write_text(code)
        with pytest.raises(UnknownAgent, match=says):
            find_variant(spec.format(tmp_path))


@pytest.mark.slow
def test_what_goes_wrong_in_a_file_comes_through_with_its_line(
    own: Path, kinodex: Kinodex, place: Path, server: ChatServer
) -> None:
    own.write_text(OWN + "\nimport no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught:
        kinodex("ask", place / "library", "What?", "--agent", own)
    assert caught.traceback[-1].path == own
    with pytest.raises(ModuleNotFoundError):
        find_variant(str(own))  # it is not taken for loaded
    own.write_text(OWN.replace("    while True", "    raise ValueError('boom')\n    while True", 1))
    out = own.with_name("run")
    files = (SKETCHES, place / "library", "--annotations", place / "questions.jsonl", "--out", out, "--no-page")
    done = kinodex("eval", *files, "--agent", own, "--no-controls", *at(server))
    errors = [each.error or "" for each in read_results(out) if each.contender == "first-lines"]
    assert errors and all("boom" in error and "first.py, line" in error for error in errors), done


@pytest.mark.slow
def test_one_file_is_a_whole_agent_for_every_command(
    own: Path, kinodex: Kinodex, place: Path, server: ChatServer
) -> None:
    """Listed, forecast, asked by similarity through its own reply, drawn in its own words, replayed, continued."""
    shown = kinodex("agents", own)
    assert "first-lines: the first captions" in shown.out
    assert "--set lines=3" in shown.out
    about = ("ask", place / "library", "Which kite is blue?", "--agent", f"{own}:FIRST")
    trace, then, page = own.with_name("run.jsonl"), own.with_name("then.jsonl"), own.with_name("page.html")
    assert "| first-lines | 1 | 5 |" in kinodex(*about, "--dry-run", *at(server)).out, "four rounds and the answer"
    assert kinodex(*about, "--set", "lines=2", "--trace", trace).code == 0, "similarity has a reply"
    header = read_trace(trace)[0]
    assert (header["agent"], header["parameters"]) == ("first-lines", {"lines": 2, "rounds": 4})
    assert round_sentences(read_trace(trace))[1].startswith("Round 1: it read 2 lines")
    assert kinodex(*about, "--trace", trace, *at(server)).code == 0
    assert "red" in kinodex(*about, "--model", f"replay:{trace}").out
    assert kinodex(*about, "--follow-up", trace, "--trace", then, *at(server)).code == 0
    assert read_trace(then)[0]["question"]["earlier"][0]["answer"] == "red"
    own.unlink()
    assert kinodex("export", "page", trace, page).code == 0
    assert "first-lines" in page.read_text() and "it read 3 lines" in page.read_text(), "without its code"


def test_a_client_of_the_server_asks_it_by_name_and_has_no_file_executed(place: Path, own: Path) -> None:
    from kinodex.index.library import Library

    mark = own.with_name("mark")
    own.with_name("evil.py").write_text(f"open({str(mark)!r}, 'w').close()\n{OWN}")
    model = ScriptedModel(lambda request: ANSWER)
    desk = Desk(Library.open(str(place / "library")), model, agent=find_variant(str(own)), is_local=False)
    asking = AskOptions({}, Budget()), answer_here(desk, lambda environment: model)

    async def use() -> list[Any]:
        async with Client(make_server(desk, *asking)) as client:
            given = [None, "first-lines", "blind", str(own.with_name("evil.py")), f"{own.with_name('evil.py')}:FIRST"]
            return [await client.call_tool("ask", {"question": "What?", "agent": name}) for name in given]

    mine, by_name, blind, *evil = asyncio.run(use())
    agents = [json.loads(each.content[0].text)["agent"] for each in (mine, by_name, blind)]
    assert agents == ["first-lines", "first-lines", "blind"]
    assert all(each.is_error and "there is no agent" in each.content[0].text for each in evil)
    assert not mark.exists()
