"""A model looks at moments: several in one request, kept in the library, counted where a reply is of no use."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import ModelUnreachable, TakesNoPictures
from kinodex.index.library import Library
from kinodex.index.rows import Hit
from kinodex.jobs.errors import UsageError
from kinodex.jobs.grounding.result import as_json, with_verdicts
from kinodex.jobs.grounding.search import ground
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.open import open_environment
from kinodex.jobs.verdicts import RANKED, basis_of, claim
from kinodex.jobs.verification.kept_verdicts import looking_role
from kinodex.jobs.verification.look import forecast_verdicts, verified
from kinodex.jobs.verification.requests import MOMENTS_A_REQUEST
from kinodex.requests import Find
from kinodex.search.finder import Finder
from tests.support.libraries.text_library import text_library
from tests.support.servers.chat_server import ChatServer, in_turn
from tests.support.servers.looking_server import entry, looking_server

TEXT = "a boat"


@pytest.fixture
def opened(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A library of its own for each test: verdicts are kept in it."""
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    return Library.open(str(shutil.copytree(library, tmp_path / "library")))


def hits_of(library: Library, k: int = 12) -> list[Hit]:
    return Finder(library).find(Find(query=TEXT, in_="frames", k=k))


def choice_of(server: ChatServer, **settings: Any) -> ModelChoice:
    return replace(ModelChoice("tester", server.base_url), **settings)


def test_several_moments_are_one_request_and_each_gets_its_verdict_and_reason(opened: Library) -> None:
    hits = hits_of(opened)
    with looking_server(lambda number, line: number in (2, 9)) as server:
        judged, looked = verified(opened, TEXT, hits, 9, choice_of(server))
    assert server.problems == [] and [len(seen.frames) > 0 for seen in server.seen] == [True, True]
    assert (looked.calls, looked.invalid) == (2, 0), f"{MOMENTS_A_REQUEST} moments a request"
    assert {seen.schema for seen in server.seen} == {"MomentVerdicts"}
    more, fewer = sorted((seen.text for seen in server.seen), key=lambda text: "moment 1, " not in text)
    assert TEXT in more and "moment 8, " in more and "moment 9, " in fewer
    assert [each.present for each in judged] == [False, True, *[False] * 6, True, None, None, None]
    assert (judged[1].basis, judged[1].reason) == ("verified", "a boat is in the picture (2)")
    assert judged[9:] == hits[9:], "those that nobody looked at are as the search left them"
    assert claim(judged) == "present: a model saw it in 2 of the 9 moments it looked at"
    assert claim(judged[2:8]) == "absent from the 6 moments that a model looked at"


def test_a_verdict_is_paid_once_by_model_text_and_moment_and_the_library_does_not_change(opened: Library) -> None:
    hits = hits_of(opened, 4)
    versions = {name: opened.tables.version(name) for name in opened.tables.names()}
    with looking_server(lambda number, line: number == 1) as server:
        server.models = ("tester", "other")
        first, _ = verified(opened, TEXT, hits[:2], 2, choice_of(server))
        assert forecast_verdicts(opened, f" {TEXT} ", hits, 4, choice_of(server)).questions == 2
        again, looked = verified(Library.open(opened.uri), f" {TEXT}\n", hits, 3, choice_of(server))
        assert (again[:2], looked.calls, len(server.seen)) == (first, 1, 2)
        assert "moment 3, " in server.seen[1].text and "moment 1, " not in server.seen[1].text
        verified(opened, "a bird", hits, 1, choice_of(server))
        verified(opened, TEXT, hits, 1, choice_of(server, model="other"))
        verified(opened, TEXT, hits, 1, choice_of(server, cache=False))
        assert len(server.seen) == 5, "another text, another model, and one who keeps nothing ask again"
    looked_at = Library.open(opened.uri)
    assert {name: looked_at.tables.version(name) for name in looked_at.tables.names()} == versions


def test_replies_of_no_use_are_counted_and_say_so_and_what_is_left_out_is_asked_again(opened: Library) -> None:
    hits = hits_of(opened, 3)
    with ChatServer(lambda body: "I cannot say.") as server:
        judged, looked = verified(opened, TEXT, hits, 2, choice_of(server))
    assert (looked.calls, looked.invalid) == (2, 2)
    assert [each.basis for each in judged] == [each.basis for each in hits], "no verdict, so the basis is the search's"
    assert judged[0].present is None and judged[0].reason.startswith(
        "no verdict: the model's reply could not be used ("
    )
    assert claim(judged).startswith("no verdict on 2 moments, as the model's reply could not be used; ")
    with ChatServer(in_turn({"moments": [entry(2, True)]}, {"moments": [entry(1, False)]})) as server:
        judged, looked = verified(opened, TEXT, hits, 3, choice_of(server))
    assert [each.present for each in judged] == [False, True, None] and looked.calls == 2
    assert "moment 2, " not in server.seen[1].text
    assert claim(judged) == (
        "present: a model saw it in 1 of the 2 moments it looked at; "
        "no verdict on 1 moment, as the model's reply could not be used"
    )
    wrong = {"moments": [entry(7, True)]}, {"moments": [entry(3, True) | {"reasoning": " "}]}
    with ChatServer(in_turn(*wrong)) as server:
        judged, looked = verified(opened, TEXT, hits, 3, choice_of(server))
    assert (looked.invalid, judged[2].present) == (2, None)
    assert "moment 7" in server.seen[1].text, "the complaint stands in the second request"


