"""A rehearsal stands for many questions: some are run, the rest is expected alike."""

from __future__ import annotations

import pytest

from kinodex.agent.protocol import Question
from kinodex.jobs.forecast import REHEARSED, Forecast, _choose, _expect_kept, _Kept, _mix, add_up, table

TASKS = [(Question(f"What is {number}?"), (str(number),)) for number in range(100)]


def test_tasks_are_taken_evenly_from_the_first_to_the_last() -> None:
    some = _choose(TASKS)
    assert len(some) == REHEARSED and some[0] == TASKS[0] and some[-1] == TASKS[-1]
    assert _choose(TASKS[:3]) == TASKS[:3]


def test_two_questions_of_a_video_are_rehearsed_where_there_are_two() -> None:
    tasks = [(Question(f"What is {number}?"), (str(number // 10),)) for number in range(100)]
    some = _choose(tasks)
    assert [video for _, (video,) in some] == ["0", "0", "3", "3", "6", "6", "9", "9"]
    assert len(set(some)) == REHEARSED
    assert len(_choose(tasks[:10])) == REHEARSED, "all of the one video"
    assert _choose([]) == []


@pytest.mark.parametrize(
    ("frames_a_video", "calls"),
    [
        (1000, 10 * 20 + 90 * 4),
        (40, 10 * 20 + 10 * 5 * 4),  # 20 frames with the first question, and 4 with each of five more: all 40
        (20, 10 * 20),
    ],
)
def test_captions_grow_with_each_question_until_a_video_has_all(frames_a_video: float, calls: float) -> None:
    tasks = [(Question(f"What is {number}?"), (str(number // 10),)) for number in range(100)]
    kept = [_Kept(calls=20, frames=20, cost=2.0), _Kept(calls=4, frames=4, cost=0.5)] * 4
    expected = _expect_kept(tasks, _choose(tasks), kept, frames_a_video)
    assert expected.calls == expected.frames == calls
    assert expected.cost == 10 * 2.0 + (calls - 200) / 4 * 0.5


def test_two_rehearsals_are_weighed() -> None:
    short, long = Forecast("eea", 4, 10, 8, 1000, 100, 1.0), Forecast("eea", 4, 40, 20, 5000, 300, 4.0)
    mixed = _mix(short, long, 0.25)
    assert (mixed.calls, mixed.frames, mixed.input_tokens, mixed.cost) == (17.5, 11.0, 2000.0, 1.75)
    assert mixed.questions == 4


def test_rows_add_up() -> None:
    one, two = Forecast("eea", 4, 10, 8, 1000, 100, 1.0), Forecast("vca", 4, 5, 2, 500, 50, 0.5)
    assert add_up([one, two]).cost == pytest.approx(1.5)
    assert "| all | 8 | 15 | 10 | 1,500 | 150 | 1.5 |" in table([one, two])
    assert "| all |" not in table([one])
