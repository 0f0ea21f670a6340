"""Worths of ranked moments: each true range counts once, and a video by its best."""

from __future__ import annotations

from kinodex.jobs.eval.moments import moment_gains, video_gains, video_worths

TRUE = (("a", 0.0, 10.0), ("a", 20.0, 30.0), ("b", 5.0, 6.0))
GRADES = (1.0, 3.0, 2.0)


def test_a_result_is_right_if_its_middle_lies_in_a_true_range() -> None:
    found = [("a", 9.0, 12.0), ("a", 4.0, 6.0), ("b", 5.0, 5.0), ("c", 0.0, 10.0)]
    assert moment_gains(found, TRUE, GRADES) == [0.0, 1.0, 2.0, 0.0]


def test_ranges_leave_out_their_end_and_hold_their_beginning() -> None:
    assert moment_gains([("a", 10.0, 10.0), ("a", 20.0, 20.0)], TRUE, GRADES) == [0.0, 3.0]


def test_a_second_find_of_a_range_is_passed_over() -> None:
    found = [("a", 1.0, 1.0), ("a", 2.0, 2.0), ("a", 25.0, 25.0), ("a", 26.0, 26.0), ("a", 15.0, 15.0)]
    assert moment_gains(found, TRUE, GRADES) == [1.0, 3.0, 0.0]


def test_of_ranges_that_overlap_each_is_found_by_a_result_of_its_own() -> None:
    true = (("a", 0.0, 10.0), ("a", 5.0, 15.0))
    assert moment_gains([("a", 7.0, 7.0), ("a", 8.0, 8.0), ("a", 9.0, 9.0)], true, (1.0, 2.0)) == [1.0, 2.0]


def test_a_video_ranks_by_its_first_result_and_is_worth_its_best_range() -> None:
    found = [("c", 0.0, 1.0), ("a", 99.0, 99.0), ("c", 4.0, 5.0), ("b", 5.0, 6.0)]
    assert video_worths(TRUE, GRADES) == {"a": 3.0, "b": 2.0}
    assert video_gains(found, TRUE, GRADES) == [0.0, 3.0, 2.0]
