"""Grounding by search alone: on drawn films, whose truth is exact."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.agent.environment import Environment
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.ground import as_json, ground
from kinodex.jobs.open import open_environment
from tests.support.libraries.text_library import text_library


@pytest.fixture(scope="module")
def opened(library: Path) -> Library:
    return Library.open(str(library))


@pytest.fixture(scope="module")
def environment(opened: Library) -> Environment:
    return open_environment(opened)


def shots(films: Path, film: str) -> list[tuple[float, float, str]]:
    script = json.loads((films / f"{film}.script.json").read_text())
    return [(each["start_s"], each["end_s"], each["description"]) for each in script["shots"]]


def test_a_shot_is_found_with_its_range_and_a_word_that_is_no_picture_is_not(
    opened: Library, environment: Environment, films: Path
) -> None:
    start_s, end_s, description = max(shots(films, "film-02"), key=lambda shot: shot[1] - shot[0])
    found = ground(opened, environment, description, most=3)
    assert found.present
    assert found.evidence is not None and found.least is not None
    assert found.evidence >= found.least
    best = found.ranges[0]
    assert best.video.title == "film-02"
    shared_s = min(best.end_s, end_s) - max(best.start_s, start_s)
    assert shared_s / (max(best.end_s, end_s) - min(best.start_s, start_s)) > 0.5
    assert len(found.candidates) == 3
    scores = [each.score or 0.0 for each in found.candidates]
    assert scores == sorted(scores, reverse=True)
    absent = ground(opened, environment, description, least=found.evidence + 0.01)
    assert (absent.present, absent.ranges) == (False, ())
    assert absent.candidates


def test_one_video_is_searched_where_one_is_named(opened: Library, environment: Environment) -> None:
    row = opened.video("film-03")
    found = ground(opened, environment, "a boat", [row], evidence_from="pictures")
    assert {each.video.video_id for each in found.candidates} == {row.video_id}
    assert all(row.start_s <= each.start_s < each.end_s <= row.end_s for each in found.candidates)


def test_words_alone_find_what_is_said(opened: Library, environment: Environment) -> None:
    line = opened.transcript(opened.video("film-01").video_id)[0]
    found = ground(opened, environment, line.text, evidence_from="words", least=2.0)
    best = found.ranges[0]
    assert best.source == "words"
    assert best.start_s < line.end_s and best.end_s > line.start_s


def test_json_has_both_clocks_and_keeps_weaker_ranges_apart(opened: Library, environment: Environment) -> None:
    found = ground(opened, environment, "a boat", least=1e9)
    made = json.loads(json.dumps(as_json(found)))
    assert (made["present"], made["ranges"], len(made["weaker"])) == (False, [], len(found.candidates))
    assert {"video_id", "title", "start_s", "end_s", "presentation_start_s", "presentation_end_s", "score"} <= set(
        made["weaker"][0]
    )


def test_a_text_is_needed_and_a_number_of_ranges(opened: Library, environment: Environment) -> None:
    with pytest.raises(UsageError, match="empty text"):
        ground(opened, environment, "  ")
    with pytest.raises(UsageError, match="most=0"):
        ground(opened, environment, "a boat", most=0)
    for least in (-1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="0 or more, in deviations"):
            ground(opened, environment, "a boat", least=least)


def test_nothing_is_not_there_however_little_it_takes(opened: Library, environment: Environment) -> None:
    found = ground(opened, environment, "zzzz qqqq", evidence_from="words", least=0.0)
    assert (found.present, found.ranges) == (False, ())
    assert found.reason


def test_a_video_of_text_alone_is_searched_and_one_without_text_to_read_is_passed_over(tmp_path: Path) -> None:
    lines = [
        (10.0 * at, 10.0 * at + 10.0, text) for at, text in enumerate(["a dog in a room", "a red boat at sea", "snow"])
    ]
    made = text_library(tmp_path / "library", {"one": lines}, {"two": [(0.0, 5.0, "hello")]}, space="builtin")
    embed_text = made.load_space(None, "text").embed_text
    environment = Environment.of(made, made.videos(), embed_text, subtitles=False)
    found = ground(made, environment, "a red boat at sea", evidence_from="pictures", least=0.0)
    assert [(each.video.title, each.start_s) for each in found.ranges[:1]] == [("one", 10.0)]
    nothing = ground(made, environment, "a red boat at sea", [made.video("two")])
    assert (nothing.present, nothing.candidates) == (False, ())
