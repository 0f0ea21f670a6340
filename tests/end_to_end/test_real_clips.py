"""Ten questions about real videos, through the built-in model and over the wire.

The built-in space knows only drawn films, so its answers about real ones are worth nothing and none is checked: what is
checked is that every run ends in order, shows real frames, and keeps its books.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Kinodex
from tests.support.servers.chat_server import ChatServer

QUESTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("What colour is the jersey of the first person at the table?", "one-by-one", ("white", "black", "green")),
    ("How many bottles stand on the table at the end?", "bottle-detection", ("one", "two", "three")),
    ("What crosses the road?", "car-detection", ("cars", "horses", "boats", "trains")),
    ("What does the girl meet in the snow?", "sintel_trailer", ("an old man", "a car", "a robot")),
    ("What animal stands in the woods?", "pyscenedetect__testvideo", ("a deer", "a cat", "an elephant")),
    ("What is the dog eating?", "dog_eating", ()),
    ("What happens after the fade to black?", "pyscenedetect__testvideo", ("leaves", "a train", "a castle")),
    ("Where does the ride go along?", "gbike_ride", ("a street", "the sea", "a desert")),
    ("Which instrument is played?", "playing_guitar", ("guitar", "piano", "drum")),
    ("When does the telescope appear?", "nasa", ()),
)


@pytest.fixture(scope="module")
def library(media: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources

    wanted = {name for _, name, _ in QUESTIONS}
    clips = [path for path in (media / "clips").iterdir() if any(name in path.name for name in wanted)]
    place = tmp_path_factory.mktemp("clips") / "library"
    report = run_ingest(
        IngestConfig(space="builtin", anyway=True, fps=0.5), list_sources(list(map(str, clips))), str(place)
    )
    assert report.count("failed") == 0
    return place


def arguments(library: Path, question: str, video: str, options: tuple[str, ...]) -> list[str]:
    from kinodex.index.library import Library

    title = next(row.title for row in Library.open(str(library)).videos() if video in row.title)
    return ["ask", str(library), question, "--video", title, *(part for o in options for part in ("--option", o))]


def check(answer: dict[str, Any], options: tuple[str, ...]) -> None:
    assert answer["status"] in ("answered", "insufficient_evidence", "budget_exhausted")
    assert 0 < answer["ledger"]["frames"] <= answer["ledger"]["index_frames"]
    assert answer["ledger"]["frame_shows"] >= answer["ledger"]["frames"]
    if answer["option"] is not None:
        assert answer["text"] == options[answer["option"]]
        assert answer["evidence"]


@pytest.mark.parametrize(("question", "video", "options"), QUESTIONS)
def test_builtin(kinodex: Kinodex, library: Path, question: str, video: str, options: tuple[str, ...]) -> None:
    ran = kinodex(*arguments(library, question, video, options), "--json")
    assert ran.code == 0, ran.err
    check(json.loads(ran.out), options)


def obliging(body: dict[str, Any]) -> dict[str, Any]:
    """A server that scores later segments higher, explores once, and then takes the first option."""
    schema = body["response_format"]["json_schema"]["name"]
    text = json.dumps(body["messages"])
    if schema == "Queries":
        return {"queries": ["a close look at the scene"]}
    if schema in ("SegmentScores", "ScoresAndQueries"):
        listed = text.split("The segments to be scored:")[-1].split("To compare")[0]
        numbers = sorted({int(n) for n in re.findall(r"Segment (\d+): ", listed)})
        scores = [{"segment": n, "reasoning": "it borders the frames", "score": 10 + n} for n in numbers]
        return {"segments": scores, "queries": ["a close look at the scene"]}
    listed = text.split("The segments to choose from")[-1] if "choose what to do next" in text else ""
    open_ones = [int(n) for n in re.findall(r"- Segment (\d+): (?![^\\]*nothing)", listed)]
    nothing: dict[str, Any] = {"option": None, "answer": None, "evidence": []}
    if open_ones and max(open_ones) < 6:
        return {"reasoning": "not yet", "action": "explore", "segment": max(open_ones), **nothing}
    return {"reasoning": "there", "action": "answer", "segment": None, "option": "A", "answer": "it", "evidence": [1]}


@pytest.mark.slow
def test_over_the_wire(kinodex: Kinodex, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path))
    with ChatServer(obliging) as server:
        wire = ("--model", "tester", "--base-url", server.base_url, "--json")
        for question, video, options in QUESTIONS:
            ran = kinodex(*arguments(library, question, video, options), *wire)
            assert ran.code == 0, ran.err
            answer = json.loads(ran.out)
            check(answer, options)
            assert answer["status"] == "answered", answer
            assert answer["ledger"]["invalid_replies"] == 0, answer
            shown_whole = answer["ledger"]["frames"] == answer["ledger"]["index_frames"]
            assert answer["rounds"] >= 2 or shown_whole, answer
            assert answer["ledger"]["input_tokens"] > 0
        assert server.problems == []
        calls = len(server.seen)
        again = json.loads(kinodex(*arguments(library, *QUESTIONS[0]), *wire).out)
        assert len(server.seen) == calls, "the second time every reply comes from the cache"
        assert again["ledger"]["cached_calls"] == again["ledger"]["calls"]