def test_what_a_dry_run_bills_is_what_is_sent(opened: Library) -> None:
    hits = hits_of(opened)
    with looking_server(lambda number, line: False) as server:
        choice = choice_of(server, input_price=2.5, output_price=10.0)
        forecast = forecast_verdicts(opened, TEXT, hits, 10, choice)
        assert server.seen == []
        _, looked = verified(opened, TEXT, hits, 10, choice)
    assert (forecast.calls, forecast.questions, forecast.tries) == (looked.calls, 10, 1)
    assert forecast.frames == sum(len(seen.frames) for seen in server.seen)
    assert forecast.cost > 0 and forecast.input_tokens > 100 * forecast.frames / 10


def test_a_model_that_cannot_look_is_refused_and_one_that_is_away_is_an_error(opened: Library) -> None:
    hits = hits_of(opened, 2)
    for choice in (ModelChoice(), ModelChoice("local:folder"), ModelChoice("replay:trace")):
        with pytest.raises(UsageError, match=f"{choice.model} to look at moments.*--model"):
            looking_role(choice)
        with pytest.raises(UsageError, match="--model"):
            verified(opened, TEXT, hits, 1, choice)
    with ChatServer(lambda body: "{}") as server:
        server.model_facts = {"architecture": {"input_modalities": ["text"]}}
        with pytest.raises(TakesNoPictures, match=r"look at moments; name a model with vision.*--verify"):
            verified(opened, TEXT, hits, 1, choice_of(server))
        for text, count in ((" ", 1), (TEXT, 0), (TEXT, 51)):
            with pytest.raises(UsageError):
                verified(opened, text, hits, count, choice_of(server))
    with pytest.raises(ModelUnreachable):
        verified(opened, TEXT, hits, 1, choice_of(server))


def test_ranges_of_a_grounding_are_present_absent_or_left_open(opened: Library) -> None:
    found = ground(opened, open_environment(opened), TEXT, most=3, in_="frames")
    with looking_server(lambda number, line: number == 2) as server:
        judged, _ = verified(opened, TEXT, found.candidates, 2, choice_of(server))
        present = with_verdicts(found, judged)
        assert (present.present, present.basis, len(present.ranges)) == (True, "verified", 2)
        assert as_json(present)["weaker"][0]["reason"] == "only the sea is seen (1)"
        first = with_verdicts(found, verified(opened, TEXT, found.candidates, 1, choice_of(server))[0])
        assert (first.present, first.basis) == (None, "verified"), "two ranges were not looked at"
        assert first.claim == "absent from the 1 moment that a model looked at"
    with looking_server(lambda number, line: False) as server:
        judged, _ = verified(opened, TEXT, found.candidates, 3, choice_of(server, cache=False))
    absent = with_verdicts(found, judged)
    made = json.loads(json.dumps(as_json(absent)))
    assert (absent.present, made["ranges"], len(made["weaker"])) == (False, [], 3)
    assert made["claim"] == "absent from the 3 moments that a model looked at"
    assert {"presentation_start_s", "presentation_end_s", "reason", "probability"} <= set(made["weaker"][0])


def test_lines_stand_beside_frames_and_alone_where_there_are_none(tmp_path: Path, opened: Library) -> None:
    words = text_library(
        tmp_path / "words", {"walk": [(0.0, 4.0, "a red kite over the sea")]}, {"walk": [(1.0, 2.0, "look up")]}
    )
    hits = Finder(words).find(Find(query="kite", in_="words", k=1))
    with looking_server(lambda number, line: "no frame" in line) as server:
        judged, _ = verified(words, "a kite", hits, 1, choice_of(server))
        assert judged[0].present and server.seen[0].frames == ()
        assert 'speech: "look up"' in server.seen[0].text and 'caption: "a red kite' in server.seen[0].text
        line = opened.speech(opened.video("film-01").video_id)[0]
        spoken = Finder(opened).find(Find(query=line.text, in_="speech", k=1))
        verified(opened, TEXT, spoken, 1, choice_of(server))
        assert f'speech: "{line.text}"' in server.seen[1].text and server.seen[1].frames
    assert basis_of([]) == "ranking" and claim(spoken) == RANKED
