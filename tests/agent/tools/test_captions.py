"""Captions of parts of videos: asked for once, kept, within budgets, by several at once, and replayed."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kinodex.agent.errors import ModelRejected, ModelUnreachable
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.exchange import Usage
from kinodex.agent.protocol.question import Question
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.session import Session
from kinodex.agent.tools.captions import (
    caption_clips,
    summarize_video,
    windows,
)
from kinodex.agent.traces.events import Acted, RunStarted
from kinodex.agent.traces.replay import ReplayModel
from kinodex.agent.traces.trace import trace_to
from kinodex.index.library import Library
from kinodex.jobs.add.captions import Caption
from tests.support.libraries.agent_library import ScriptedModel, environment_of, film, make_library

QUESTION = Question("What is seen?")


@pytest.fixture
def library(tmp_path) -> Library:
    return make_library(tmp_path / "library", {"film": film(5, 62)})


def describing(request):
    if isinstance(request, Summarize):
        return {"summary": f"{len(request.notes)} parts"}
    return {"caption": f"from {request.segment.start_s:g}", "confidence": 80}


class Model(ScriptedModel):
    """Lets others run before it answers."""

    def __init__(self, script=describing, usage: Usage | None = None, name: str = "scripted") -> None:
        super().__init__(script, usage)
        self.name = name

    async def ask(self, request):
        await asyncio.sleep(0)
        return await super().ask(request)

    def starts_s(self) -> list[float]:
        return [request.segment.start_s for request in self.asked(DescribeSegment)]


def session_of(library, model, budget=None, emit=lambda event: None) -> Session:
    return Session(QUESTION, environment_of(library), model, budget or Budget(), emit)


def problems(events) -> list[str]:
    return [event.problem for event in events if isinstance(event, Acted)]


def captions(session, seconds=4.0):
    return asyncio.run(caption_clips(session, session.environment.videos[0].video_id, seconds))


@contextmanager
def no_room() -> Iterator[None]:
    """Within this block no file can grow, as where a library may only be read."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_each_window_is_described_by_the_frames_on_screen_in_it(library):
    model = Model()
    notes = captions(session_of(library, model))
    assert [(note.start_s, note.end_s) for note in notes] == windows(environment_of(library).videos[0])
    assert (notes[1].source, notes[1].text, notes[1].confidence) == ("captions", "from 4", 0.8)
    last = next(request for request in model.asked(DescribeSegment) if request.segment.start_s == 60)
    assert [frame.time_s for frame in last.frames] == [60, 61]
    assert model.starts_s()[:4] == [0, 32, 16, 48]  # from coarse to fine


@pytest.mark.slow
def test_what_was_said_is_kept_by_model_and_no_caption_of_a_stage(library):
    paying = session_of(library, Model())
    first = captions(paying)
    paid = paying.account.ledger
    assert paid.frames == paid.frames_with_kept > 16
    again, other = Model(), Model(name="another")
    session = session_of(Library.open(library.uri), again)
    assert captions(session) == first
    bill = session.account.ledger
    assert (again.requests, bill.frames, bill.frames_with_kept) == ([], 0, paid.frames)
    captions(session_of(library, other))
    assert len(other.requests) == 16
    assert library.captions(library.videos()[0].video_id) == []
    assert library.search.captions("from") == []
    assert len(library.additions.pending("captions", "scripted")) == 1


def test_what_is_invalid_twice_is_left_out_counted_and_said(library):
    events: list[object] = []
    model = Model(lambda request: "mumble" if request.segment.start_s in (8, 20) else describing(request))
    session = session_of(library, model, emit=events.append)
    assert len(captions(session)) == 14
    assert session.account.ledger.invalid_replies == 4
    assert problems(events) == ["2 of 16 captions were invalid twice"]
    asked = len(model.requests)
    assert len(captions(session)) == 14
    assert len(model.requests) == asked
    later = Model()
    assert len(captions(session_of(library, later))) == 16
    assert sorted(later.starts_s()) == [8, 20]


@pytest.mark.slow
def test_half_of_what_a_budget_allows_is_for_captions_all_over_the_video(tmp_path):
    budgets = ((Budget(frames=41), 5), (Budget(tokens=22_100), 8), (Budget(cost=7.0), 3), (Budget(frames=6), 0))
    for at, (budget, asked) in enumerate(budgets):
        library, events = make_library(tmp_path / str(at), {"film": film(5, 62)}), list[object]()
        session = session_of(library, Model(usage=Usage(1170, 130, cost=1.0)), budget, events.append)
        notes = captions(session)
        assert len(notes) == asked
        assert problems(events) == [f"{16 - asked} of 16 captions were not asked for, to leave half of the budget"]
        assert asked < 3 or {0.0, 32.0, 16.0} <= {note.start_s for note in notes}
        later = Model()
        assert len(captions(session_of(library, later))) == 16 and len(later.requests) == 16 - asked


