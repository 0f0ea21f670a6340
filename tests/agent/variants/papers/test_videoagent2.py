"""VideoAgent2 beside a transcription of its paper (arXiv 2504.04471): Algorithm 1, section 4.1 and appendix B.

The constants are the paper's, but for three that it does not give: a tool looks at 8 frames of a long range, captions
and summary have temperature 0, all else 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.protocol.question import Question
from kinodex.agent.videos.environment import Environment
from kinodex.jobs.unwritten_library import without_writing
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

SEGMENT_S = 4  # n
THRESHOLD = 5  # cf_thr
T = 5
MOST_FRAMES = 8
TEMPERATURES = {"DescribeSegment": 0.0, "Summarize": 0.0}
TEMPERATURE = 0.5
FILM_S = 180
QUESTION = Question("What colour is the kite over the desert?", ("blue", "red"))
SUMMARY = "A film of boats."
CALLS = ((40.0, 44.0), (0.0, 60.0), (70.0, 73.0), (100.0, 160.0))
"""The ranges that the tool calls of the plans caption, one after the other."""
LEGEND = ("#C", "camera wearer", "#O", "somebody else")


def caption(start_s: float) -> str:
    return f"#C C sees part {start_s:.0f}"


def found_in(start_s: float) -> str:
    return f"seen at {start_s:.0f}"


def algorithm_1(confidences: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """The requests after lines 1 and 2, with the bank that each has, its plan, or the frames of its look."""
    bank = [caption(start_s) for start_s in range(0, FILM_S, SEGMENT_S)]
    plan: list[str] = []
    for t, confidence in enumerate(confidences, 1):  # lines 3 to 16
        yield "Assess", list(bank)
        if confidence >= THRESHOLD or t == T:
            return
        yield "AdjustPlan" if plan else "CreatePlan", (list(bank), list(plan))
        start_s, end_s = CALLS[t - 1]
        plan = [f"look at {start_s:.0f}"]
        yield "CaptionFrames", middles(start_s, end_s, min(MOST_FRAMES, round(end_s - start_s)))
        bank.append(found_in(start_s))


def compare(found: Conversation, confidences: Sequence[int]) -> None:
    first = [each for each in found.sent if each.kind in TEMPERATURES]
    described = found.of("DescribeSegment")
    parts = sorted(tuple(each.frames_s) for each in described)
    assert parts == [tuple(map(float, range(s, s + SEGMENT_S))) for s in range(0, FILM_S, SEGMENT_S)], "1 fps, n s"
    assert list(found.sent[: len(first)]) == first and first[-1].kind == "Summarize"
    says(first[-1].prompt, "coherent description of the whole video", "step by step", "time and in space", *LEGEND)
    steps = list(algorithm_1(confidences))
    rest = found.sent[len(first) :]
    assert [each.kind for each in rest] == [kind for kind, _ in steps]
    for sent in found.sent:
        assert sent.temperature == TEMPERATURES.get(sent.kind, TEMPERATURE), sent.kind
        says_nothing_of(sent.prompt, WRITTEN, *(text for _, _, text in SPOKEN))
    for sent, (kind, given) in zip(rest, steps, strict=True):
        if kind == "CaptionFrames":
            assert list(sent.frames_s) == given
            says(sent.prompt, "for every clause give a confidence from 0 to 1")
            continue
        bank, plan = given if kind != "Assess" else (given, [])
        assert sent.frames_s == (), "the model reads"
        says(sent.prompt, *bank, f"Summary: {SUMMARY}", QUESTION.text, *LEGEND)
        says(sent.prompt, *(f"{text} \\(confidence 0.90\\)" for text in bank if text.startswith("seen")), *plan)
        says(sent.prompt, "step by step")
        (answer_prompt if kind == "Assess" else plan_prompt)(sent.prompt)
        if kind == "AdjustPlan":
            says(sent.prompt, "not enough", "how sure that is by its confidences", "change the plan")


def answer_prompt(prompt: str) -> None:
    """The prompt of the answer: nothing that lowers a confidence is beside the paper's own words."""
    says(prompt, "can you answer the question", "not enough information", "confidence is 0", "from 1 to 5")
    says_nothing_of(
        prompt, r"attempt \d", r"of at most \d", "certain", "than a guess", "nothing more", "found out between"
    )


