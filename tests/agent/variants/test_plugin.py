"""Agents of one's own, from a file or a module: found, asked, measured, resumed, and refused where they are unclear."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from mcp import Client

from kinodex.agent.ask import find_variant
from kinodex.agent.environment import Environment
from kinodex.agent.errors import InvalidReply, UnknownAgent
from kinodex.agent.limits import Budget
from kinodex.agent.prompts import render
from kinodex.agent.protocol import Question, Reply, Request
from kinodex.agent.trace import read_trace
from kinodex.agent.variants.base import with_settings
from kinodex.agent.variants.baselines import UNIFORM
from kinodex.jobs.eval.folder import read_plan, read_results, trace_file
from kinodex.mcp.server import AskOptions, LibraryTools, make_server
from tests.support.command import Kinodex, bad
from tests.support.libraries.agent_library import ScriptedModel, environment_of, film, make_library
from tests.support.runs.eval_runs import OWN_AGENT, caption_library, write_questions
from tests.support.servers.chat_server import ChatServer

ANSWER = {"action": "answer", "option": "A", "answer": "red", "evidence": [1]}
OWN = '''
"""A guess from the first lines that are written of each video."""

from __future__ import annotations

from dataclasses import dataclass

from kinodex.agent.requests.answer import AnswerNotes
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines import UNIFORM


@dataclass(frozen=True, slots=True)
class Parameters:
    lines: int = 3
    rounds: int = 1


async def run(session, parameters):
    videos = session.environment.videos
    session.account.begin_round()
    notes = [note for each in videos for note in session.environment.captions(each.video_id)[: parameters.lines]]
    return await session.conclude(AnswerNotes(question=session.question, videos=videos, notes=tuple(notes)))


FIRST = Variant("first-lines", "the first captions, one call", run, lambda longest_s: Parameters(), ("policy",),
                ("captions",), {"one line": {"lines": 1}})
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
    assert [each.name for each in found] == ["first-lines"] * 3
    assert found[0] is found[1]
    assert with_settings(found[0].parameters(60.0), {"lines": "7"}).lines == 7
    assert find_variant(f"{own}:UNIFORM") is UNIFORM


def test_a_file_that_was_changed_is_read_again(own: Path) -> None:
    before = find_variant(str(own))
    own.write_text(OWN.replace("lines: int = 3", "lines: int = 5"))
    assert (before.parameters(60.0).lines, find_variant(str(own)).parameters(60.0).lines) == (3, 5)


@pytest.mark.parametrize(
    ("code", "spec", "says"),
    [
        (None, "{}/none.py", "cannot read .*none.py: .*No such file"),
        ("X = 1", "{}/own.py", "defines no Variant at its top level"),
        (OWN_AGENT, "{}/own.py:OTHER", "which defines UNIFORM, MINE; write FILE.py, FILE.py:NAME"),
        (OWN_AGENT + 'TOO = replace(MINE, name="too")', "{}/own.py", "which defines MINE, TOO"),
        (OWN_AGENT.replace('"mine"', '"eea"'), "{}/own.py", "an agent 'eea', which is one of kinodex's own"),
        (None, "{}/own.py:not a name", "for an agent; write"),
        (None, "no_such_module:NAME", "there is no module 'no_such_module'"),
        (None, "eea.py:", "for an agent; write"),
        (None, ".eea:EEA", "for an agent; write"),
    ],
)
def test_what_means_no_agent_is_refused(tmp_path: Path, code: str | None, spec: str, says: str) -> None:
    if code is not None:
        (tmp_path / "own.py").write_text(code)
    with pytest.raises(UnknownAgent, match=says):
        find_variant(spec.format(tmp_path))


def test_what_goes_wrong_in_a_file_comes_through_with_its_line(own: Path, kinodex: Kinodex, place: Path) -> None:
    own.write_text(OWN + "\nimport no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught:
        kinodex("ask", place / "library", "What?", "--agent", own)
    assert caught.traceback[-1].path == own
    with pytest.raises(ModuleNotFoundError):
        find_variant(str(own))  # it is not taken for loaded


@pytest.mark.slow
def test_what_an_agent_raises_in_a_run_says_at_which_question(
    own: Path, kinodex: Kinodex, place: Path, server: ChatServer
) -> None:
    own.write_text(OWN.replace("    videos = ", "    raise ValueError('boom')\n    videos = ", 1))
    out = own.with_name("run")
    files = ("sketch", place / "library", "--annotations", place / "questions.jsonl", "--out", out, "--no-page")
    done = kinodex("eval", *files, "--agent", own, *at(server))
    results = [each for each in read_results(out) if each.contender == "first-lines"]
    assert results and all(
        "boom" in (each.error or "") and "first.py, line" in (each.error or "") for each in results
    ), done


@dataclass(frozen=True, kw_only=True)
class CountThings(Request["Count"]):
    template: ClassVar[str] = (
        'Count them.\n{% include "_question.jinja" %}\nReply with JSON only: {"count": <number>}\n'
    )
    role: ClassVar[str] = "policy"
    question: Question

    def check(self, reply: Count) -> None:
        if reply.count < 0:
            raise InvalidReply(f"{reply.count} things; give 0 or more")


class Count(Reply):
    count: int


def test_a_request_brings_its_own_template() -> None:
    text = render(CountThings(question=Question("How many boats?")))
    assert text.startswith("Count them.\nQuestion: How many boats?\n")
    assert text.endswith('{"count": <number>}')


@pytest.mark.slow
def test_the_command_line_asks_it_and_continues_and_replays(
    own: Path, kinodex: Kinodex, place: Path, server: ChatServer
) -> None:
    shown = kinodex("agents", own)
    assert "first-lines: the first captions" in shown.out
    assert "--set lines=3" in shown.out
    about = ("ask", place / "library", "Which kite?", "--agent", f"{own}:FIRST")
    trace, then = own.with_name("run.jsonl"), own.with_name("then.jsonl")
    assert kinodex(*about, "--set", "lines=2", "--trace", trace, *at(server)).code == 0
    header = read_trace(trace)[0]
    assert (header["agent"], header["parameters"]) == ("first-lines", {"lines": 2, "rounds": 1})
    assert "red" in kinodex(*about, "--set", "lines=2", "--model", f"replay:{trace}").out
    assert kinodex(*about, "--continue", trace, "--trace", then, *at(server)).code == 0
    assert read_trace(then)[0]["question"]["earlier"][0]["answer"] == "red"
    page = own.with_name("page.html")
    assert kinodex("view", trace, "--out", page).code == 0
    assert "first-lines" in page.read_text()


@pytest.mark.slow
def test_it_is_measured_and_a_run_of_other_code_is_refused(
    own: Path, kinodex: Kinodex, place: Path, server: ChatServer
) -> None:
    out, again = own.with_name("run"), own.with_name("again")
    files = ("sketch", place / "library", "--annotations", place / "questions.jsonl", "--out", out, "--no-page")
    command = ("eval", *files, "--no-controls", "--ablations", "--agent", f"{own}:FIRST:lines=2", *at(server))
    assert kinodex(*command).code == 0
    plan = read_plan(out)
    assert [each.name for each in plan.contenders] == ["first-lines:lines=2", "first-lines:lines=2, one line"]
    assert {each.source for each in plan.contenders} == {OWN}
    records = read_results(out)
    assert {(each.status, each.contender) for each in records} == {("answered", e.name) for e in plan.contenders}
    assert trace_file(out, plan.contenders[0].name, records[0].item_id).exists()
    own.write_text(OWN + "# changed\n")
    bad(kinodex, *command, code=2, says="list of agents was first-lines:lines=2 (code ")
    assert kinodex(*(again if each == out else each for each in command)).code == 0
    assert "code of first-lines:lines=2" in kinodex("eval", "compare", out, again).out
    own.unlink()
    assert "first-lines:lines=2" in kinodex("eval", "report", out).out


def test_a_client_of_the_server_asks_it_by_name_and_has_no_file_executed(place: Path, own: Path) -> None:
    from kinodex.index.library import Library

    mark = own.with_name("mark")
    own.with_name("evil.py").write_text(f"open({str(mark)!r}, 'w').close()\n{OWN}")
    asking = AskOptions(lambda environment: ScriptedModel(lambda request: ANSWER), {}, find_variant(str(own)), Budget())

    async def use() -> list[Any]:
        async with Client(make_server(LibraryTools(Library.open(str(place / "library"))), asking)) as client:
            given = [None, "first-lines", "blind", str(own.with_name("evil.py")), f"{own.with_name('evil.py')}:FIRST"]
            return [await client.call_tool("ask", {"question": "What?", "agent": name}) for name in given]

    mine, by_name, blind, *evil = asyncio.run(use())
    agents = [json.loads(each.content[0].text)["agent"] for each in (mine, by_name, blind)]
    assert agents == ["first-lines", "first-lines", "blind"]
    assert all(each.is_error and "there is no agent" in each.content[0].text for each in evil)
    assert not mark.exists()
