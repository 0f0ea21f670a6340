"""The frames that stand for the evidence of an answer."""

from __future__ import annotations

from dataclasses import replace

from kinodex.web.trace_view import evidence_frames, shown_frames


def with_evidence(view, *ranges):
    video_id = view.videos[0]["video_id"]
    held = [{"video_id": video_id, "start_s": start_s, "end_s": end_s} for start_s, end_s in ranges]
    return replace(view, answer=view.answer | {"evidence": held})


def test_the_frame_of_a_range_is_the_one_nearest_its_middle_that_a_model_saw(view, shown):
    (first, *_, last) = sorted(shown_frames(view), key=lambda frame: frame.time_s)
    narrow = with_evidence(view, (last.time_s - 0.2, last.time_s + 0.4), (first.time_s, first.time_s + 0.1))
    assert evidence_frames(shown.library, narrow) == [last, first]
    whole = with_evidence(view, (0.0, 2 * first.time_s + 1e-9))
    assert evidence_frames(None, whole) == [min(shown_frames(view), key=lambda frame: abs(frame.time_s - first.time_s))]


def test_a_range_that_no_model_saw_a_frame_of_has_the_stored_one_in_its_middle(view, shown):
    seen = {frame.time_s for frame in shown_frames(view)}
    unseen_s = next(each for each in range(60) if float(each) not in seen)
    words = with_evidence(view, (unseen_s - 0.4, unseen_s + 0.4))
    (frame,) = evidence_frames(shown.library, words)
    assert frame is not None
    assert (frame.time_s, frame.frame_no) == (unseen_s, unseen_s)
    assert evidence_frames(None, words) == [None]


def test_a_run_without_an_answer_has_no_evidence(view, shown):
    assert evidence_frames(shown.library, replace(view, answer=None)) == []
