"""Steps of agents with tools, in plain words."""

from __future__ import annotations

import pytest

from kinodex.agent.trace import Record
from kinodex.web.sentences import action_words, quoted

RANGE = {"start_s": 10.0, "end_s": 75.5}
NOTE = {"video_id": "a", "start_s": 10.0, "end_s": 20.0}


def acted(action: str, problem: str = "", notes: tuple[Record, ...] = (), /, **arguments: object) -> Record:
    return {"event": "Acted", "action": action, "arguments": arguments, "problem": problem, "notes": list(notes)}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (acted("skim", query="a dog", video=None, **RANGE), "skimmed 0:10 to 1:15.5 for “a dog”"),
        (acted("focus", query="a dog", **RANGE), "watched 0:10 to 1:15.5 closely for “a dog”"),
        (acted("skim", "the range is too short", query="a dog", **RANGE), ", which did not work"),
        (acted("look", video="a", times_s=[3.0, 1.0, 9.0]), "chose frames from 0:01 to 0:09"),
        (acted("detect", label="dog", **RANGE), "looked for “dog” in 0:10 to 1:15.5"),
        (acted("zoom_caption", start_s=5.0, end_s=None), "zoomed in at 0:05 and had it put into words"),
        (acted("track", label=None, **RANGE), "followed a thing from 0:10 to 1:15.5"),
        (acted("request_grounding", "", (NOTE,), query="keys"), "which led to 0:10 to 0:20"),
        (acted("retrieve", frames=["segment 2: a dog", "segment 3: a cat"]), "went to look for “a dog” and “a cat”"),
        (acted("deepen", frames=1), "put 1 more frame like the relevant ones into words"),
        (acted("verify", answer="x", second_look="x"), "looked again at the evidence alone, which led to the answer"),
        (acted("verify", "it does not", answer="x"), "which did not lead to the answer"),
        (acted("chapters", parts=4, listed=4), "read the list of scenes and chapters"),
        (acted("chapters", "of 'a' and of 1 more", parts=0, listed=0), "found no scenes or chapters to read"),
        (acted("read_map", place="x"), "took the step “read map”"),
        (acted("answer", sufficient=True), ""),
    ],
)
def test_a_step_is_said_in_plain_words(step, expected):
    assert action_words(step, {}).endswith(expected)


def test_a_video_is_named_where_there_are_several():
    titles = {"abcd" * 8: "sintel", "ef" * 16: "caminandes"}
    assert action_words(acted("overview", video="abcdabcd"), titles) == "looked over the whole video of “sintel”"
    assert action_words(acted("overview", video=None), titles) == "looked over the whole video"


def test_a_long_list_and_a_long_text_are_shortened():
    assert quoted(["a", "b", "c", "d", "e"]) == "“a”, “b”, “c”, and 2 more"
    assert quoted(["x" * 200]) == f"“{'x' * 79}…”"
