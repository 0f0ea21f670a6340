"""Ask: the right letter with its evidence, budgets, traces, models at an endpoint, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kinodex as package
from tests.acceptance import BICYCLES, FACTS, TENTS, Fact
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.chat_server import ChatServer, failing


def about(fact: Fact) -> tuple[str, ...]:
    return (fact.question, *(part for option in fact.options for part in ("--option", option)))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.film)
def test_the_right_letter_with_the_seconds_that_show_it(kinodex: Kinodex, shown: Path, fact: Fact) -> None:
    answer = json_of(kinodex, "ask", shown, *about(fact), "--video", fact.film)
    assert (answer["status"], answer["letter"]) == ("answered", fact.letter)
    assert any(fact.covers(each["start_s"]) for each in answer["evidence"])
    same = package.open(shown).ask(fact.question, fact.options, videos=fact.film)
    assert (same.status, same.letter, same.text) == ("answered", fact.letter, answer["text"])


def test_the_film_is_found_among_all(kinodex: Kinodex, shown: Path) -> None:
    films = {row.video_id: row.title for row in package.open(shown).videos()}
    answer = json_of(kinodex, "ask", shown, *about(BICYCLES))
    assert answer["letter"] == BICYCLES.letter
    assert {films[each["video_id"]] for each in answer["evidence"]} == {BICYCLES.film}


def test_a_budget_of_frames_is_kept(kinodex: Kinodex, shown: Path) -> None:
    answer = json_of(kinodex, "ask", shown, *about(TENTS), "--max-frames", 5, "--agent", "uniform")
    assert 0 < answer["ledger"]["frames"] <= 5
    same = package.open(shown).ask(TENTS.question, TENTS.options, agent="uniform", budget=package.Budget(frames=5))
    assert same.ledger.frames == answer["ledger"]["frames"]


def test_many_questions_are_answered_in_order(shown: Path) -> None:
    facts = TENTS, BICYCLES
    answers = package.open(shown).ask_many([package.Question(fact.question, fact.options) for fact in facts])
    assert [answer.letter for answer in answers] == [fact.letter for fact in facts]


def test_a_trace_is_replayed_without_a_model_and_followed_up(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    first = json_of(kinodex, "ask", shown, *about(TENTS), "--video", TENTS.film, "--trace", trace)
    assert [json.loads(line) for line in trace.read_text().splitlines()][-1]["answer"]["text"] == "red"
    again = json_of(kinodex, "ask", shown, *about(TENTS), "--video", TENTS.film, "--model", f"replay:{trace}")
    assert (again["letter"], again["evidence"]) == (first["letter"], first["evidence"])
    followed = json_of(kinodex, "ask", shown, *about(TENTS), "--follow-up", trace)
    assert followed["letter"] == TENTS.letter


def test_a_model_at_an_endpoint_is_shown_frames_and_its_letter_is_taken(kinodex: Kinodex, shown: Path) -> None:
    with ChatServer(lambda body: {"action": "answer", "option": "D"}) as server:
        model = ("--model", "tester", "--base-url", server.base_url, "--no-cache", "--agent", "uniform")
        answer = json_of(kinodex, "ask", shown, *about(TENTS), *model, "--max-frames", 4)
    assert (answer["letter"], answer["text"], server.problems) == ("D", "white", [])
    assert len(server.seen[0].frames) == 4 and TENTS.question in json.dumps(server.seen[0].body)


def test_a_dry_run_sends_nothing(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with ChatServer(lambda body: {"action": "answer", "option": "D"}) as server:
        model = ("--model", "tester", "--base-url", server.base_url)
        ran = kinodex("ask", shown, *about(TENTS), *model, "--dry-run", "--trace", trace)
    assert (ran.code, server.seen, trace.exists()) == (0, [], False)


def test_models_that_cannot_be_used(kinodex: Kinodex, shown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ask = ("ask", shown, "What is it?", "--no-cache")
    bad(kinodex, *ask, "--model", "gpt-4o", code=5, says="OPENAI_API_KEY")
    bad(kinodex, *ask, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", code=5, says="nobody answers at")
    with ChatServer(lambda body: "Lorem ipsum.") as server:
        ran = kinodex(*ask, "--model", "tester", "--base-url", server.base_url)
        assert ran.code == 6 and ran.error_line.startswith("error: no reply of tester could be used")
    with ChatServer(lambda body: failing(401, "wrong key")) as server:
        bad(kinodex, *ask, "--model", "tester", "--base-url", server.base_url, code=5, says="wrong key")


def test_what_ask_refuses(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    for arguments, says in (
        ((" ",), "question is empty"),
        (("What?", "--option", "one"), "got 1 option"),
        (("What?", "--agent", "kinoo"), "did you mean 'kino'"),
        (("What?", "--set", "frame=3"), "there is no parameter 'frame'"),
        (("What?", "--max-rounds", 0), "0 rounds"),
        (("What?", "--max-cost", 1), "prices"),
        (("What?", "--video", "nobody"), "such as film-01"),
        (("What?", "--follow-up", tmp_path / "none.jsonl"), "none.jsonl"),
    ):
        bad(kinodex, "ask", shown, *arguments, code=2, says=says)


def test_python_raises_the_same(shown: Path) -> None:
    library = package.open(shown)
    with pytest.raises(package.KinodexError, match="question is empty"):
        library.ask(" ")
    with pytest.raises(package.AgentError, match="did you mean 'kino'"):
        library.ask("What?", agent="kinoo")
    with pytest.raises(package.ModelError, match="nobody answers at"):
        library.ask("What?", model="m", base_url="http://127.0.0.1:9/v1", cache=False)
    with pytest.raises(package.UsageError, match="got one text"):
        library.ask_many("What?")
