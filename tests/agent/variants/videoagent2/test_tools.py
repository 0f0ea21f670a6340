"""The tools of VideoAgent2 in full runs: captions, enlargements, detections, tracks."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kinodex.agent.answer import Answer
from kinodex.agent.ask import ask
from kinodex.agent.errors import ModelUnreachable
from kinodex.agent.models.openai_model import OpenAIModel
from kinodex.agent.models.roles import Role
from kinodex.agent.protocol import ShownFrame
from kinodex.agent.trace import Acted, Event, read_prior_evidence, trace_to
from kinodex.agent.variants.videoagent2_requests import Assess, CaptionFrames
from kinodex.index.library import Library
from kinodex.index.rows import DetectionRow
from tests.support.libraries.agent_library import film, make_library
from tests.support.libraries.videoagent2_film import (
    CAPTION,
    QUESTION,
    SURE,
    UNSURE,
    Script,
    acted,
    call_once,
    environment_of,
    kite_library,
    picture,
    run,
)
from tests.support.servers.chat_server import Behaviour, ChatServer, failing, hanging, refusing


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return kite_library(tmp_path_factory.mktemp("videoagent2"))


def test_captions_of_a_range_are_of_a_frame_a_second_and_of_eight_at_most(library: Library) -> None:
    found, model, event = call_once(library, {"tool": "caption", "start_s": 40.0, "end_s": 43.0})
    assert [frame.time_s for frame in model.asked(CaptionFrames)[0].frames] == [40.0, 41.0, 42.0]
    assert found == ["a red kite (confidence 0.90); a desert (confidence 0.60)"] * 3
    assert [(note.start_s, note.end_s, note.source) for note in event.notes][1] == (41.0, 42.0, "caption tool")
    _, model, _ = call_once(library, {"tool": "caption", "start_s": 0.0, "end_s": 1000.0})
    assert [frame.time_s for frame in model.asked(CaptionFrames)[0].frames][::7] == [3.0, 56.0]


def test_zooming_shows_the_part_in_the_box(library: Library) -> None:
    call = {"tool": "zoom_caption", "start_s": 41.0, "end_s": 50.0, "box": [0.5, 0.0, 1.0, 1.0]}
    found, model, _ = call_once(library, call)
    (asked,) = model.asked(CaptionFrames)
    assert asked.box == (0.5, 0.0, 1.0, 1.0)
    (frame,) = asked.frames
    assert frame.time_s == 41.0
    shown = np.asarray(Image.open(io.BytesIO(frame.jpeg)))
    assert shown[5:-5, 5:-5, 2].min() > 200
    assert found == ["in [0.50, 0.00, 1.00, 1.00]: a red kite (confidence 0.90); a desert (confidence 0.60)"]


def test_detections_come_from_the_library_and_a_missed_one_from_the_frames_around(library: Library) -> None:
    found, model, event = call_once(library, {"tool": "detect", "start_s": 20.0, "end_s": 25.0, "label": "boat"})
    assert found[0] == "boat number 7 at [0.20, 0.10, 0.40, 0.50] (confidence 0.70)"
    assert found[2] == "boat number 7 at [0.22, 0.10, 0.42, 0.50] (confidence 0.60)"
    assert [note.start_s for note in event.notes] == [20.0, 21.0, 22.0, 23.0, 24.0]
    assert model.asked(CaptionFrames) == []
    everything, _, _ = call_once(library, {"tool": "detect", "start_s": 24.0})
    assert everything[0].startswith("house number 8 at [0.60, 0.10, 0.80, 0.50] (confidence 0.90); boat number 7 at")


def test_detecting_in_a_part_leaves_out_what_is_elsewhere(library: Library) -> None:
    call = {"tool": "zoom_detect", "start_s": 24.0, "box": [0.5, 0, 1, 1]}
    found, _, _ = call_once(library, call)
    assert found == ["in [0.50, 0.00, 1.00, 1.00]: house number 8 at [0.60, 0.10, 0.80, 0.50] (confidence 0.90)"]


def test_a_thing_is_followed_through_a_range(library: Library) -> None:
    found, _, event = call_once(library, {"tool": "track", "start_s": 15.0, "end_s": 30.0, "label": "boat"})
    assert found == [
        "at 20.0 s boat number 7 at [0.20, 0.10, 0.40, 0.50] (confidence 0.70); "
        "at 21.0 s boat number 7 at [0.21, 0.10, 0.41, 0.50] (confidence 0.71); "
        "at 24.0 s boat number 7 at [0.24, 0.10, 0.44, 0.50] (confidence 0.60)"
    ]
    assert (event.notes[0].start_s, event.notes[0].end_s) == (20.0, 25.0)


def kites_everywhere(frames: tuple[ShownFrame, ...], label: str) -> list[DetectionRow]:
    """A detector that sees one thing in the same place of every frame."""
    return [
        DetectionRow(each.video_id, each.frame_no, each.time_s, label, 0.8, (0.1, 0.2, 0.3, 0.4), 1, "everywhere")
        for each in frames
    ]


def test_what_the_library_does_not_hold_is_looked_for_by_a_detector(library: Library) -> None:
    call = {"tool": "detect", "start_s": 41.0, "label": "kite"}
    found, _, _ = call_once(library, call, detector=kites_everywhere)
    assert found == ["kite number 1 at [0.10, 0.20, 0.30, 0.40] (confidence 0.80)"]
    call = {"tool": "zoom_detect", "start_s": 41.0, "label": "kite", "box": [0.5, 0.5, 1.0, 1.0]}
    found, _, _ = call_once(library, call, detector=kites_everywhere)
    assert found[0].endswith("kite number 1 at [0.55, 0.60, 0.65, 0.70] (confidence 0.80)")


def test_without_a_detector_the_index_says_where_a_thing_is_likely(library: Library) -> None:
    found, _, _ = call_once(library, {"tool": "track", "start_s": 30.0, "end_s": 60.0, "label": "red kite desert"})
    assert any("at 40.0 s red kite desert somewhere, by likeness alone (confidence 0." in text for text in found)
    assert not any("[" in text for text in found)


def test_finding_nothing_says_who_looked(library: Library) -> None:
    found, model, event = call_once(library, {"tool": "detect", "start_s": 3.0, "label": "boat"})
    text = "nothing found, no boat: the library's detections were looked through for 'boat'"
    assert (found, event.problem) == ([text], "")
    assert model.asked(Assess)[1].notes[-1].text == text
    call = {"tool": "detect", "start_s": 3.0, "label": "kite"}
    found, _, _ = call_once(library, call, detector=lambda frames, label: [])
    assert found == ["nothing found, no kite: a detector looked"]
    found, _, _ = call_once(library, call)
    assert "no frame there is much like 'kite'" in found[0]
    assert "by no detector, so it may be there all the same" in found[0]


def test_without_a_label_a_detector_names_all_that_it_knows(tmp_path: Path) -> None:
    library = make_library(tmp_path, {"film": film(5, 20)}, picture())
    call = {"tool": "detect", "start_s": 3.0}
    found, _, _ = call_once(library, call, detector=lambda frames, label: kites_everywhere(frames, label or "house"))
    assert found == ["house number 1 at [0.10, 0.20, 0.30, 0.40] (confidence 0.80)"]
    found, _, event = call_once(library, call)
    assert event.notes[0].failed
    assert "the label is empty" in event.problem


def test_a_label_of_the_library_that_may_be_another_thing_is_named(library: Library) -> None:
    found, _, _ = call_once(library, {"tool": "detect", "start_s": 24.0, "label": "small white boats"})
    assert found[0].startswith("'boat' was looked for in place of 'small white boats': boat number 7 at")


def look_fails(library: Library, reply: Any) -> tuple[Answer, Acted]:
    """Run over the wire; the look at frames, the last note, gets this reply, and the answer cites only that note."""

    def said(body: dict) -> Any:
        kind = body["response_format"]["json_schema"]["name"]
        if kind == "FrameCaptions":
            return reply
        texts = [
            each if isinstance(each, str) else each[0]["text"] for each in (m["content"] for m in body["messages"])
        ]
        notes = len(re.findall(r"^\d+\. [\d.]+ s ", "".join(texts), re.MULTILINE))
        again = "caption tool" in "".join(texts)
        return {
            "Description": {"caption": "a part", "confidence": 80},
            "Summary": {"summary": "A film."},
            "Plan": {"reasoning": "", "steps": ["look"], "action": {**CAPTION, "video": None, "end_s": None, **EMPTY}},
            "Assessment": {
                "reasoning": "",
                "option": "A",
                "answer": None,
                "evidence": [notes],
                "confidence": 5 if again else 2,
            },
        }[kind]

    events: list[Event] = []

    async def ask_over_wire(base_url: str) -> Answer:
        async with OpenAIModel(Role(model="tester", base_url=base_url, attempts=1, timeout_s=1.0)) as model:
            return await ask(QUESTION, environment_of(library), model, agent="videoagent2", on_event=events.append)

    with ChatServer(said) as server:
        answer = asyncio.run(ask_over_wire(server.base_url))
        assert server.problems == []
    return answer, next(each for each in acted(events) if each.action == "caption")


EMPTY = {"box": None, "label": None}
SORRY = {"captions": [{"frame": 1, "clauses": [{"text": "I'm sorry, I can't describe people.", "confidence": 0.9}]}]}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (refusing("I will not look at this."), "no reply that could be read"),
        (Behaviour(content="", finish_reason="content_filter"), "no reply that could be read"),
        ("no JSON at all", "no reply that could be read"),
        (SORRY, "no reply that could be read"),
        (failing(400, "The image was rejected by our safety system.", code="content_policy_violation"), "rejected"),
    ],
)
def test_a_look_that_fails_says_so_and_is_no_evidence_and_no_caption(library: Library, reply: Any, why: str) -> None:
    answer, event = look_fails(library, reply)
    (note,) = event.notes
    assert note.failed
    assert note.text.startswith("this look failed and says nothing about the video: ")
    assert why in note.text
    assert why in event.problem
    assert (answer.letter, answer.evidence) == ("A", ())
    stored = library.clips.read(library.video("film").video_id, "tester")
    assert stored
    assert not any("sorry" in row.text or "failed" in row.text for row in stored)


def test_a_look_that_gets_no_reply_in_time_ends_the_run_without_a_note(library: Library) -> None:
    with pytest.raises(ModelUnreachable, match="no reply"):
        look_fails(library, hanging(5.0))


def test_a_failed_look_is_not_remembered_in_a_follow_up(library: Library, tmp_path: Path) -> None:
    script = Script([UNSURE, {**SURE, "evidence": []}])
    path = tmp_path / "trace.jsonl"
    with trace_to(path) as write:
        run(library, lambda each: "?" if isinstance(each, CaptionFrames) else script(each), on_event=write)
    prior = read_prior_evidence(path, environment_of(library))
    assert prior.notes
    assert not any(note.failed for note in prior.notes)
