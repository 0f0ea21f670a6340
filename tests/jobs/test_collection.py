"""`kinodex ask --all`: a plan, a table filled in film by film, an answer from its rows, and what was not looked at."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from kinodex.agent.catalogue import find_variant
from kinodex.agent.errors import BadSettings
from kinodex.agent.limits.budget import Budget
from kinodex.agent.limits.stop import StopSignal
from kinodex.agent.traces.events import Acted, Event
from kinodex.agent.traces.trace import read_trace
from kinodex.desk import videos_left_out
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.collection.answer import CollectionAnswer
from kinodex.jobs.collection.question import ALL
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice
from kinodex.library import open as opened_at
from kinodex.requests import Ask
from kinodex.web.daily_costs import spent_today
from kinodex.web.kept_traces import Kept
from kinodex.web.questions import Questions
from kinodex.web.sentences import latest_sentence
from kinodex.web.serve_settings import ServeSettings
from tests.support.command import Kinodex, json_of
from tests.support.scenes.chaptered_film import PLACES, add_film, make_film
from tests.support.servers.chat_server import SEES, Behaviour, ChatServer

QUESTION = "In which films is a kitchen seen, and how often?"
WHICH = "SELECT title, count(*) AS times, sum(shots) AS shots FROM found GROUP BY video_id, title ORDER BY title"
PLAN = {
    "search": "a kitchen with a stove",
    "row": "one time that a kitchen is seen",
    "fields": [
        {"name": "place", "kind": "text", "meaning": "the place"},
        {"name": "shots", "kind": "whole number", "meaning": "how many shots"},
    ],
    "each": "scene",
    "condition": "place = 'kitchen'",
    "select": WHICH,
}


def told(body: dict[str, Any]) -> str:
    return str([message["content"] for message in body["messages"]])


def honest(body: dict[str, Any], plan: object = PLAN) -> Any:
    """Plans as it is set, writes down the place of a scene from its captions, and reads rows."""
    text = told(body)
    if "You plan a table" in text:
        return plan
    if "The rows, each" in text:
        return {"reasoning": "", "said": f"{text.count('kitchen, shots')} times", "evidence": [1]}
    place = next((place for place in PLACES if f"A {place}" in text), "kitchen")
    captions = re.findall(r"(\d+)\. [\d.]+ s to [\d.]+ s \(caption\)", text)
    row = {"place": place, "shots": len(captions), "evidence": captions[:2]}
    return {"rows": [row]}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films of a harbour and a kitchen, and one of the harbour alone."""
    library = make_film(tmp_path_factory.mktemp("collection") / "library", "aa", "bb", places=2)
    add_film(library, "dd", 7, described=True, places=1)
    return Path(library.uri)


