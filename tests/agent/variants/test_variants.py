"""Agents by name, their settings, and the meanings of these."""

from __future__ import annotations

from dataclasses import asdict, dataclass, make_dataclass, replace
from typing import Any, Literal

import pytest

from kinodex.agent.catalogue import VARIANTS, find_variant
from kinodex.agent.errors import BadSettings, NeedsLanguage, NeedsPictures, UnknownAgent
from kinodex.agent.prompts.rendering import render
from kinodex.agent.similarity.model import SimilarityModel
from kinodex.agent.traces.trace import Record
from kinodex.agent.variants.baselines.uniform import UNIFORM
from kinodex.agent.variants.eea.agent import EEAParameters
from kinodex.agent.variants.settings import describe_parameters, list_choices, with_settings
from kinodex.agent.variants.videoagent2.requests import Assess
from kinodex.agent.variants.words import joined, quoted, span
from kinodex.index.rows import SegmentRow, SpeechRow
from kinodex.web.step_words import action_words, step_words
from tests.support.libraries.agent_library import Blind, ScriptedModel, environment_of, film, make_library
from tests.support.libraries.random_library import add_stage, caption, detection
from tests.support.runs.kite_runs import asked, by_example
from tests.support.screen_text.lines import Line, add_screen_text


def test_agents_refuse_at_once_a_model_without_words_or_a_video_without_pictures(kites, words_library):
    looking = [each for each in VARIANTS if each.needs_pictures]
    assert {each.name for each in looking} == {"eea", "vca", "videoseek"}
    told = environment_of(words_library, "told")
    for variant in looking:
        with pytest.raises(NeedsPictures, match=f"the agent {variant.name} looks at frames.*'told'.*videotree"):
            asked(told, lambda request: pytest.fail("it was asked"), variant.name)
    for name in [each.name for each in VARIANTS if each.needs_language]:
        events: list[object] = []
        with pytest.raises(NeedsLanguage, match=f"the agent {name} reasons in words"):
            asked(kites, SimilarityModel(kites), name, on_event=events.append)
        assert events == [], name
    with pytest.raises(UnknownAgent, match="give it another name"):
        find_variant(replace(UNIFORM, line="another"))


def test_defaults_are_those_of_the_papers() -> None:
    long = {"eea": {"frames": 6, "anchor_frames": 3, "memory": 16}}
    long |= {"vca": {"frames": 6, "memory": 16}, "videoagent": {"first_frames": 15}}
    short = {"eea": {"frames": 4, "anchor_frames": 3, "memory": 8}}
    short |= {"vca": {"frames": 4, "memory": 8}, "videoagent": {"first_frames": 5}}
    for duration_s, expected in ((3600.0, long), (300.0, long), (299.0, short)):
        for name, values in expected.items():
            parameters = asdict(find_variant(name).parameters(duration_s))
            assert parameters == parameters | values, (name, duration_s)


MARKS = {"speech": "marzipan", "screen_text": "velvet", "captions": "granite", "detections": "walrus"}
"""By the kind of a line a word that no other line of the film holds."""


@pytest.mark.parametrize("variant", [each for each in VARIANTS if each.roles], ids=lambda each: each.name)
def test_an_agent_reads_the_kinds_of_lines_that_it_names_and_no_others(variant, tmp_path):
    library = make_library(tmp_path / "marked", {"film": film(1, 200)})
    video_id = library.video("film").video_id
    library.writer.add_speech({video_id: [SpeechRow(video_id, 0.0, 200.0, MARKS["speech"], "sidecar")]})
    add_screen_text(library, video_id, [Line(0.0, 200.0, MARKS["screen_text"])])
    spans = [SegmentRow(video_id, 0, 0.0, 200.0, "shot")]
    library.writer.add_segments({video_id: spans})
    add_stage(library, "captions", "m", {video_id: [caption(0, MARKS["captions"])]})
    add_stage(library, "detections", "m", {video_id: [detection(at, MARKS["detections"], 0.9) for at in range(200)]})
    sighted = reads(variant.name, library, ScriptedModel(unsure))
    blind = reads(variant.name, library, Blind(unsure)) if variant.prefers_pictures else set()
    found = {"videoagent": {"speech", "screen_text", "captions"}}.get(variant.name, set())  # they only lead to frames
    assert sighted | blind | found == {*variant.uses}


def unsure(request):
    """As by example, but VideoAgent2 is not sure, and plans."""
    return {**by_example(request), "confidence": 2} if isinstance(request, Assess) else by_example(request)


def reads(name, library, model):
    """The kinds of lines of which a word is in a request."""
    found = asked(environment_of(library), model, name, rounds=3)
    requests = found.model.requests
    texts = [text for each in requests for text in (render(each), *(turn.text for turn in each.turns))]
    return {kind for kind, word in MARKS.items() if any(word in text for text in texts)}


@dataclass(frozen=True)
class Common:
    """Parameters of two agents."""

    frames: int = 4
    """Frames of a round,
    over two lines."""
    rounds: int = 1


@dataclass(frozen=True)
class Own(Common):
    reward: Literal["model", "none"] = "model"
    """Who scores."""
    rounds: int = 2
    """Rounds at most."""


def test_parameters_are_described_by_the_docstrings_under_them():
    assert describe_parameters(Common) == {"frames": "Frames of a round, over two lines."}
    assert describe_parameters(Own) == {
        "frames": "Frames of a round, over two lines.",
        "reward": "Who scores.",
        "rounds": "Rounds at most.",
    }
    assert describe_parameters(make_dataclass("Made", [("frames", int, 3)])) == {}, "a class without a source"
    assert list_choices(Own) == {"reward": ("model", "none")}


