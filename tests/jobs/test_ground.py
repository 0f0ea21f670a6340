"""Moments of a query by search and by an agent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kinodex.agent.answer import Answer
from kinodex.agent.evidence import Evidence as Cited
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import NO_MATCH
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.grounding.agent import ground_with, grounding_of, grounding_question
from kinodex.jobs.grounding.evidence import Evidence, Usual, shown_times, smoothed, usual_cosines, video_evidence
from kinodex.jobs.grounding.ranges import EvidenceRange, evidence_ranges
from kinodex.jobs.grounding.search import ground
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.open import open_environment
from kinodex.jobs.verdicts import LIKELY, RANKED
from tests.support.libraries.text_library import text_library
from tests.world.drawn_space import DRAWN


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
    assert found.present is None, "a search says of nothing that it is there"
    best = found.ranges[0]
    assert (found.basis, best.basis) == ("probability", "probability")
    assert best.probability and best.probability >= LIKELY and found.claim.startswith("likely: ")
    assert best.video.title == "film-02"
    shared_s = min(best.end_s, end_s) - max(best.start_s, start_s)
    assert shared_s / (max(best.end_s, end_s) - min(best.start_s, start_s)) > 0.5
    assert len(found.candidates) == 3
    scores = [each.score or 0.0 for each in found.candidates]
    assert scores == sorted(scores, reverse=True)
    absent = ground(opened, environment, "a purple castle and two yellow clocks in the desert", in_="frames")
    assert absent.present is None and absent.claim.startswith("nothing here matches well (")
    unknown = ground(opened, environment, "a zzzzqqq", in_="frames")
    assert (unknown.basis, unknown.claim) == ("ranking", RANKED), "training never met this word"


def test_one_video_is_searched_where_one_is_named(opened: Library, environment: Environment) -> None:
    row = opened.video("film-03")
    found = ground(opened, environment, "a boat", [row], in_="frames")
    assert {each.video.video_id for each in found.candidates} == {row.video_id}
    assert all(row.start_s <= each.start_s < each.end_s <= row.end_s for each in found.candidates)


def test_words_alone_find_what_is_said(opened: Library, environment: Environment) -> None:
    line = opened.speech(opened.video("film-01").video_id)[0]
    found = ground(opened, environment, line.text, in_="words")
    assert (found.basis, found.claim) == ("ranking", RANKED)
    best = found.ranges[0]
    assert best.source == "words"
    assert best.start_s < line.end_s and best.end_s > line.start_s


def test_a_text_is_needed_and_a_number_of_ranges(opened: Library, environment: Environment) -> None:
    with pytest.raises(UsageError, match="empty text"):
        ground(opened, environment, "  ")
    with pytest.raises(UsageError, match="most=0"):
        ground(opened, environment, "a boat", most=0)


def test_a_video_of_text_alone_is_searched_and_one_without_text_to_read_is_passed_over(tmp_path: Path) -> None:
    lines = [
        (10.0 * at, 10.0 * at + 10.0, text) for at, text in enumerate(["a dog in a room", "a red boat at sea", "snow"])
    ]
    made = text_library(tmp_path / "library", {"one": lines}, {"two": [(0.0, 5.0, "hello")]}, space=DRAWN)
    embed_text = made.load_space(None, "text").embed_text
    environment = Environment.of(made, made.videos(), embed_text, hide=["speech"])
    found = ground(made, environment, "a red boat at sea", in_="frames")
    assert [(each.video.title, each.start_s) for each in found.ranges[:1]] == [("one", 10.0)]
    nothing = ground(made, environment, "a red boat at sea", [made.video("two")])
    assert (nothing.present, nothing.candidates) == (None, ())


def evidence(*deviations: float) -> Evidence:
    start_s, end_s = (np.arange(len(deviations), dtype=np.float64) + shift for shift in (0, 1))
    by_words = np.zeros(len(deviations), bool)
    return Evidence("v", start_s, end_s, np.array(deviations, np.float64), by_words)


def times(found: list[EvidenceRange]) -> list[tuple[float, float]]:
    return [(each.start_s, each.end_s) for each in found]


def test_a_range_goes_on_while_the_evidence_keeps_up_with_its_peak() -> None:
    found = evidence_ranges(evidence(0, 1, 8, 10, 9, 1, 0, 0, 0, 6, 5, 0), [], 5)
    assert times(found) == [(2.0, 5.0), (9.0, 11.0), (1.0, 2.0), (5.0, 6.0)]
    assert [each.deviation for each in found] == [10.0, 6.0, 1.0, 1.0]


def test_an_end_moves_to_a_shot_border_that_is_near_and_never_past_the_peak() -> None:
    peaked = evidence(0, 0, 9, 10, 9, 0, 0, 0)
    assert times(evidence_ranges(peaked, [0.0, 1.2, 6.4], 1)) == [(1.2, 6.4)]
    assert times(evidence_ranges(peaked, [0.0, 8.0], 1)) == [(2.0, 5.0)]
    assert times(evidence_ranges(peaked, [3.0, 4.0], 1)) == [(3.0, 4.0)]
    assert times(evidence_ranges(peaked, [3.5], 1)) == [(2.0, 5.0)]


def test_a_window_weighs_each_frame_by_its_time_in_it() -> None:
    start_s, end_s = np.array([0.0, 1.0, 5.0]), np.array([1.0, 5.0, 6.0])
    values = np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]])
    # around 0.5 s: [0, 1.5) = 1 s of 1 and 0.5 s of 2; around 3 s all of 2; around 5.5 s: [4.5, 6) = 0.5 of 2, 1 of 6
    expected = [[(1 + 0.5 * 2) / 1.5, 0.0], [2.0, 0.0], [(0.5 * 2 + 6) / 1.5, 3 / 1.5]]
    assert smoothed(values, start_s, end_s, 2.0) == pytest.approx(np.array(expected))
    assert smoothed(values[:, 0], start_s, end_s, 2.0) == pytest.approx(np.array(expected)[:, 0])


def test_words_count_for_the_whole_time_of_their_line_and_may_be_left_out(environment: Environment) -> None:
    (spoken,) = (video for video in environment.videos if environment.lines(video.video_id, ["speech"]))
    line = environment.lines(spoken.video_id, ["speech"])[0]
    usual, videos = Usual(0.0, 1.0), [video.video_id for video in environment.videos]
    words = video_evidence(environment, line.text, spoken.video_id, usual, videos, "words")
    said = (words.start_s < line.end_s) & (words.end_s > line.start_s)
    assert (words.deviation[said] > 2).all()
    assert words.by_words[said].all()
    pictures = video_evidence(environment, line.text, spoken.video_id, usual, videos, "frames")
    assert not pictures.by_words.any()
    assert np.isfinite(pictures.deviation).all()
    nothing = video_evidence(environment, "zzz qqq", spoken.video_id, usual, videos, "words")
    assert (nothing.deviation == NO_MATCH).all()


def test_only_cited_evidence_of_an_answer_is_a_range(opened: Library) -> None:
    video_id = opened.video("film-01").video_id
    evidence = tuple(Cited(video_id, start_s, start_s + 1) for start_s in (2.0, 5.0, 8.0))
    answer = Answer("answered", "at 2 s", None, evidence, 1, Ledger())
    assert grounding_question(" the goal is scored. ").text == "When do we see the following: the goal is scored?"
    found = grounding_of(opened, "a boat", answer, "eea", 2)
    assert found.present
    assert [(each.start_s, each.end_s, each.score) for each in found.ranges] == [(2.0, 3.0, None), (5.0, 6.0, None)]
    assert (found.by, found.evidence, found.reason) == ("eea", None, "at 2 s")
    for other in (
        replace(answer, status="insufficient_evidence"),
        replace(answer, evidence_cited=False),
        replace(answer, evidence=()),
        replace(answer, status="invalid"),
    ):
        assert grounding_of(opened, "a boat", other, "eea", 2).ranges == ()


def test_the_built_in_model_answers(opened: Library) -> None:
    agent = "eea"
    environment = open_environment(opened, ["film-01"])
    choice = ModelChoice(cache=False)
    found = asyncio.run(ground_with(opened, environment, "a blue boat", agent, choice))
    assert found.by == agent
    assert {each.video.title for each in found.candidates} <= {"film-01"}


def test_words_that_are_nowhere_have_no_range(opened: Library, environment: Environment) -> None:
    found = ground(opened, environment, "zzzz qqqq", in_="words")
    assert (found.present, found.ranges) == (None, ())
    assert found.claim == found.reason != ""


def test_only_so_many_ranges_and_none_without_evidence() -> None:
    assert times(evidence_ranges(evidence(0, 9, 0, 0, 0, 8, 0), [], 1)) == [(1.0, 2.0)]
    assert evidence_ranges(evidence(0, -1, -np.inf), [], 5) == []


def test_a_short_weak_stretch_is_bridged_and_a_long_one_ends_the_range() -> None:
    assert times(evidence_ranges(evidence(10, 2, 2, 9, 0), [], 1)) == [(0.0, 4.0)]
    assert times(evidence_ranges(evidence(10, 2, 2, 2, 9, 0), [], 1)) == [(0.0, 1.0)]


def test_ranges_never_overlap_even_where_borders_draw_them_together() -> None:
    found = evidence_ranges(evidence(10, 10, 0, 0, 0, 9, 9), [0.0, 3.0, 7.0], 5)
    assert times(found) == [(0.0, 3.0), (5.0, 7.0)]
    for one in found:
        assert all(one is two or one.end_s <= two.start_s or two.end_s <= one.start_s for two in found)


def test_a_window_gives_what_adding_up_small_steps_gives() -> None:
    chance = np.random.default_rng(4)
    edges = np.cumsum(chance.uniform(0.1, 3.0, 40))
    start_s, end_s, values = edges[:-1], edges[1:], chance.normal(size=39)
    fine_s = np.arange(edges[0], edges[-1], 0.001) + 0.0005
    fine = values[np.searchsorted(start_s, fine_s, side="right") - 1]
    slow = [fine[np.abs(fine_s - middle) <= 1.0].mean() for middle in (start_s + end_s) / 2]
    assert smoothed(values, start_s, end_s, 2.0) == pytest.approx(np.array(slow), abs=0.01)


def test_frames_are_shown_until_the_next_and_the_last_until_the_end(environment: Environment) -> None:
    video = environment.videos[0]
    start_s, end_s = shown_times(environment, video.video_id)
    assert (start_s[1:] == end_s[:-1]).all()
    assert end_s[-1] == pytest.approx(video.end_s)


def test_the_spread_is_that_of_everyday_texts_and_the_median_the_text_s_own(environment: Environment) -> None:
    videos = [video.video_id for video in environment.videos]
    first, second = (usual_cosines(environment, text, videos) for text in ("a blue boat", "the moon"))
    assert first.spread == pytest.approx(second.spread)
    assert first.median != second.median
    everything = np.concatenate([environment.cosines("the moon", each) for each in videos])
    assert second.median == pytest.approx(float(np.median(everything)), abs=1e-6)