def test_what_came_before_a_model_broke_down_is_kept(library):
    def breaking(request):
        if request.segment.start_s == 40:
            raise ModelUnreachable("gone")
        return describing(request)

    with pytest.raises(ModelUnreachable):
        captions(session_of(library, Model(breaking)))
    later = Model()
    assert len(captions(session_of(library, later))) == 16
    assert 40 in later.starts_s()
    assert len(later.requests) < 16


def test_captions_that_cannot_be_written_are_remembered_and_that_is_said_once(library):
    events: list[object] = []
    model = Model()
    session = session_of(library, model, emit=events.append)
    with no_room():
        first = captions(session)
        assert captions(session) == first
        assert len(captions(session, 31.0)) == 2
    assert library.notes.read(first[0].video_id, "scripted") == []
    assert len(model.requests) == 18
    assert len(problems(events)) == 1
    assert problems(events)[0].startswith("captions are not kept beyond this run: no room is left for ")
    captions(session, 62.0)  # there is room again
    assert len(library.notes.read(first[0].video_id, "scripted")) == 19


def test_a_question_by_itself_finds_no_caption_and_leaves_none(library):
    captions(session_of(library, Model()))
    video_id = library.videos()[0].video_id
    kept = library.notes.read(video_id, "scripted")
    shared = environment_of(library)
    for _ in range(2):
        model = Model()
        session = Session(QUESTION, shared.without_shared_captions(), model, Budget(), lambda event: None)
        first = captions(session)
        assert captions(session) == first
        assert len(model.requests) == len(first) == 16
        assert session.account.ledger.frames == session.account.ledger.frames_with_kept
    assert library.notes.read(video_id, "scripted") == kept
    assert not shared.unsaved_captions


def recorded(library, model, path):
    """The captions of a session that writes a trace."""
    with trace_to(path) as write:
        session = session_of(library, model, emit=write)
        environment, names = session.environment, {"default": model.name}
        write(RunStarted(QUESTION, "none", {}, Budget(), environment.videos, environment.space, 62, names))
        return captions(session)


@pytest.mark.slow
def test_runs_that_asked_and_runs_that_found_captions_replay_to_the_same(library, tmp_path):
    asked = recorded(library, Model(), tmp_path / "asked")
    found = recorded(library, Model(), tmp_path / "found")
    replayed = session_of(library, ReplayModel(tmp_path / "asked"))
    assert captions(replayed) == asked
    assert replayed.account.ledger.calls == 16
    assert captions(session_of(library, ReplayModel(tmp_path / "found"))) == found == asked


def test_a_summary_is_kept_for_the_captions_that_it_sums_up(library):
    model = Model()
    session = session_of(library, model)
    video_id, notes = session.environment.videos[0].video_id, captions(session)
    first = asyncio.run(summarize_video(session, video_id, notes))
    assert first is not None
    assert (first.start_s, first.end_s, first.source, first.text) == (0, 62, "summary", "16 parts")
    assert asyncio.run(summarize_video(session_of(library, model), video_id, notes)) == first
    assert len(model.asked(Summarize)) == 1
    shorter = asyncio.run(summarize_video(session, video_id, notes[:3]))
    assert shorter is not None
    assert shorter.text == "3 parts"
    assert asyncio.run(summarize_video(session, video_id, ())) is None
    assert captions(session) == notes


class Refusing(Model):
    """A server that refuses the parts of some starts for what they show."""

    def __init__(self, refuses) -> None:
        super().__init__()
        self.refuses = refuses

    async def ask(self, request):
        if isinstance(request, DescribeSegment) and self.refuses(request.segment.start_s):
            raise ModelRejected("the host refuses the request (400: content policy)")
        return await super().ask(request)


def test_a_server_that_refuses_every_part_ends_the_run(library):
    model = Refusing(lambda start_s: True)
    with pytest.raises(ModelRejected):
        captions(session_of(library, model))
    assert library.notes.read(library.videos()[0].video_id, "scripted") == []


def test_captions_of_the_library_stand_in_for_windows_unless_they_are_long(library):
    (video,) = library.videos()
    rows = [Caption(0, 0.0, 12.0, "short", None, None), Caption(1, 12.0, 62.0, "long", None, None)]
    library.additions.add_captions({video.video_id: rows}, "other")
    library.additions.complete("captions", "other", {video.video_id: 2}, {})
    model = Model()
    session = session_of(library, model)
    notes = captions(session)
    assert [note.text for note in notes][:3] == ["short", "from 12", "long"]
    assert min(model.starts_s()) == 12.0
    assert session.account.ledger.frames_with_kept > session.account.ledger.frames
