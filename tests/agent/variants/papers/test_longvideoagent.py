"""LongVideoAgent beside a transcription of its paper (arXiv 2512.20618): Algorithm 1, sections 3.1 and 4.3, Table 1.

The constants are the paper's, but for two: it does not say how many frames of a clip the vision agent sees, nor the
temperatures outside of training. Both are the published code's: 15 frames, 0.6 for the models that reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.protocol.question import Question
from kinodex.agent.videos.environment import Environment
from tests.agent.variants.papers.conftest import SPOKEN, WRITTEN
from tests.agent.variants.papers.sent import (
    TO_THE_LETTER,
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

K = 5
FRAMES = 15
TEMPERATURES = {"ChooseAction": 0.6, "AnswerNow": 0.6, "LocateClips": 0.6, "ReadFrames": 0.0}
CLIPS = ((0.0, 60.0), (60.0, 120.0), (120.0, 180.0))
QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
Turn = tuple[str, Any]
"""What the master says, and what the agent that it asks replies: an observation, the number of a clip, or nothing."""
ANSWERED: tuple[Turn, ...] = (
    ("<think>Where are they?</think><visual_query>Which place is this?</visual_query>", "A beach in the morning."),
    ("<think>Where is it said?</think><request_grounding>the kite, I wish</request_grounding>", 2),
    ("It may be red.", None),
    ("<visual_query>What colour has the kite?</visual_query>", "A red kite."),
    ("<think>So it is.</think><answer>B.</answer>", None),
)
UNANSWERED: tuple[Turn, ...] = (
    *ANSWERED[:4],
    ("<request_grounding></request_grounding>", 3),
)


def algorithm_1(turns: Sequence[Turn]) -> Iterator[tuple[str, Any]]:
    """The rollout y before each generation, the query and the range of each look, and each request for grounding."""
    rollout: list[tuple[str, str]] = []
    clip = (CLIPS[0][0], CLIPS[-1][1])  # V
    for said, result in turns[:K]:  # line 3
        yield "ChooseAction", list(rollout)  # line 6
        if "</visual_query>" in said:  # lines 13 to 16
            yield "ReadFrames", (said.split("<visual_query>")[1].split("</visual_query>")[0], clip)
            rollout.append((said, result))
        elif "</request_grounding>" in said:  # lines 17 to 19
            yield "LocateClips", None
            clip = CLIPS[result - 1]
            subtitles = " ".join(text for start_s, _, text in SPOKEN if clip[0] <= start_s < clip[1])
            rollout.append((said, f"<clip_{result}>.*{subtitles}"))
        elif "</answer>" in said:  # lines 20 to 23
            return
        else:  # line 25
            rollout.append((said, "not a correct action.*</visual_query>, </request_grounding> or </answer>"))


def compare(found: Conversation, turns: Sequence[Turn]) -> None:
    steps = list(algorithm_1(turns))
    assert [each.kind for each in found.sent] == [kind for kind, _ in steps], "one request for each of its steps"
    for sent, (kind, given) in zip(found.sent, steps, strict=True):
        assert sent.temperature == TEMPERATURES[kind], kind
        says_nothing_of(sent.prompt, WRITTEN)
        if kind == "ChooseAction":
            assert sent.frames_s == (), "no raw images are passed to the master"
            assert [speaker for speaker, _ in sent.turns] == ["assistant", "user"] * len(given)
            assert [text for _, text in sent.turns[::2]] == [said for said, _ in given]
            for (_, text), (_, result) in zip(sent.turns[1::2], given, strict=True):
                says(text, result)
                says_nothing_of(text, r"\bturn\b", r"\bstep\b")
            master_prompt(sent.prompt)
        elif kind == "LocateClips":  # the question and the subtitles, and nothing of the master
            says(sent.prompt, QUESTION.text, *(f"<clip_{number}>" for number in (1, 2, 3)), *lines())
            says_nothing_of(sent.prompt, "I wish", "located before", "A beach", "none: the list")
        else:
            query, span = given
            assert list(sent.frames_s) == middles(span[0], span[1], FRAMES), (
                "frames of the localized segment, of V before"
            )
            says(sent.prompt, query.rstrip("?"), "text that can be read", "only what is visible")
            says_nothing_of(sent.prompt, "blue")


def lines() -> list[str]:
    return [text.rstrip(".!") for _, _, text in SPOKEN]


def master_prompt(prompt: str) -> None:
    """Table 1."""
    says(prompt, "grounding agent", "vision agent", "concise and direct", QUESTION.text, "A. blue B. red", *lines())
    says(prompt, "exactly one of these actions", "<visual_query>", "<request_grounding>", "<answer>")
    says(prompt, "conflicts with the question", "present clip", "evidence is sufficient")  # A, B and C
    says(prompt, "sparing", "never make up what the pictures show", "have one located before")  # guidelines 1 to 3
    says(prompt, "step by step", "<think>")
    says_nothing_of(prompt, r"\d turns", r"turns? \d", "last turn")


def replies(turns: Sequence[Turn]) -> dict[str, list[Any]]:
    numbers = [[result] for _, result in turns if isinstance(result, int)]
    seen = [result for _, result in turns if isinstance(result, str)]
    return {
        "ChooseAction": [said for said, _ in turns],
        "LocateClips": [{"clips": each} for each in numbers],
        "ReadFrames": [{"observation": each} for each in seen],
        "AnswerNow": ["<answer>B</answer>"] * 2,
    }


def run(told: Environment, turns: Sequence[Turn], rules: AnswerRules = TO_THE_LETTER, **settings: Any) -> Conversation:
    return converse(told, "longvideoagent", QUESTION, replies([*turns, *turns]), rules, **settings)


def test_it_is_algorithm_1(told: Environment) -> None:
    answered = run(told, ANSWERED)
    compare(answered, ANSWERED)
    assert (answered.answer.status, answered.answer.option, answered.answer.rounds) == ("answered", 1, K)
    unanswered = run(told, UNANSWERED)
    compare(unanswered, UNANSWERED)
    assert (unanswered.answer.option, unanswered.answer.reason) == (None, "rounds"), "line 29"


def test_an_option_has_to_be_chosen_as_in_the_evaluation_so_turn_k_is_the_answer(told: Environment) -> None:
    chosen = run(told, UNANSWERED, USUAL)
    assert [each.kind for each in chosen.sent][-2:] == ["ReadFrames", "AnswerNow"]
    assert (chosen.answer.option, len(chosen.of("ChooseAction"))) == (1, K - 1)
    says_nothing_of(chosen.sent[0].prompt, "insufficient")


MUTATIONS = (
    Mutation("3 frames a look", {"frames": 3}),
    Mutation("K is 4", {"rounds": 4}),
    Mutation("clips of 30 s", {"clip_s": 30.0}),
    Mutation("no vision agent", {"vision": False}),
    *(sampled_at(0.9, kind) for kind in ("ChooseAction", "LocateClips", "ReadFrames")),
    *(prompting(f"{kind}: answer at once", kind) for kind in ("ChooseAction", "LocateClips", "ReadFrames")),
    prompting("the turn is counted", "ChooseAction", "This is turn 2 of 5."),
    prompting("the master is told K", "ChooseAction", "You have 5 turns."),
    prompting("thoughts are capped", "ChooseAction", "Think in one to three short sentences."),
    prompting("the grounding agent hears the wish", "LocateClips", "Asked for: the kite, I wish"),
    prompting("the grounding agent hears of visits", "LocateClips", "Located before: <clip_2>."),
    prompting("text on screen is read", "ChooseAction", f'on screen: "{WRITTEN}"'),
    prompting("the vision agent knows the options", "ReadFrames", "A. blue B. red"),
    without("the master does not think", "ChooseAction", "step by step"),
    without("the master is not told to regard conflicts", "ChooseAction", "conflicts with the question"),
    without("a line is left out", "ChooseAction", "It is gone."),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_mistake_is_caught(told: Environment, mutation: Mutation) -> None:
    with pytest.raises(AssertionError):
        compare(mutation.of(run(told, ANSWERED, **mutation.settings)), ANSWERED)