WRONG: dict[str, list[dict[str, Any]]] = {
    "eea": [{"frames": 0}, {"anchor_frames": 7}, {"memory": 0}, {"clip_s": 0.0}],
    "kino": [{"first": 0}, {"whole": 0}, {"sharpness": -1.0}],
    "vca": [{"frames": 0}, {"memory": 0}, {"rounds": 0}],
    "longvideoagent": [{"window": 4}, {"window": 0}, {"rounds": 0}, {"frames": 0}, {"clips": 0}, {"clip_s": -1.0}],
    "videoseek": [{"alpha": 0}, {"videos": 0}, {"rounds": 0}],
    "videoagent2": [{"enough": 6}, {"segment_s": 0}, {"frames": 0}, {"rounds": 0}],
    "videoagent": [{"first_frames": 0}, {"retrieved": 0}, {"rounds": 0}, {"videos": 0}],
    "videotree": [{"breadth": 0}, {"branches": 1}, {"depth": 0}, {"highly_relevant": 0}, {"max_breadth": 4}],
    "uniform": [{"frames": 0}],
}


def test_parameters_are_set_by_name_and_refused_where_they_make_no_sense():
    defaults = EEAParameters()
    assert with_settings(defaults, {"frames": "4", "query_update": "false", "clip_s": "2.5"}) == EEAParameters(
        frames=4, query_update=False, clip_s=2.5
    )
    for settings, wrong in (
        ({"frame": "4"}, "no parameter 'frame'; did you mean 'frames'"),
        ({"foo": "3"}, "no parameter 'foo'; the parameters are "),
        ({"frames": "many"}, "got frames='many'; Input should be a valid integer"),
        ({"anchor_frames": "9"}, "got anchor_frames=9 of frames=6"),
        ({"memory": "0"}, "got memory=0; it is at least 1"),
    ):
        with pytest.raises(BadSettings, match=wrong):
            with_settings(defaults, settings)
    for name, each in WRONG.items():
        for settings in each:
            [(field, value)] = settings.items()
            with pytest.raises(BadSettings, match=f"{field}={value}"):
                with_settings(find_variant(name).parameters(3600.0), settings)


# Steps of agents in plain words, as each agent brings them for the page.

RANGE = {"start_s": 10.0, "end_s": 75.5}
NOTE = {"video_id": "a", "start_s": 10.0, "end_s": 20.0}


def acted(action: str, problem: str = "", notes: tuple[Record, ...] = (), /, **arguments: object) -> Record:
    return {"event": "Acted", "action": action, "arguments": arguments, "problem": problem, "notes": list(notes)}


STEPS = [
    ("videoseek", acted("skim", query="a dog", video=None, **RANGE), "skimmed 0:10.0 to 1:15.5 for “a dog”"),
    ("videoseek", acted("focus", query="a dog", **RANGE), "watched 0:10.0 to 1:15.5 closely for “a dog”"),
    ("videoseek", acted("skim", "the range is too short", query="a dog", **RANGE), ", which did not work"),
    ("videoseek", acted("answer", sufficient=True), ""),
    ("vca", acted("look", video="a", times_s=[3.0, 1.0, 9.0]), "chose frames from 0:01.0 to 0:09.0"),
    ("videoagent2", acted("detect", label="dog", **RANGE), "looked for “dog” in 0:10.0 to 1:15.5"),
    ("videoagent2", acted("zoom_caption", start_s=5.0, end_s=None), "zoomed in at 0:05.0 and had it put into words"),
    ("videoagent2", acted("track", label=None, **RANGE), "followed a thing from 0:10.0 to 1:15.5"),
    ("longvideoagent", acted("request_grounding", "", (NOTE,), query="keys"), "which led to 0:10.0 to 0:20.0"),
    ("longvideoagent", acted("malformed"), "got no step from its model that could be taken"),
    ("videoagent", acted("retrieve", frames=["segment 2: a dog", "segment 3: a cat"]), "for “a dog” and “a cat”"),
    ("videotree", acted("deepen", frames=1), "put 1 more frame like the relevant ones into words"),
    (
        "eea",
        acted("verify", answer="x", second_look="x"),
        "looked again at the evidence alone, which led to the answer",
    ),
    ("eea", acted("verify", "it does not", answer="x"), "which did not lead to the answer"),
    ("kino", acted("chapters", parts=4, listed=4), "read the list of scenes and chapters"),
    ("kino", acted("chapters", "of 'a' and of 1 more", parts=0, listed=0), "found no scenes or chapters to read"),
    ("mine", acted("read_map", place="x"), "took the step “read map”"),
    ("mine", {**acted("read_map", place="x"), "words": "read the map of x"}, "read the map of x"),
]


def test_a_step_is_said_in_plain_words_and_names_the_video_where_there_are_several():
    for agent, step, expected in STEPS:
        assert action_words(step, step_words(agent), {}).endswith(expected), (agent, step)
    titles, words = {"abcd" * 8: "sintel", "ef" * 16: "caminandes"}, step_words("videoseek")
    assert action_words(acted("overview", video="abcdabcd"), words, titles) == "looked over the whole video of “sintel”"
    assert action_words(acted("overview", video=None), words, titles) == "looked over the whole video"


def test_lists_texts_and_times_are_as_a_sentence_holds_them():
    assert quoted(["a", "b", "c", "d", "e"]) == "“a”, “b”, “c”, and 2 more"
    assert quoted(["x" * 200]) == f"“{'x' * 79}…”"
    assert [joined("abc"[:count]) for count in range(4)] == ["", "a", "a and b", "a, b, and c"]
    assert [span({"start_s": 5.0, "end_s": None}), span({"start_s": None})] == ["0:05.0", ""]
