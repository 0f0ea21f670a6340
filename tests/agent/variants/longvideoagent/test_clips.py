"""Clips under tags: of words alone, of several videos, and the clip whose pictures match best."""

from __future__ import annotations

from agent.variants.longvideoagent.clips import LEAST_CLIP_S, tagged_clips
from agent.variants.longvideoagent.requests import ChooseAction
from tests.support.libraries.agent_library import environment_of
from tests.support.runs.longvideoagent_runs import (
    ANSWER,
    LOCATE,
    LOOK,
    run,
    saying,
)


def test_clips_are_long_enough_to_say_something(words_library):
    clips = list(tagged_clips(environment_of(words_library, "dinner", "talk")))
    assert [clip.number for clip in clips] == list(range(1, len(clips) + 1))
    assert all(clip.end_s - clip.start_s >= LEAST_CLIP_S - 1 for clip in clips)
    assert {clip.source for clip in clips} == {"captions", "transcript"}
    assert sum(clip.text.count("stirs") for clip in clips) == 10


def test_clips_of_several_videos_are_numbered_through_and_captions_stand_in(several):
    clips = list(tagged_clips(several))
    assert [clip.number for clip in clips] == list(range(1, 19))
    film, other, third = (several.videos[at].video_id for at in range(3))
    assert [clip.video_id for clip in clips] == [film] * 6 + [other] * 6 + [third] * 6
    assert {clip.words for clip in clips[:6]} == {"no words are known of it"}
    assert (clips[9].words, clips[13].words) == ('said: "Look at my kite! It flies."', "seen: scene 1")
    answer, model, _ = run(several, saying(LOCATE, LOOK, ANSWER, clips=(10,)))
    assert [(each.video_id, each.start_s) for each in answer.evidence] == [(other, 30.0)]
    assert f"of video {other[:12]}" in model.asked(ChooseAction)[1].turns[-1].text
