"""What is true never reaches who answers: secrets are planted in the truth of every benchmark form and looked for."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent.catalogue import VARIANTS
from agent.ledger import Budget
from agent.question import Question
from jobs.benchmarks.item import Item, Truth
from jobs.evaluation.asking import Ask, Asked, Outcome, Setting, asker, environments
from jobs.evaluation.contenders import Contender
from jobs.evaluation.folder import read_records
from jobs.evaluation.planning import Wanted, planned
from jobs.evaluation.run import How, run
from jobs.models import ModelChoice
from tests.chat_server import ChatServer
from tests.eval_kit import caption_library, write_questions
from tests.rule_server import Rules

TEXT, CLIP, ID, GROUP, TIMES = "sesame-text", "sesame-clip", "sesame-id", "sesame-group", (3.14159, 27.18281)
SECRETS = ("sesame", *map(str, TIMES), "3.142", "27.183")
OPTIONS = ("red kite", "blue kite", "green kite")
FORMS = {
    "options": (Question("Which kite is it?", OPTIONS), Truth(option=2, evidence=(TIMES,))),
    "options with a clip": (Question("Which kite is it?", OPTIONS), Truth(option=2, clip=CLIP, evidence=(TIMES,))),
    "options in the text": (Question("Which kite?\n(A) red\n(B) blue"), Truth(option=1, evidence=(TIMES,))),
    "free form": (Question("What is over the sea?"), Truth(text=TEXT, evidence=(TIMES,))),
}
READERS = [each.name for each in VARIANTS if not each.needs_pictures]


def item_of(form: str) -> Item:
    question, truth = FORMS[form]
    return Item("item-1", ID, question, truth, {"question_type": (GROUP,)}, 30.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaks")
    caption_library(folder / "library", ("harbour",))
    write_questions(folder, ("harbour",), 1)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(Rules(), models=("rules",)) as server:
        yield server


def reachable(root: object) -> Iterator[object]:
    """Everything that can be reached from an object: attributes, items, keys, what functions close over."""
    seen: set[int] = set()
    left = [root]
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, type | int | float | bytes) or value is None:
            yield value
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, dict):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            left += value
        elif type(value).__module__.split(".")[0] in ("agent", "index", "jobs", "functools", "builtins", "method"):
            left += inside(value)


def inside(value: Any) -> list[object]:
    held = [getattr(value, name, None) for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    held += vars(value).values() if hasattr(value, "__dict__") else ()
    closure = getattr(value, "__closure__", None) or ()
    return [*held, *(cell.cell_contents for cell in closure), getattr(value, "__self__", None)]


def found(root: object) -> list[object]:
    """What of the truth can be reached from an object."""
    return [
        value
        for value in reachable(root)
        if isinstance(value, Truth | Item)
        or (isinstance(value, str) and any(secret in value for secret in SECRETS))
        or (isinstance(value, float) and value in TIMES)
    ]


def test_the_search_finds_what_is_hidden() -> None:
    item = item_of("options with a clip")
    assert item.truth in found({"a": [lambda: item]})
    assert set(TIMES) <= {each for each in found(item) if isinstance(each, float)}
    assert found(Asked(item.item_id, item.question, ("v",))) == []
    assert not {each.name for each in fields(Asked)} & {each.name for each in (*fields(Truth), *fields(Item))} - {
        "item_id",
        "question",
    }


def put(place: Path, server: ChatServer, out: Path, item: Item) -> tuple[list[object], list[str]]:
    """Put one question to all agents that read: what crossed over to who asks, and the bodies of all requests."""
    choice = ModelChoice("rules", server.base_url, cache=False)
    setting = Setting(str(place / "library"), choice, Budget(), traces=True)
    contenders = tuple(Contender(name, name) for name in READERS)
    plan, [asked_before] = planned(Wanted("sketch", place / "questions.jsonl", contenders), setting)
    plan = replace(plan, items={item.item_id: plan.items[asked_before.item_id]})
    crossed: list[object] = [setting, environments(setting)(plan.items[item.item_id])]

    @asynccontextmanager
    async def watched() -> AsyncIterator[Ask]:
        async with asker(setting) as ask:

            async def asked(contender: Contender, question: Asked) -> Outcome:
                crossed.append((contender, question))
                return await ask(contender, question)

            yield asked

    server.seen.clear()
    run(plan, [item], watched(), out, Console(file=io.StringIO()), How(at_once=1))
    assert {each.contender for each in read_records(out) if not each.error} == set(READERS)
    return crossed, [json.dumps(seen.body, sort_keys=True) for seen in server.seen]


@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_the_truth_reaches_an_agent_or_its_requests(
    place: Path, server: ChatServer, tmp_path: Path, form: str
) -> None:
    item = item_of(form)
    put(place, server, tmp_path / "first", item)  # which leaves summaries in the library, as any run does
    crossed, bodies = put(place, server, tmp_path / "run", item)
    assert len(bodies) >= len(READERS) - len(["random"])
    assert found(crossed) == []
    assert [body for body in bodies if any(secret in body for secret in SECRETS)] == []
    # Were the truth another one, every request would be the same.
    other = replace(item, truth=Truth(option=0, text="another", evidence=((1.0, 2.0),)), groups={}, video="another")
    assert put(place, server, tmp_path / "other", other)[1] == bodies


@pytest.mark.parametrize("form", FORMS)
def test_what_is_kept_of_an_answer_holds_nothing_of_the_truth(
    place: Path, server: ChatServer, tmp_path: Path, form: str
) -> None:
    put(place, server, tmp_path / "run", item_of(form))
    kept = [(tmp_path / "run" / "answers.jsonl").read_bytes()]
    kept += [gzip.decompress(path.read_bytes()) for path in (tmp_path / "run" / "traces").rglob("*.gz")]
    assert len(kept) == 1 + len(READERS)
    assert [secret for secret in SECRETS for content in kept if secret.encode() in content] == []
    assert b"sesame" in (tmp_path / "run" / "items.jsonl").read_bytes()


def test_nobody_who_asks_imports_what_knows_the_truth() -> None:
    code = "import sys, jobs.evaluation.asking, jobs.evaluation.processes, agent.catalogue; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    knowing = {"jobs.benchmarks.item", "jobs.evaluation.plan", "jobs.evaluation.scoring", "jobs.truth"}
    assert knowing & set(loaded) == set()
