"""The tools of VideoSeek: their limits, the frames that they show, and the notes that they take."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.limits import Budget
from kinodex.agent.prompts import render
from kinodex.agent.protocol import Note, Question
from kinodex.agent.session import Session
from kinodex.agent.variants.videoseek import Tools
from kinodex.agent.variants.videoseek_requests import Action, FocusClip, Limits, OverviewVideo, SkimRange
from kinodex.index.library import Library
from kinodex.index.rows import TranscriptRow
from tests.support.libraries.agent_library import ScriptedModel, environment_of, film, make_library
from tests.support.screen_text.lines import Line, add_screen_text

ALPHA = 2


def describe(request: Any) -> Any:
    """Descriptions by frame number; the second one of a skim bears on the query, and focus finds the first frame."""
    if isinstance(request, FocusClip):
        return {"found": True, "answer": "red", "frames": [1]}
    frames = [{"frame": number + 1, "description": f"frame {number + 1}."} for number in range(len(request.frames))]
    if isinstance(request, SkimRange):
        frames[1]["relevant"] = "a kite"
    return {"frames": frames}


def use(
    library: Library, model: ScriptedModel, *, subtitles: bool = True, budget: Budget | None = None, **call: Any
) -> tuple[Note, ...]:
    session = Session(Question("What?"), environment_of(library, "film"), model, budget or Budget(), lambda event: None)
    tools = Tools(session, Limits(ALPHA), subtitles=subtitles)
    return asyncio.run(tools.use(Action.model_validate(call)))


def test_an_overview_shows_frames_of_the_whole_video_one_note_each(words_library: Library) -> None:
    model = ScriptedModel(describe)
    notes = use(words_library, model, tool="overview")
    (request,) = model.asked(OverviewVideo)
    assert len(request.frames) == len(notes) == 16 * ALPHA
    assert [note.start_s for note in notes] == [frame.time_s for frame in request.frames]
    assert (notes[0].source, notes[0].text) == ("overview", "frame 1.")
    assert [line.text for line in request.subtitles] == ["said at twelve", "said between"]


def test_a_skim_shows_its_range_and_says_what_is_relevant(words_library: Library) -> None:
    model = ScriptedModel(describe)
    notes = use(words_library, model, tool="skim", start_s=0, end_s=12.5, query="a kite")
    (request,) = model.asked(SkimRange)
    assert len(request.frames) == 4 * ALPHA
    assert max(frame.time_s for frame in request.frames) < 12.5
    assert [line.text for line in request.subtitles] == ["said at twelve"]
    assert notes[1].text == "frame 2. Relevant: a kite"


def test_a_focus_shows_a_frame_a_second_and_notes_those_that_it_cites(words_library: Library) -> None:
    model = ScriptedModel(describe)
    (note,) = use(words_library, model, subtitles=False, tool="focus", start_s=20, end_s=28, query="Which colour?")
    (request,) = model.asked(FocusClip)
    assert [frame.time_s for frame in request.frames] == [float(at) for at in range(20, 28)]
    assert request.subtitles == ()
    assert (note.start_s, note.end_s, note.text) == (20.0, 21.0, "Which colour? red")


def test_a_budget_of_frames_limits_every_tool(words_library: Library) -> None:
    model = ScriptedModel(describe)
    assert len(use(words_library, model, budget=Budget(frames=3), tool="overview")) == 3


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ({"tool": "skim", "start_s": 0, "end_s": 7.9}, "0.0 s to 7.9 s is too short for skim, .* at least 8 s"),
        ({"tool": "focus", "start_s": 0, "end_s": 8.1}, "0.0 s to 8.1 s is too long for focus, .* at most 8 s"),
        ({"tool": "skim", "start_s": 70, "end_s": 90}, "is no part of the video, 0.0 s to 60.0 s"),
        ({"tool": "overview", "video": "elsewhere"}, "'elsewhere' names no video"),
    ],
)
def test_calls_beyond_a_limit_are_refused_without_asking(
    words_library: Library, call: dict[str, Any], problem: str
) -> None:
    model = ScriptedModel(describe)
    with pytest.raises(InvalidReply, match=problem):
        use(words_library, model, query="a kite", **call)
    assert model.requests == []


def test_a_range_that_reaches_out_of_the_video_is_cut_to_it(words_library: Library) -> None:
    model = ScriptedModel(describe)
    use(words_library, model, tool="focus", start_s=54, end_s=90, query="the end")
    assert [frame.time_s for frame in model.asked(FocusClip)[0].frames] == [54, 55, 56, 57, 58, 59]


def test_a_model_that_says_nothing_usable_is_an_invalid_call(words_library: Library) -> None:
    with pytest.raises(InvalidReply, match="nothing that could be read"):
        use(words_library, ScriptedModel(lambda request: "?"), tool="overview")


def test_text_on_screen_is_given_beside_subtitles_or_without_them(tmp_path: Path) -> None:
    library = make_library(tmp_path / "library", {"film": film(1, 60)})
    video_id = library.video("film").video_id
    library.writer.add_transcript({video_id: [TranscriptRow(video_id, 4.0, 6.0, "mind the sign", "sidecar")]})
    add_screen_text(library, video_id, [Line(3.0, 9.0, "LIBRARY 40"), Line(30.0, 33.0, "MAPLE")])
    texts = []
    for subtitles in (True, False):
        model = ScriptedModel(describe)
        use(library, model, subtitles=subtitles, tool="skim", start_s=0, end_s=12.5, query="a kite")
        (request,) = model.asked(SkimRange)
        assert [line.text for line in request.subtitles] == ["LIBRARY 40", "mind the sign"][: 1 + subtitles]
        texts.append(render(request))
    assert "Text that stands on screen meanwhile" in texts[0]
    assert "\n- 3.0 s to 9.0 s: LIBRARY 40\n" in texts[0]
    assert "\n- 4.0 s to 6.0 s: mind the sign\n" in texts[0]
    assert "What is said meanwhile" in texts[0]
    assert "What is said meanwhile" not in texts[1]
    assert "\n\n\n" not in texts[0] + texts[1]
