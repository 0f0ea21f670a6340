"""Rounds of recorded traces in plain words, for every agent; and of what those traces do not hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kinodex.agent.traces.trace import Record, read_trace
from kinodex.web.sentences import end_sentence, latest_sentence, round_sentences
from tests.support.archives.read import TRACES, trace_name, unpack

DATA = Path(__file__).parents[2] / "data"
HEADER: Record = {
    "event": "RunStarted",
    "videos": [{"video_id": "a" * 32, "title": "sintel", "start_s": 0.0, "duration_s": 60.0}],
}
SECOND = {"video_id": "b" * 32, "title": "big buck", "start_s": 0.0, "duration_s": 60.0}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> dict[str, list[Record]]:
    """Records of the traces of the archive, by name."""
    folder = unpack(DATA / "recorded.tar.xz", tmp_path_factory.mktemp("archive"))
    return {name: read_trace(folder / f"{name}.jsonl") for name in TRACES}


def sentences(recorded, agent: str) -> list[str]:
    records = recorded[trace_name(agent)]
    return [*round_sentences(records).values(), end_sentence(records)]


def written(*events: Record, header: Record = HEADER) -> list[str]:
    return list(round_sentences([header, *events]).values())


def test_a_tree_search_says_what_it_opened_and_why(recorded):
    assert sentences(recorded, "eea") == [
        "At first it searched for “brown keys in the meadow”.",
        "Round 1: it opened the whole video, looked at 4 frames, and judged 2 of 5 parts likely to hold the answer.",
        "Round 2: it opened 0:14.0 to 0:26.0 because its model chose it, looked at 4 frames, "
        "judged 3 of 5 parts likely to hold the answer, and found enough to answer.",
        "It answered after 2 rounds.",
    ]
    assert sentences(recorded, "vca")[1].startswith(
        "Round 2: it opened 0:12.0 to 0:18.0 because it looked most promising"
    )


def test_agents_with_tools_say_what_they_did(recorded):
    assert sentences(recorded, "longvideoagent")[0] == (
        "Round 1: it searched what is said, which led to 0:00.0 to 0:30.0."
    )
    assert sentences(recorded, "videoseek")[0] == "Round 1: it looked over the whole video and looked at 30 frames."
    assert sentences(recorded, "videoagent")[2:] == [
        "Round 3: it put 5 frames into words and had to answer with what it had.",
        "It ended after 3 rounds, because no further round was allowed: this is its best answer so far.",
    ]
    assert sentences(recorded, "videoagent2")[1] == (
        "Round 1: it did not know yet (confidence 0 of 5), had 0:17.0 to 0:21.0 put into words, and looked at 4 frames."
    )
    assert sentences(recorded, "videotree")[0] == "Round 1: it put 8 frames from all over the video into words."


def test_a_run_has_a_sentence_after_each_of_its_events(recorded):
    for name, records in recorded.items():
        for count in range(1, len(records) + 1):
            latest = latest_sentence(records[:count])
            assert re.fullmatch(r"(At first it |Round \d+: it |It )[^_{}]+\.", latest), (name, latest)
        assert latest == end_sentence(records) != "", name


def exchange(round_no: int, *frame_nos: int, **fields) -> Record:
    frames = [{"video_id": "a" * 32, "frame_no": each} for each in frame_nos]
    held = {"request": "AnswerFrames", "invalid": None}
    return {"event": "Exchanged", "round": round_no, "inputs": {"frames": frames}, **held, **fields}


def test_frames_are_counted_once_and_calls_without_any_are_named():
    assert written(exchange(1, 1, 2, 3), exchange(2, 3, 4), exchange(3)) == [
        "Round 1: it looked at 3 frames.",
        "Round 2: it looked at 1 frame.",
        "Round 3: it asked its model, without looking at a frame.",
    ]
    assert written(exchange(1, invalid="no JSON")) == ["Round 1: it got no reply from its model that could be used."]
    decided = {"event": "Decided", "round": 0, "action": "answer", "segment": None, "forced": False}
    assert written(exchange(0, 1, request="Recall"), decided) == [
        "At first it looked again at the evidence of the questions before, looked at 1 frame, "
        "and found enough to answer."
    ]


def test_of_several_videos_the_title_is_said():
    header = HEADER | {"videos": [*HEADER["videos"], SECOND]}
    whole = {"number": 1, "video_id": "b" * 32, "start_s": 0.0, "end_s": 60.0}
    ranked = {"event": "Ranked", "segments": [whole, whole | {"number": 2, "video_id": "a" * 32}]}
    opened = {"event": "Expanded", "round": 1, "parent": whole, "children": [], "frames": []}
    assert written(ranked, opened, header=header) == [
        "At first it put 2 videos into order.",
        "Round 1: it opened all of “big buck”.",
    ]


def test_a_choice_against_the_scores_is_said_to_be_the_models():
    parts = [{"number": at, "video_id": "a" * 32, "start_s": 30.0 * at, "end_s": 30.0 * at + 30} for at in (0, 1)]
    scores = [{"number": 0, "reward": 80.0, "fused": 0.8}, {"number": 1, "reward": 10.0, "fused": 0.1}]
    scored = {"event": "Scored", "round": 1, "entropy": None, "candidates": scores}
    decided = {"event": "Decided", "round": 1, "action": "explore", "segment": 1, "forced": False}
    opened = {"event": "Expanded", "round": 2, "parent": parts[1], "children": [], "frames": []}
    assert written(scored, decided, opened)[1] == "Round 2: it opened 0:30.0 to 1:00.0 because its model chose it."


def test_an_end_is_said_with_its_reason():
    for status, text, reason, expected in (
        ("answered", "red", "", "It answered after 2 rounds."),
        ("budget_exhausted", "red", "stopped", "because you stopped it: this is its best answer so far."),
        ("budget_exhausted", None, "seconds", "without an answer, because the time was up."),
        ("invalid", None, "it sent no JSON", "no reply of its model could be used."),
    ):
        answer = {"status": status, "text": text, "reason": reason, "rounds": 2}
        assert end_sentence([HEADER, {"event": "Finished", "answer": answer}]).endswith(expected)
