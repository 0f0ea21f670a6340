"""VideoSeek beside a transcription of its supplement (arXiv 2603.20185): A.2 and Figures 4 to 8.

The constants are the supplement's, but for two that are the published code's: 20 steps, and temperature 1.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kinodex.agent.protocol.question import Question
from kinodex.agent.videos.environment import Environment
from tests.agent.variants.papers.conftest import SPOKEN, WRITTEN
from tests.agent.variants.papers.sent import (
    Conversation,
    Mutation,
    converse,
    middles,
    prompting,
    sampled_at,
    says,
    says_nothing_of,
    without,
)

ALPHA = 2
"""A.2: 4 on LVBench, whose videos last an hour, 2 on the others."""
STEPS, TEMPERATURE = 20, 1.0
FILM_S = 180.0
QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
TRAJECTORY: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("Nothing is known yet: an overview.", {"tool": "overview"}, "a scene"),
    ("It may be early.", {"tool": "skim", "start_s": 30.0, "end_s": 90.0, "query": "Is there a kite?"}, "a kite"),
    ("Read its colour.", {"tool": "focus", "start_s": 70.0, "end_s": 76.0, "query": "Which colour?"}, "It is red."),
    ("70 s: it is red. That is enough.", {"tool": "answer", "sufficient": True, "option": "B", "evidence": [1]}, ""),
)
"""Thought, action and observation of each step (Figure 7, State)."""
LOOKS = {"overview": "OverviewVideo", "skim": "SkimRange", "focus": "FocusClip"}


def frames_of(call: Mapping[str, Any]) -> list[float]:
    """A.2 and Figures 7 and 8: 16 alpha of all, 4 alpha of a range, one a second of a clip of 4 alpha s at most."""
    if call["tool"] == "overview":
        return middles(0.0, FILM_S, 16 * ALPHA)
    start_s, end_s = call["start_s"], call["end_s"]
    assert call["tool"] == "skim" or end_s - start_s <= 4 * ALPHA
    return middles(start_s, end_s, 4 * ALPHA if call["tool"] == "skim" else round(end_s - start_s))


def compare(found: Conversation, trajectory: Sequence[tuple[str, Mapping[str, Any], str]]) -> None:
    kinds = [kind for _, call, _ in trajectory for kind in ("Act", LOOKS.get(str(call["tool"]), "")) if kind]
    assert [each.kind for each in found.sent] == kinds, "one request a step, and one for its tool"
    assert {each.temperature for each in found.sent} == {TEMPERATURE}
    for each in found.sent:
        says_nothing_of(each.prompt, WRITTEN)
    for step, sent in enumerate(found.of("Act"), 1):
        assert sent.frames_s == ()
        system_instruction(sent.prompt)
        assert [who for who, _ in sent.turns] == ["user", *["assistant", "tool", "user"] * (step - 1)]
        for number, (_, text) in enumerate(sent.turns[::3], 1):  # Figure 5
            says(
                text,
                f"Step {number} of {STEPS}",
                "what is known so far",
                "plan the next action",
                "do not write what it",
            )
        for (thought, call, observed), (_, said), (_, result) in zip(
            trajectory, sent.turns[1::3], sent.turns[2::3], strict=False
        ):
            made = json.loads(said)
            assert {name: made[name] for name in call} == dict(call) and made["reasoning"] == thought
            says(result, observed)
            says_nothing_of(result, r"\bstep\b")
    looks = [each for each in found.sent if each.kind != "Act"]
    for (_, call, _), sent in zip(trajectory, looks, strict=False):
        assert list(sent.frames_s) == frames_of(call), call["tool"]
        start_s, end_s = call.get("start_s", 0.0), call.get("end_s", FILM_S)
        inside = {text: from_s < end_s and to_s > start_s for from_s, to_s, text in SPOKEN}
        says(sent.prompt, *(text.rstrip("!.") for text, is_in in inside.items() if is_in))
        says_nothing_of(sent.prompt, *(text for text, is_in in inside.items() if not is_in), QUESTION.text)
        tool_prompt(call, sent.prompt)


def system_instruction(prompt: str) -> None:
    """Figures 4, 7 and 8."""
    says(prompt, "careful human watcher", "order", QUESTION.text, "A. blue B. red", f"at most {STEPS} steps")
    says(prompt, *(text.rstrip("!.") for _, _, text in SPOKEN))
    overview, part = 16 * ALPHA, 4 * ALPHA
    says(prompt, f"{overview} frames", f"at least {part} s, by {part} frames", f"at most {part} s, one frame a second")
    says(prompt, "tentative: verify them with focus", "only when you start from nothing")
    says(prompt, "list the evidence with its times for each option", "never guess", "uncertain observation")
    says(prompt, "step by step", "name the gaps", "do not invent observations", "order and causes")
    says(prompt, "do not state the answer while you think", "call one tool only", "call more tools")
    says(prompt, "in the last step you must give the answer")


def tool_prompt(call: Mapping[str, Any], prompt: str) -> None:
    """Figure 6."""
    if call["tool"] == "overview":
        says(prompt, "spread evenly", "every frame by its number", "about 50 words")
    elif call["tool"] == "skim":
        says(prompt, call["query"].rstrip("?"), "about 25 words", "about 50 words more", "do not draw the conclusion")
    else:
        says(prompt, call["query"].rstrip("?"), "answer from this clip", "nothing in the clip has to do with it")


def described(request: Any) -> Any:
    said = "a scene" if type(request).__name__ == "OverviewVideo" else "a kite"
    return {
        "frames": [
            {"frame": number, "description": said, "relevant": None} for number, _ in enumerate(request.frames, 1)
        ]
    }


def run(told: Environment, **settings: Any) -> Conversation:
    acts = [{**call, "reasoning": thought} for thought, call, _ in TRAJECTORY]
    found = {"found": True, "answer": "It is red.", "frames": [1]}
    replies: dict[str, list[Any]] = {
        "Act": acts,
        "OverviewVideo": [described],
        "SkimRange": [described],
        "FocusClip": [found],
    }
    return converse(told, "videoseek", QUESTION, replies, **settings)


def test_it_is_the_loop_of_the_supplement(told: Environment) -> None:
    found = run(told)
    compare(found, TRAJECTORY)
    assert (found.answer.status, found.answer.option, found.answer.rounds) == ("answered", 1, len(TRAJECTORY))


MUTATIONS = (
    Mutation("alpha is 1", {"alpha": 1}),
    Mutation("alpha is 4 for a short video", {"alpha": 4}),
    Mutation("10 steps", {"rounds": 10}),
    Mutation("no subtitles", {"subtitles": False}),
    *(sampled_at(0.9, kind) for kind in ("Act", *LOOKS.values())),
    *(prompting(f"{kind}: answer at once", kind) for kind in ("Act", *LOOKS.values())),
    prompting("thoughts are capped", "Act", "Reason in at most eight sentences."),
    prompting("text on screen is read", "SkimRange", WRITTEN),
    prompting("a tool knows the question", "FocusClip", QUESTION.text),
    prompting("focus answers in few words", "FocusClip", "Answer in few words."),
    without("it may guess", "Act", "Never guess"),
    without("it need not list evidence", "Act", "list the evidence with its times for each option"),
    without("the thought may hold the answer", "Act", "Do not state the answer while you think"),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_mistake_is_caught(told: Environment, mutation: Mutation) -> None:
    with pytest.raises(AssertionError):
        compare(mutation.of(run(told, **mutation.settings)), TRAJECTORY)
