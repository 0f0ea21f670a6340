"""Clips under tags: of about a minute, of words alone, of several videos, and the one whose pictures match best."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kinodex.agent.variants.longvideoagent import SHORTEST_CLIP_S, best_matching_clips, tagged_clips
from kinodex.agent.variants.longvideoagent_requests import ChooseAction
from kinodex.index.rows import SegmentRow, TranscriptRow
from tests.support.libraries.agent_library import environment_of, film, make_library
from tests.support.libraries.random_library import caption
from tests.support.libraries.text_library import text_library
from tests.support.runs.longvideoagent_runs import ANSWER, LOCATE, LOOK, run, saying
from tests.support.screen_text.lines import Line, add_screen_text

SHOTS_S = (0.0, 20.0, 55.0, 58.0, 90.0, 100.0, 128.0, 170.0, 230.0)


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    """Four minutes in nine shots, each with a caption; somebody speaks for the first minute and once later."""
    library = make_library(tmp_path_factory.mktemp("shots"), {"film": film(5, 240)})
    (row,) = library.videos()
    ends_s = (*SHOTS_S[1:], 240.0)
    parts = [SegmentRow(row.video_id, n, s, e, "shot") for n, (s, e) in enumerate(zip(SHOTS_S, ends_s, strict=True))]
    library.writer.add_segments({row.video_id: parts})
    lines = [(5.0 * n, 5.0 * n + 4.0, f"line {n}") for n in range(12)] + [(200.0, 202.0, "the end")]
    library.writer.add_transcript(
        {row.video_id: [TranscriptRow(row.video_id, *line, "sidecar", "en") for line in lines]}
    )
    captions = [
        SimpleNamespace(**vars(caption(n, f"shot {n}")) | {"start_s": part.start_s, "end_s": part.end_s})
        for n, part in enumerate(parts)
    ]
    library.additions.add_captions({row.video_id: captions}, "captioner")
    assert library.additions.complete("captions", "captioner", {row.video_id: len(parts)}, {}) == ()
    return environment_of(library)


def test_clips_are_of_about_a_minute_and_end_with_segments(shots):
    clips = list(tagged_clips(shots))
    assert [(clip.start_s, clip.end_s) for clip in clips] == [
        (0.0, 58.0),
        (58.0, 128.0),
        (128.0, 170.0),
        (170.0, 240.0),
    ]


def test_the_segments_themselves_may_be_the_clips(shots):
    assert [clip.start_s for clip in tagged_clips(shots, 0.0)] == list(SHOTS_S)


def test_where_no_segment_ends_near_by_a_clip_ends_anyway(tmp_path):
    one_shot = environment_of(make_library(tmp_path / "library", {"lecture": film(5, 300)}))
    assert [(clip.start_s, clip.end_s) for clip in tagged_clips(one_shot, 90.0)] == [
        (0.0, 100.0), (100.0, 200.0), (200.0, 300.0)
    ]  # fmt: skip


def test_captions_fill_the_gaps_of_a_transcript(shots):
    first, second, third, last = tagged_clips(shots)
    assert (first.source, first.seen) == ("transcript", "")
    assert (second.source, second.text) == ("captions", "shot 3 shot 4 shot 5")
    assert (third.source, third.text) == ("captions", "shot 6")
    assert last.words == 'said: "the end" seen: shot 7 shot 8'


def test_clips_of_words_are_long_enough_to_say_something(words_library):
    clips = list(tagged_clips(environment_of(words_library, "dinner", "talk"), 0.0))
    assert [clip.number for clip in clips] == list(range(1, len(clips) + 1))
    assert all(clip.end_s - clip.start_s >= SHORTEST_CLIP_S - 1 for clip in clips)
    assert {clip.source for clip in clips} == {"captions", "transcript"}
    assert sum(clip.text.count("stirs") for clip in clips) == 10


def test_clips_of_several_videos_are_numbered_through_and_captions_stand_in(several):
    clips = list(tagged_clips(several, 0.0))
    assert [clip.number for clip in clips] == list(range(1, 19))
    film, other, third = (several.videos[at].video_id for at in range(3))
    assert [clip.video_id for clip in clips] == [film] * 6 + [other] * 6 + [third] * 6
    assert {clip.words for clip in clips[:6]} == {"no words are known of it"}
    assert (clips[9].words, clips[13].words) == ('said: "Look at my kite! It flies."', "seen: scene 1")
    answer, model, _ = run(several, saying(LOCATE, LOOK, ANSWER, clips=(10,)))
    assert [(each.video_id, each.start_s) for each in answer.evidence] == [(other, 30.0)]
    assert f"of video {other[:12]}" in model.asked(ChooseAction)[1].turns[-1].text


def test_a_clip_in_which_nobody_speaks_is_never_the_best_match(tmp_path):
    lines = {f"clip_{n}": [(0.0, 30.0, text)] for n, text in enumerate(("a red kite", "a blue boat"))}
    library = text_library(tmp_path / "library", {}, lines)
    library = with_silent_clip(library)
    environment = environment_of(library)
    clips = list(tagged_clips(environment))
    (best,) = best_matching_clips(environment, clips, "red kite", (), 1)
    assert best.text == "a red kite"
    assert best_matching_clips(environment, clips, "red kite", [clip.number for clip in clips if clip.text], 1) == []


def with_silent_clip(library):
    row = library.videos()[0]
    silent = replace(row, video_id="f" * 32, title="clip_2", uri="imported:clip_2")
    assert library.writer.complete([silent]) == ()
    return library


def test_text_on_screen_is_among_the_words_of_a_clip_and_makes_a_silent_one_known(tmp_path):
    library = make_library(tmp_path / "library", {"film": film(5, 240)})
    video_id = library.video("film").video_id
    library.writer.add_transcript({video_id: [TranscriptRow(video_id, 5.0, 8.0, "good morning", "sidecar")]})
    add_screen_text(library, video_id, [Line(2.0, 4.0, "MAPLE"), Line(9.0, 50.0, "EXIT 4"), Line(70.0, 90.0, "ECHO")])
    environment = environment_of(library)
    clips = list(tagged_clips(environment))
    assert [clip.words for clip in clips[:3]] == [
        'said: "good morning" on screen: "MAPLE / EXIT 4"',
        'on screen: "ECHO"',
        "no words are known of it",
    ]
    assert [clip.has_words for clip in clips] == [True, True, False, False]
    answer, model, _ = run(environment, saying(ANSWER))
    (whole,) = model.asked(ChooseAction)[0].clips  # without segments the film is one clip
    assert whole.words == 'said: "good morning" on screen: "MAPLE / EXIT 4 / ECHO"'
    assert answer.ledger.screen_lines == 3