@pytest.fixture
def library(films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    return Library.open(str(shutil.copytree(films, tmp_path / "library")))


def serving(reply: Any) -> ChatServer:
    server = ChatServer(reply)
    server.model_facts = SEES
    return server


@pytest.mark.slow
def test_which_films_and_how_often(library: Library, kinodex: Kinodex, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with serving(honest) as server:
        model = ("--model", "tester", "--base-url", server.base_url)
        bill = json_of(kinodex, "ask", library.uri, QUESTION, "--agent", "all", "--dry-run", *model)
        assert (bill["plan_from"], bill["films"], len(server.seen)) == ("default", 3, 0), "a dry run asks nothing"
        assert [cost["calls"] for cost in bill["costs"]] == [1, 3]

        answer = json_of(kinodex, "ask", library.uri, QUESTION, "--agent", "all", *model, "--trace", trace)
        assert answer["rows"] == [["film aa", 1, 12], ["film bb", 1, 12]]
        assert answer["columns"] == ["title", "times", "shots"]
        assert [(film["title"], film["times"]) for film in answer["films"]] == [("film aa", 1), ("film bb", 1)]
        assert answer["films"][0]["moments"] == [{"video_id": "aa", "start_s": 60.0, "end_s": 70.0}]
        assert (answer["looked_at"], answer["ledger"]["calls"], answer["ledger"]["invalid_replies"]) == (3, 6, 0)
        assert len(server.seen) == 6, "a plan, and five scenes"
        assert "between the 8 frames" in answer["text"]

        again = kinodex("ask", library.uri, QUESTION, "--agent", "all", *model)
        assert "film aa (times 1, shots 12)" in again.out and "as it was for the same question" in again.err
        assert len(server.seen) == 6, "the same question again costs nothing"
        bill = json_of(kinodex, "ask", library.uri, QUESTION, "--agent", "all", "--dry-run", *model)
        assert (bill["plan_from"], [cost["calls"] for cost in bill["costs"]]) == ("library", [0])

        whole = PLAN | {"condition": None, "select": "SELECT count(DISTINCT video_id) AS films FROM found"}
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps(whole))
        other = json_of(kinodex, "ask", library.uri, QUESTION, "--agent", "all", "--plan", plan, *model)
        assert (other["rows"], other["plan_from"], len(server.seen)) == ([[3]], "file", 6), "the rows are the same"
        among = json_of(
            kinodex, "ask", library.uri, QUESTION, "--agent", "all", *model, "--where", "title <> 'film aa'"
        )
        assert among["rows"] == [["film bb", 1, 12]]
        assert "1 film not asked about, by title <> 'film aa'" in among["text"]
    assert server.problems == []
    assert [each["event"] for each in read_trace(trace)][:2] == ["RunStarted", "Acted"]
    exported = kinodex("export", "csv", library.uri, tmp_path / "evidence.csv", "--trace", trace)
    assert exported.code == 0 and (tmp_path / "evidence.csv").read_text().count(",evidence,") == 2
    table = answer["extract"].partition("@")[0]
    assert json_of(kinodex, "sql", library.uri, f"SELECT count(*) AS n FROM {table}") == [{"n": 5}]
    assert audit(library, deep=True).problems == ()


def as_collection(answer: object) -> CollectionAnswer:
    assert isinstance(answer, CollectionAnswer)
    return answer


def test_a_model_that_reads_the_rows(library: Library) -> None:
    with serving(lambda body: honest(body, PLAN | {"select": None})) as server:
        answer = cast(
            "CollectionAnswer",
            opened_at(library.uri).ask(QUESTION, agent="all", model="tester", base_url=server.base_url),
        )
    assert answer.text is not None and answer.text.startswith("2 times")
    assert (answer.rows, [film.title for film in answer.films]) == ((), ["film aa"]), "the row that it cites"


BAD_PLANS = {
    "no_column": (PLAN | {"condition": "colour = 'red'"}, 'Referenced column "colour" not found'),
    "no_select": (PLAN | {"select": "DELETE FROM found"}, "give one SELECT"),
    "a_file": (PLAN | {"select": "SELECT * FROM read_csv('/etc/passwd')"}, "SQL reads only the library"),
    "taken_name": (PLAN | {"fields": [{"name": "title", "kind": "text", "meaning": "it"}]}, "every extract has"),
    "no_words": (PLAN | {"search": " "}, "search or the row is empty"),
    "prose": ("I would look at all of them.", "JSON"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_PLANS)
def test_plans_that_cannot_be_carried_out(name: str, library: Library) -> None:
    """The model hears why and tries again; then the default plan takes its place, and both replies are counted."""
    plan, complaint = BAD_PLANS[name]
    complaints = []

    def reply(body: dict[str, Any]) -> Any:
        if "You plan a table" in told(body):
            complaints.append(told(body))
            return plan
        return {"rows": [{"shown": "a kitchen", "evidence": []}] if "A kitchen" in told(body) else []}

    with serving(reply) as server:
        answer = cast(
            "CollectionAnswer",
            opened_at(library.uri).ask(QUESTION, agent="all", model="tester", base_url=server.base_url),
        )
    assert complaint in complaints[1]
    assert (answer.plan_from, answer.ledger.invalid_replies, len(complaints)) == ("default", 2, 2)
    assert answer.plan is not None and answer.plan.each == "video", "the films are short"


@pytest.mark.slow
def test_ended_and_gone_on_with(library: Library) -> None:
    """Money, a stop and parts without a usable reply: each is said, and the next run goes on."""
    opened, stop = opened_at(library.uri), StopSignal()
    unusable = ["dd"]

    def reply(body: dict[str, Any]) -> Any:
        is_last = "A harbour, shot 0 of dd" in told(body)
        return Behaviour("no words") if is_last and unusable else honest(body)

    def stopping(event: Event) -> None:
        if isinstance(event, Acted) and event.action == "look":
            stop.stop()

    with serving(reply) as server:
        asking: dict[str, Any] = {"model": "tester", "base_url": server.base_url}
        one: dict[str, Any] = {"settings": {"at_once": 1}}
        stopped = cast(
            "CollectionAnswer", opened.ask(QUESTION, agent="all", **asking, **one, on_event=stopping, stop=stop)
        )
        assert (stopped.status, stopped.reason) == ("budget_exhausted", "stopped")
        calls = len(server.seen)
        answer = as_collection(opened.ask(QUESTION, agent="all", **asking))
        assert answer.rows == (("film aa", 1, 12), ("film bb", 1, 12))
        assert "1 film of which no reply could be used" in str(answer.text)
        assert len(server.seen) == max(calls, 7), "nothing is paid twice"
        unusable.clear()
        assert opened.ask(QUESTION, agent="all", **asking).text == answer.text, "and it is not asked again by itself"
        whole = opened.ask(QUESTION, agent="all", **asking, settings={"retry_failed": "true"})
        assert "no reply could be used" not in str(whole.text)


def test_the_money_is_a_limit(library: Library, kinodex: Kinodex) -> None:
    with serving(honest) as server:
        prices = ("--input-price", "100", "--output-price", "100", "--max-cost", "0.2", "--set", "at_once=1")
        model = ("--model", "tester", "--base-url", server.base_url)
        answer = json_of(kinodex, "ask", library.uri, QUESTION, "--agent", "all", *model, *prices)
        assert (answer["status"], answer["reason"]) == ("budget_exhausted", "cost")
        assert "left when the money was spent; ask again to go on" in str(answer["not_looked_at"])
        first = len(server.seen)
        assert first < 6
        whole = json_of(kinodex, "ask", library.uri, QUESTION, "--agent", "all", *model)
        assert (len(server.seen), whole["looked_at"]) == (6, 3)


REFUSED: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
    ({"model": "similarity"}, UsageError, "a language model has to plan"),
    ({"model": "m", "base_url": "http://127.0.0.1:9/v1", "settings": {"candidate": 3}}, BadSettings, "did"),
    ({"model": "m", "budget": Budget(rounds=3)}, UsageError, "limit its cost or seconds"),
    ({"model": "m", "plan": {"search": 3}}, UsageError, "got a plan with"),
    ({"model": "m", "plan": PLAN | {"condition": "x > 1"}}, UsageError, "cannot be carried out"),
)


def test_refused(library: Library) -> None:
    for arguments, error, message in REFUSED:
        with pytest.raises(error, match=message):
            opened_at(library.uri).ask(QUESTION, agent="all", **arguments)


def test_candidates_are_chosen_by_search(copy_sketches: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    library = copy_sketches(tmp_path / "made").library
    with serving(lambda body: honest(body, PLAN | {"search": "a red boat", "each": "moments"})) as server:
        opened = opened_at(library.uri)
        count = len(opened.videos())
        options: dict[str, Any] = {
            "model": "tester",
            "base_url": server.base_url,
            "settings": {"candidates": 1, "hits": 2},
        }
        answer = as_collection(opened.ask(QUESTION, agent="all", **options))
    assert f"{count - 1} film" in str(answer.text) and "beyond the 1 that fit the words best" in str(answer.text)


ROWS = {"film bb": "2 rows", "film dd": "1 row"}
"""What is found in two of the films."""


def test_on_a_server(library: Library, tmp_path: Path) -> None:
    """By the method `all`, as other questions are: followed, kept as a trace with its evidence, its money counted."""
    with serving(honest) as server:
        choice = ModelChoice("tester", server.base_url, input_price=10.0, output_price=10.0)
        settings = ServeSettings(choice, find_variant("eea"), tmp_path / "traces", Budget())
        questions = Questions([Library.open(library.uri)], settings)
        try:
            assert "all" in [each["name"] for each in questions.about()["agents"]]
            running = questions.start(0, Ask(question=QUESTION, agent="all", where="title <> 'film aa'"))
            answer = asyncio.run(running.finished())
            assert running.state == "done" and str(answer.text).startswith("In 1 of 2 films"), running.error
            either = {f"Round 4: it looked at {film} (2 of 2): {rows}." for film, rows in ROWS.items()}
            assert latest_sentence(running.records[:-1]) in either, "films are looked at together"
            assert spent_today(tmp_path / "traces") == pytest.approx(answer.ledger.cost) and answer.ledger.cost > 0
            kept = questions.find(running.key)
            assert isinstance(kept, Kept) and kept.answer is not None and kept.answer.evidence == answer.evidence
            refused = questions.start(0, Ask(question="Which?", options=("a", "b"), agent="all"))
            with pytest.raises(UsageError, match="got options beside a question to all films"):
                asyncio.run(refused.finished())
        finally:
            questions.close()


def test_an_agent_says_that_it_looks_at_some_of_many_videos() -> None:
    assert videos_left_out(find_variant("eea"), {}, 16) is None and videos_left_out(ALL, {}, 10_000) is None
    assert str(videos_left_out(find_variant("kino"), {}, 17)).startswith(
        "of 17 videos the 16 that fit the question best"
    )
    assert "the 5 that fit" in str(videos_left_out(find_variant("eea"), {"videos": "5"}, 200))
