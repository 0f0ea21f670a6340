"""Descriptions of frames of the sketch world, and their confidence."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.models.rules import RuleBasedModel, describe
from kinodex.agent.protocol import Question, Segment
from kinodex.agent.requests.describe import DescribeSegment
from kinodex.agent.variants.longvideoagent_requests import ReadFrames
from kinodex.agent.variants.videoagent2_requests import CaptionFrames
from kinodex.agent.variants.videoseek_requests import FocusClip, OverviewVideo, SkimRange
from kinodex.index.spaces.space import Space, load_space
from kinodex.sketch.script import Script, write_questions, write_script
from tests.sketch.captions import full_claim, plain_wording
from tests.support.libraries.undecoded_film import sketch_library


@pytest.fixture(scope="module")
def space() -> Space:
    return load_space("builtin", device="cpu")


@pytest.fixture(scope="module")
def script() -> Script:
    return write_script("film", 120.0, 3)


@pytest.fixture(scope="module")
def sketch(tmp_path_factory, script, space) -> Environment:
    library = sketch_library(tmp_path_factory.mktemp("sketch"), script, space)
    return Environment.of(library, library.videos(), space.embed_text)


def replied(environment, request):
    return asyncio.run(RuleBasedModel(environment).ask(request)).reply


@pytest.mark.slow
def test_frames_are_described_and_confidence_tells_right_from_wrong(tmp_path, space):
    script = write_script("film", 600.0, 3)
    library = sketch_library(tmp_path, script, space)
    sketch = Environment.of(library, library.videos(), space.embed_text)
    (video,) = sketch.videos
    said = []
    for shot in script.shots:
        phrase = describe(sketch, sketch.frames(video.video_id, [(shot.start_s + shot.end_s) / 2]))
        said.append((phrase.confidence, phrase.text == plain_wording(full_claim(shot.scene))))
    sure = [right for confidence, right in said if confidence >= 0.8]
    unsure = [right for confidence, right in said if confidence < 0.4]
    assert len(sure) >= 15
    assert sum(sure) / len(sure) >= 0.85
    assert sum(unsure) / len(unsure) <= 0.5


def test_a_stretch_of_frames_is_described_in_order_each_scene_once(sketch, script):
    (video,) = sketch.videos
    first, second = script.shots[3:5]
    times_s = [first.start_s + 1.5, first.start_s + 2.5, second.start_s + 1.5]
    shown = sketch.frames(video.video_id, times_s)
    part = Segment(0, video.video_id, first.start_s, second.end_s)
    reply = replied(sketch, DescribeSegment(segment=part, frames=shown))
    assert reply.caption == "; then ".join(plain_wording(full_claim(shot.scene)) for shot in (first, second))
    assert 0 < reply.confidence <= 100


def test_frames_are_told_apart_one_by_one(sketch, script):
    (video,) = sketch.videos
    shots = script.shots[3:5]
    shown = sketch.frames(video.video_id, [shot.start_s + 1.5 for shot in shots])
    truth = [plain_wording(full_claim(shot.scene)) for shot in shots]
    part = Segment(0, video.video_id, 0.0, 99.0)
    about = {"videos": sketch.videos, "segment": part, "subtitles": (), "frames": shown}
    assert [each.description for each in replied(sketch, OverviewVideo(**about)).frames] == truth
    query = f"Is there {truth[1]}?"
    assert [each.relevant for each in replied(sketch, SkimRange(query=query, **about)).frames] == [None, truth[1]]
    found = replied(sketch, FocusClip(query=query, **about))
    assert (found.found, found.answer, found.frames) == (True, truth[1], [2])
    assert not replied(sketch, FocusClip(query="the giant squid", **about)).found
    reading_them = ReadFrames(query=query, clips=(), frames=shown)
    assert replied(sketch, reading_them).observation == "; then ".join(truth)


def test_a_caption_has_a_confidence_for_each_clause(sketch, script):
    (video,) = sketch.videos
    shown = sketch.frames(video.video_id, [script.shots[3].start_s + 1.5])
    request = CaptionFrames(frames=shown)
    reply = replied(sketch, request)
    request.check(reply)
    (caption,) = reply.captions
    assert " ".join(clause.text for clause in caption.clauses) == plain_wording(full_claim(script.shots[3].scene))
    assert all(0.8 < clause.confidence <= 1 for clause in caption.clauses)
    (unasked,) = replied(sketch, replace(request, confidence=False)).captions
    assert [clause.confidence for clause in unasked.clauses] == [None, None]
    with pytest.raises(NeedsLanguage, match="not enlarged parts"):
        replied(sketch, replace(request, box=(0.0, 0.0, 0.5, 0.5)))


def test_it_has_no_words_for_other_spaces(elsewhere):
    (video,) = elsewhere.videos
    shown = elsewhere.frames(video.video_id, [3.0])
    with pytest.raises(NeedsLanguage, match="only for libraries in the built-in space, and this one is in words; give"):
        replied(elsewhere, DescribeSegment(segment=Segment(0, video.video_id, 0.0, 4.0), frames=shown))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["videoagent", "videotree"])
def test_it_plays_the_baselines_in_the_sketch_world(sketch, script, agent):
    """Captions of a few frames miss much, but what is answered is mostly right."""
    right, wrong = 0, 0
    for asked in write_questions(script, "film.mp4", 0)[:8]:
        question = Question(asked.question, asked.options)
        answer = asyncio.run(ask(question, sketch, RuleBasedModel(sketch), agent=agent))
        right += answer.option == asked.answer
        wrong += answer.option not in (asked.answer, None)
        assert answer.ledger.invalid_replies == 0
    assert right >= 2
    assert right > wrong
