"""Segments in prompts: the best in full, the others short, and none in which nothing is left to see."""

from __future__ import annotations

import pytest

from kinodex.agent.prompts import (
    COMPARED,
    IN_FULL,
    REASON_CHARACTERS,
    candidate_lines,
    history_lines,
    newness,
    parent_score,
    segment_line,
)
from kinodex.agent.protocol import LISTED, ScoredSegment, Segment, ShownFrame, Video
from tests.support.scripts import SCRIPTS, Script

FILM = Video("a" * 32, "film", 0.0, 600.0)
FRAMES = (
    ShownFrame(FILM.video_id, 120, 120.0, 8, 8, b"", label=12),
    ShownFrame(FILM.video_id, 300, 300.0, 8, 8, b"", label=5),
)


def scored(number: int, score: float | None, **more) -> ScoredSegment:
    return ScoredSegment(Segment(number, FILM.video_id, number * 10.0, number * 10.0 + 10), score, **more)


def test_border_frames_are_named_by_their_labels() -> None:
    line = segment_line(Segment(3, FILM.video_id, 120.0, 300.0), FRAMES, (FILM,))
    assert line == "Segment 3: 120 s to 300 s, frame 12 to frame 5"
    last = segment_line(Segment(4, FILM.video_id, 300.0, 600.0), FRAMES, (FILM,))
    assert last.endswith(", frame 5 to the end")
    evicted = segment_line(Segment(5, FILM.video_id, 120.0, 222.0), FRAMES, (FILM,))
    assert evicted.endswith(", frame 12 to an earlier frame")


def test_the_new_frames_are_named_where_known_ones_stand_beside_them() -> None:
    new = tuple(ShownFrame(FILM.video_id, at, float(at), 8, 8, b"", label=20 + at) for at in (1, 2, 3))
    assert newness((*FRAMES, *new), new).startswith(" Of the frames only frames 21 to 23 are new: rate by what is new")
    assert "only frame 21 is new" in newness((*FRAMES, new[0]), new[:1])
    assert newness(new, new) == newness(FRAMES, ()) == ""


def test_without_a_shown_border_the_clock_times_are_written() -> None:
    line = segment_line(Segment(3, FILM.video_id, 130.0, 222.5), FRAMES, (FILM,))
    assert line == "Segment 3: 130 s to 222.5 s (2:10 to 3:42)"


def test_the_best_candidates_are_in_full_the_others_short_and_few() -> None:
    many = [scored(number, number / 100, explanation="reason " * 60) for number in range(40)]
    lines = candidate_lines([*many, scored(99, 0.99, explorable=False)], (), (FILM,), "fused")
    assert len(lines) == LISTED
    assert lines[-1].startswith("Segment 39: 390 s to 400 s (6:30 to 6:40), score 0.39: reason reason")
    assert lines[0] == "Segment 20: 200 s to 210 s, score 0.20"
    assert sum("reason" in line for line in lines) == IN_FULL
    assert max(map(len, lines)) < REASON_CHARACTERS + 60


def test_without_scores_the_latest_candidates_are_listed() -> None:
    many = [scored(number, None, explanation="matches") for number in range(40)]
    lines = candidate_lines(many, (), (FILM,), "none")
    assert [line.partition(":")[0] for line in lines] == [f"Segment {number}" for number in range(40 - LISTED, 40)]
    assert [line for line in lines if "matches" in line] == lines[-IN_FULL:]


def test_what_was_never_rated_says_so_beside_the_score_of_its_matches() -> None:
    (line,) = candidate_lines([scored(1, 0.37, rated=False)], (), (FILM,), "fused")
    assert line == "Segment 1: 10 s to 20 s, score 0.37, not rated"
    (line,) = candidate_lines([scored(1, None)], (), (FILM,), "reward")
    assert line == "Segment 1: 10 s to 20 s, not rated"


def test_the_history_is_the_parent_and_the_best_of_the_others() -> None:
    history = [scored(number, 10.0 * number, explanation="a kite") for number in range(8)]
    assert parent_score(history, 4) == " (score 40: a kite)"
    assert parent_score(history, None) == parent_score([scored(4, None)], 4) == ""
    lines = history_lines(history, 7, (FILM,))
    assert len(lines) == COMPARED
    assert lines[-1] == "Segment 6: 60 s to 70 s, score 60"


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_long_reason_is_cut_and_not_left_out(script: Script) -> None:
    said = scored(1, 0.5, explanation="".join(script.lines * 3))
    [line] = [each for each in candidate_lines([said], (), (FILM,), "fused") if "Segment 1" in each]
    assert 50 <= len(line.partition("score 0.50: ")[2]) <= 100
    assert line.endswith(" ...")