def plan_prompt(prompt: str) -> None:
    """Five tools, called one at a time, more than once."""
    says(
        prompt,
        '"caption"',
        '"detect"',
        '"zoom_caption"',
        '"zoom_detect"',
        '"track"',
        "several times, one call at a time",
    )
    says(prompt, "with a confidence from 0 to 1 for each clause", "tool call of (its|the) first")
    says_nothing_of(prompt, r"\d times? more")


def run(
    told: Environment, confidences: Sequence[int], rules: AnswerRules = TO_THE_LETTER, **settings: Any
) -> Conversation:
    def assessed(sure: int) -> dict[str, Any]:
        return {"reasoning": "so", "option": "AB"[sure % 2] if sure else None, "confidence": sure}

    def planned(span: tuple[float, float]) -> dict[str, Any]:
        call = {"tool": "caption", "start_s": span[0], "end_s": span[1]}
        return {"reasoning": "so", "steps": [f"look at {span[0]:.0f}"], "action": call}

    def seen(request: Any) -> Any:
        place = next(start_s for start_s, end_s in CALLS if start_s <= request.frames[0].time_s < end_s)
        clauses = [{"text": found_in(place), "confidence": 0.9}]
        return {"captions": [{"frame": number, "clauses": clauses} for number, _ in enumerate(request.frames, 1)]}

    replies: dict[str, list[Any]] = {
        "DescribeSegment": [lambda request: {"caption": caption(request.segment.start_s), "confidence": 80}] * 200,
        "Summarize": [{"reasoning": "so", "summary": SUMMARY}],
        "Assess": [*map(assessed, confidences)] * 2,
        "CreatePlan": [planned(CALLS[0])],
        "AdjustPlan": [*map(planned, CALLS[1:])],
        "CaptionFrames": [seen] * len(CALLS),
        "AnswerBank": [{"option": "A", "evidence": []}],
    }
    return converse(without_writing(told), "videoagent2", QUESTION, replies, rules, **settings)


@pytest.mark.parametrize("confidences", [(5,), (2, 3, 5), (2, 3, 1, 2, 0), (1, 2, 3, 3, 4)])
def test_it_is_algorithm_1(told: Environment, confidences: Sequence[int]) -> None:
    found = run(told, confidences)
    compare(found, confidences)
    last = confidences[-1]  # line 17: A* = A_t, whatever was answered before
    assert found.answer.option == ("AB".index("AB"[last % 2]) if last else None)


def test_an_option_has_to_be_chosen_as_in_the_evaluation_so_the_surest_answer_before_counts(told: Environment) -> None:
    assert run(told, (2, 3, 1, 2, 0), USUAL).answer.option == 1


USED = (2, 3, 1, 2, 4)
MUTATIONS = (
    Mutation("1 frame a look", {"frames": 1}),
    Mutation("segments of 8 s", {"segment_s": 8.0}),
    Mutation("T is 4", {"rounds": 4}),
    Mutation("a threshold of 3", {"enough": 3.0}),
    Mutation("tools without confidences", {"tool_confidence": False}),
    Mutation("the plan stays", {"adjust_plan": False}),
    Mutation("no plan", {"plan": False}),
    *(sampled_at(0.9, kind) for kind in ("DescribeSegment", "Summarize", "Assess", "CreatePlan", "AdjustPlan")),
    *(prompting(f"{kind}: answer at once", kind) for kind in ("Assess", "CreatePlan", "AdjustPlan", "Summarize")),
    prompting("thoughts are capped", "Assess", "Reason in one to three short sentences."),
    prompting("the summary is capped", "Summarize", "Sum up in at most eight plain sentences."),
    prompting("attempts are counted", "Assess", "This is attempt 1 of at most 5."),
    prompting("5 is certain", "Assess", "5 means certain, nothing more to look up."),
    prompting("subtitles are read", "Assess", SPOKEN[0][2]),
    without("no legend in the summary", "Summarize", "the camera wearer"),
    without("no reasoning before a plan", "CreatePlan", "step by step"),
    without("confidences do not guide the plan", "AdjustPlan", "how sure that is by its confidences"),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_mistake_is_caught(told: Environment, mutation: Mutation) -> None:
    with pytest.raises(AssertionError):
        compare(mutation.of(run(told, USED, **mutation.settings)), USED)
