"""The request of VCA without a tree: its prompt, and which choices are impossible."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from kinodex.agent.errors import InvalidReply
from kinodex.agent.prompts import render
from kinodex.agent.protocol import Question, ShownFrame, Video
from kinodex.agent.replies import strict_schema
from kinodex.agent.variants.vca import ChooseFrames, FrameChoice
from tests.support.strict_mode import violations

FILM = Video("abcdef0123456789" * 2, "Film", 1.5, 100.0)


OTHER = Video("fedcba9876543210" * 2, "Other", 0.0, 50.0)


QUESTION = Question("What colour is the kite?", ("red", "blue"))


FRAMES = (ShownFrame(FILM.video_id, 50, 50.04, 8, 8, b"x"), ShownFrame(FILM.video_id, 70, 70.0, 8, 8, b"y"))


def choosing(**more) -> ChooseFrames:
    seen = ((FILM.video_id, 70.0), (FILM.video_id, 50.04))
    return ChooseFrames(**{"question": QUESTION, "videos": (FILM,), "frames": FRAMES, "seen": seen, "count": 6, **more})


def test_choosing_frames_names_times_and_how_many():
    text = render(choosing())
    assert "A. red\nB. blue" in text
    assert "The video lasts 100.0 s, from 1.5 s to 101.5 s." in text
    assert "You have seen so far:\n- 70.0 s, 50.0 s\n" in text
    assert "the times of 1 to 6 frames" in text
    assert '"video": null' in text
    assert "JSON only" in text
    assert "\n\n\n" not in text


def test_choosing_frames_of_several_videos_names_them():
    seen = ((FILM.video_id, 70.0), (OTHER.video_id, 2.0), (FILM.video_id, 50.04))
    text = render(choosing(videos=(FILM, OTHER), seen=seen))
    assert "- video abcdef012345: 70.0 s, 50.0 s\n- video fedcba987654: 2.0 s\n" in text
    assert "all of one video" in text


def test_nothing_seen_yet():
    text = render(choosing(frames=(), seen=()))
    assert "No frame is shown." in text
    assert "You have seen so far:\n- nothing\n" in text


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"times_s": [101.5]}, r"101.5 s is not in the video, 1.5 s to 101.5 s"),
        ({"action": "look", "times_s": []}, "got 0 times; name 1 to 6"),
        ({"times_s": [2, 3, 4, 5, 6, 7, 8]}, "got 7 times; name 1 to 6"),
        ({"times_s": [2], "video": "1234"}, "'1234' names no video; the videos are abcdef012345"),
        ({"action": "answer", "option": "C"}, "names no option"),
    ],
)
def test_impossible_choices_are_refused(said, wrong):
    with pytest.raises(InvalidReply, match=wrong):
        choosing().check(FrameChoice.model_validate(said))


@pytest.mark.parametrize(
    "said", [{"times_s": ["soon"]}, {"action": "explore"}, {"times_s": 5}, ["look"], {"times_s": [5], "option": "B"}]
)
def test_misshapen_choices_are_refused(said):
    with pytest.raises(ValidationError):
        FrameChoice.model_validate(said)


def test_of_several_videos_one_has_to_be_named():
    request = choosing(videos=(FILM, OTHER))
    request.check(FrameChoice.model_validate({"times_s": [49.9], "video": "fedcba987654"}))
    with pytest.raises(InvalidReply, match="60 s is not in the video, 0 s to 50 s"):
        request.check(FrameChoice.model_validate({"times_s": [60], "video": "fedcba987654"}))
    with pytest.raises(InvalidReply, match="None names no video; the videos are abcdef012345, fedcba987654"):
        request.check(FrameChoice.model_validate({"times_s": [2]}))


def test_the_schema_asks_for_every_key():
    assert violations(strict_schema(FrameChoice)) == []


def test_times_in_an_exhausted_video_are_refused():
    """They were accepted: a round then showed nothing new, or ended in an error."""
    request = choosing(videos=(FILM, OTHER), exhausted=(OTHER.video_id,))
    look = {"reasoning": "", "action": "look", "times_s": [5.0]}
    request.check(FrameChoice.model_validate({**look, "video": FILM.video_id}))
    with pytest.raises(InvalidReply, match=r"all frames of video fedcba987654 .* another one \(abcdef012345\)"):
        request.check(FrameChoice.model_validate({**look, "video": OTHER.video_id}))
