"""Steps of agents in plain words, as each agent brings them for the page."""

from __future__ import annotations

from kinodex.agent.trace import Record
from kinodex.agent.variants.base import clock, joined, quoted, span
from kinodex.web.sentences import action_words, step_words

RANGE = {"start_s": 10.0, "end_s": 75.5}
NOTE = {"video_id": "a", "start_s": 10.0, "end_s": 20.0}


def acted(action: str, problem: str = "", notes: tuple[Record, ...] = (), /, **arguments: object) -> Record:
    return {"event": "Acted", "action": action, "arguments": arguments, "problem": problem, "notes": list(notes)}


STEPS = [
    ("videoseek", acted("skim", query="a dog", video=None, **RANGE), "skimmed 0:10 to 1:15.5 for “a dog”"),
    ("videoseek", acted("focus", query="a dog", **RANGE), "watched 0:10 to 1:15.5 closely for “a dog”"),
    ("videoseek", acted("skim", "the range is too short", query="a dog", **RANGE), ", which did not work"),
    ("videoseek", acted("answer", sufficient=True), ""),
    ("vca", acted("look", video="a", times_s=[3.0, 1.0, 9.0]), "chose frames from 0:01 to 0:09"),
    ("videoagent2", acted("detect", label="dog", **RANGE), "looked for “dog” in 0:10 to 1:15.5"),
    ("videoagent2", acted("zoom_caption", start_s=5.0, end_s=None), "zoomed in at 0:05 and had it put into words"),
    ("videoagent2", acted("track", label=None, **RANGE), "followed a thing from 0:10 to 1:15.5"),
    ("longvideoagent", acted("request_grounding", "", (NOTE,), query="keys"), "which led to 0:10 to 0:20"),
    ("longvideoagent", acted("malformed"), "got no step from its model that could be taken"),
    ("videoagent", acted("retrieve", frames=["segment 2: a dog", "segment 3: a cat"]), "for “a dog” and “a cat”"),
    ("videotree", acted("deepen", frames=1), "put 1 more frame like the relevant ones into words"),
    (
        "eea",
        acted("verify", answer="x", second_look="x"),
        "looked again at the evidence alone, which led to the answer",
    ),
    ("eea", acted("verify", "it does not", answer="x"), "which did not lead to the answer"),
    ("vca", acted("chapters", parts=4, listed=4), "read the list of scenes and chapters"),
    ("vca", acted("chapters", "of 'a' and of 1 more", parts=0, listed=0), "found no scenes or chapters to read"),
    ("mine", acted("read_map", place="x"), "took the step “read map”"),
    ("mine", {**acted("read_map", place="x"), "words": "read the map of x"}, "read the map of x"),
]


def test_a_step_is_said_in_plain_words():
    for agent, step, expected in STEPS:
        assert action_words(step, step_words(agent), {}).endswith(expected), (agent, step)


def test_a_video_is_named_where_there_are_several():
    titles, words = {"abcd" * 8: "sintel", "ef" * 16: "caminandes"}, step_words("videoseek")
    assert action_words(acted("overview", video="abcdabcd"), words, titles) == "looked over the whole video of “sintel”"
    assert action_words(acted("overview", video=None), words, titles) == "looked over the whole video"


def test_lists_texts_and_times_are_as_a_sentence_holds_them():
    assert quoted(["a", "b", "c", "d", "e"]) == "“a”, “b”, “c”, and 2 more"
    assert quoted(["x" * 200]) == f"“{'x' * 79}…”"
    assert [joined("abc"[:count]) for count in range(4)] == ["", "a", "a and b", "a, b, and c"]
    assert [clock(each) for each in (0, 75.5, 59.96, 3675)] == ["0:00", "1:15.5", "1:00", "1:01:15"]
    assert [span({"start_s": 5.0, "end_s": None}), span({"start_s": None})] == ["0:05", ""]
