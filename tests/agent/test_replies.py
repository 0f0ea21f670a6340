"""Schemas of replies: strict, without references, bound by inputs, and values that fit them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.reply_parser import parse_json, parse_reply
from kinodex.agent.models.schema_ladder import reply_schema
from kinodex.agent.prompts.reply_form import reply_line
from kinodex.agent.protocol.request import Request
from kinodex.agent.replies.calls import flat_call
from kinodex.agent.replies.joint import STEP
from kinodex.agent.replies.schema import NULL, bound_schema, exactly, one_of, plainest, strict_schema, without_reasoning
from kinodex.agent.replies.values import Confidence, Numbers, Score, Seconds, WholeNumber
from kinodex.agent.requests.tree import Decide, ScoreSegments, SegmentScores
from kinodex.agent.variants.eea.requests import ScoreAndPropose
from kinodex.agent.variants.videoagent2.requests import AdjustPlan, AnswerBank, Assess, CallTool, CreatePlan
from tests.support.every_request import example_text, of_full_size, variations
from tests.support.models.constrained_decoders import ENGINES, is_installed, llguidance_accepts, written
from tests.support.servers.wire import GO, HOME, Walk
from tests.support.strict_mode import violations


class Part(BaseModel):
    """One part."""

    number: int = Field(ge=1, le=9, description="its number")
    note: str | None = None


class Whole(BaseModel):
    """A reply of parts."""

    reasoning: str = ""
    kind: Literal["a", "b"] = Field(description="of which kind")
    parts: list[Part]
    best: Part


SCHEMA = strict_schema(Whole)


def test_every_key_is_required_nothing_refers_to_anything_else_and_the_plainest_value_fits() -> None:
    assert violations(SCHEMA) == []
    assert list(SCHEMA["properties"]) == SCHEMA["required"] == ["reasoning", "kind", "parts", "best"]
    number = {"type": "integer", "minimum": 1, "maximum": 9, "description": "its number"}
    assert SCHEMA["properties"]["best"]["properties"]["number"] == number
    for schema in (SCHEMA, without_reasoning(SCHEMA), bound_schema(SCHEMA, {"parts": exactly(3)})):
        assert llguidance_accepts(schema, written(plainest(schema))), schema


def test_bounds_reach_parts_of_lists_and_of_objects_and_leave_the_class_alone() -> None:
    bound = bound_schema(
        SCHEMA,
        {
            "parts": exactly(2),
            "parts.note": NULL,
            "best.note": one_of(("x", "y"), or_null=True),
            "kind": one_of(("a",)),
        },
    )
    properties = bound["properties"]
    assert (properties["parts"]["minItems"], properties["parts"]["maxItems"]) == (2, 2)
    assert properties["parts"]["items"]["properties"]["note"] == {"type": "null"}
    assert properties["best"]["properties"]["note"]["enum"] == ["x", "y", None]
    assert properties["kind"] == {"description": "of which kind", "type": "string", "enum": ["a"]}
    assert violations(bound) == [] and "minItems" not in strict_schema(Whole)["properties"]["parts"]


# Numbers, times and lists as models write them: what is meant without doubt is read, the rest is refused.


def test_what_is_meant_is_read() -> None:
    for kind, said, meant in [
        (WholeNumber, "3", 3),
        (WholeNumber, 3.0, 3),
        (WholeNumber, "Segment 3", 3),
        (WholeNumber, "Segment 3: 10.0 s to 20.0 s", 3),
        (WholeNumber, "three", 3),
        (WholeNumber, "2/3", 2),
        (Score, 85, 85),
        (Score, "85%", 85),
        (Score, "85/100", 85),
        (Score, "8.5 out of 10", 85),
        (Confidence, 0.85, 0.85),
        (Confidence, "85 %", 0.85),
        (Seconds, 12.5, 12.5),
        (Seconds, "12.5 s", 12.5),
        (Seconds, "10:00", 600),
        (Seconds, "1:02:03", 3723),
        (Seconds, "00:10.5", 10.5),
        (Seconds, "1m30s", 90),
        (Seconds, "5 minutes", 300),
        (Seconds, "at 31.00 s", 31),
        (Numbers, [1, 2], [1, 2]),
        (Numbers, "1, 2 and 4", [1, 2, 4]),
        (Numbers, "<clip_3>, <clip_4>", [3, 4]),
        (Numbers, ["frame 2", 5], [2, 5]),
        (Numbers, 3, [3]),
        (Numbers, None, []),
        (Numbers, "none", []),
        (Numbers, " Null ", []),
    ]:
        assert TypeAdapter(kind).validate_python(said) == pytest.approx(meant), kind


def test_what_may_mean_several_things_or_nothing_is_refused() -> None:
    numbers = (WholeNumber, Score, Confidence, Seconds)
    nothing: tuple[object, ...] = (math.nan, math.inf, -math.inf, True, "", "soon", "NaN", {}, "1e999", "9" * 5000)
    refused: dict[Any, tuple[object, ...]] = {
        WholeNumber: (3.5, "3 or 4", "not segment 3", "It isn't 3"),
        Score: ("between 60 and 70", 101, "120%"),
        Confidence: (85,),
        Seconds: ("not at 90 s", "10:00 to 11:00", "1:2:3:4", "1:75"),
        Numbers: ("9" * 5000, "not 3", "1-3", "many", [[1]], [True]),
    }
    for kind, values in refused.items():
        for said in (*values, *(nothing if kind in numbers else ())):
            with pytest.raises(ValidationError):
                TypeAdapter(kind).validate_python(said)


# One schema for all requests of a run: what is sent, what the prompt says, and what is read from a reply.


SEARCH: list[type[Request[Any]]] = [ScoreSegments, ScoreAndPropose, Decide]
BANK: list[type[Request[Any]]] = [Assess, CreatePlan, AdjustPlan, CallTool, AnswerBank]


def joined(request: Request[Any], reasoning: bool = True) -> Mapping[str, Any]:
    """The example of a request's prompt, written by the joint schema of its run."""
    joint = request.joint()
    assert joint is not None
    inner: dict[str, Any] = json.loads(example_text(request, reasoning))
    if isinstance(request, ScoreSegments):
        inner = {"findings": [], "queries": []} | inner
        inner = {name: inner[name] for name in ("findings", "segments", "queries")}
    named = f'"{joint.name}"' in joint.outline(reasoning=reasoning)
    return {STEP: {joint.name: inner} if named else inner}


def test_all_requests_of_a_run_have_one_schema_byte_for_byte() -> None:
    for family in [SEARCH, BANK]:
        requests = [of_full_size(kind, count) for kind in family for count in (1, 4, 7)]
        requests += [each for kind in family for each in variations(kind) if getattr(each, "must_answer", False)]
        assert len({json.dumps(reply_schema(each, joint=True)) for each in requests}) == 1, family
        assert len({json.dumps(reply_schema(each)) for each in requests}) > 1, family


def test_strict_mode_takes_it_the_example_can_be_written_under_it_and_is_read() -> None:
    for kind in (*SEARCH, *BANK):
        request = of_full_size(kind)
        plain = parse_json(example_text(request), request)
        assert parse_json(written(joined(request)), request) == plain, "with and without the keys around it"
        for reasoning in (True, False):
            schema = reply_schema(request, reasoning=reasoning, joint=True)
            for engine in [name for name in ENGINES if is_installed(name)]:
                assert ENGINES[engine](schema, written(joined(request, reasoning))), (engine, kind)
                assert not ENGINES[engine](schema, example_text(request, reasoning)), (engine, kind)
            for other in variations(kind):
                if other.joint() is None:
                    continue
                schema = reply_schema(other, reasoning=reasoning, joint=True)
                first = [next(iter(each["properties"])) for each in schema["properties"][STEP]["anyOf"]]
                assert violations(schema) == [] and len(first) == len(set(first)), "they begin with different keys"


def test_a_reply_to_another_step_is_none_to_this_one() -> None:
    with pytest.raises(InvalidReply, match='another step; this one asks for "findings", "segments", "queries"'):
        parse_json(written(joined(of_full_size(Decide))), of_full_size(ScoreAndPropose))
    with pytest.raises(InvalidReply, match='another step; this one asks for "reasoning", "option"'):
        parse_json(written(joined(of_full_size(CreatePlan))), of_full_size(Assess))


def test_what_the_joint_schema_leaves_open_is_read_for_what_was_asked_or_is_no_reply() -> None:
    """Six parts bind one request and not the next: scores of how many, queries, a log, actions, a segment, a letter."""
    scoring, deciding = of_full_size(ScoreSegments), of_full_size(Decide)
    numbers = [each.number for each in scoring.segments]
    finding = {"frame": 1, "seen": "a kite", "supports": [], "excludes": []}

    def rating(scored: Sequence[int]) -> dict[str, Any]:
        parts = [{"segment": number, "reasoning": "sky", "score": 70} for number in scored]
        return {"findings": [finding], "segments": parts, "queries": ["a kite"]}

    def decision(action: str, segment: int | None, option: str | None) -> dict[str, Any]:
        said = {"reasoning": "so", "action": action, "segment": segment, "option": option}
        return {**said, "answer": None, "evidence": []}

    last, choosing = replace(deciding, must_answer=True), replace(deciding, must_answer=True, declining="never")
    never = "insufficient_evidence is not accepted"
    for request, said, kept, fault in [
        (scoring, rating(numbers), numbers, None),
        (scoring, rating([numbers[0]] * 7), numbers[:1], None),
        (scoring, rating([*numbers, 99]), numbers, None),
        (last, decision("answer", numbers[0], "B"), "B", None),
        (last, decision("explore", numbers[0], None), None, "exploring is over"),
        (choosing, decision("answer", None, None), None, "names no option"),
        (choosing, decision("insufficient_evidence", None, "B"), None, never),
    ]:
        shared = deciding.joint() if request is choosing else request.joint()
        assert llguidance_accepts(shared.schema(), written({STEP: said})), said
        reply, problem = parse_reply(json.dumps({STEP: said} if request is not choosing else said), request)
        if reply is not None and reply.declines:  # read, and refused as the last word (`Session.exchange`)
            reply, problem = None, request.refusal()
        assert (problem is None) == (fault is None) and (fault or "") in (problem or ""), (said, problem)
        got = reply and getattr(reply, "option", None)
        got = [each.segment for each in reply.segments] if isinstance(reply, SegmentScores) else got
        assert got == kept, said
    once, _ = parse_reply(json.dumps({STEP: rating([numbers[0]] * 7)}), scoring)
    rest = scoring.missing(once)
    assert rest and rest.segments == scoring.segments[1:], "the other six are asked for alone"
    assert choosing.joint() is None and choosing.schema()["properties"]["option"]["enum"] == ["A", "B"]


def test_the_prompt_names_the_reply_that_is_due_and_what_binds_it_more_closely() -> None:
    last = next(each for each in variations(Decide) if each.must_answer)
    line = reply_line(last, joint=True)
    assert line.startswith('Reply with JSON only, as {"step": {...}}, with the keys "reasoning", "action" ("answer" | ')
    assert '"segment" (null)' in line
    assert '"findings" ([]), "segments" (exactly 7), "queries".' in reply_line(
        of_full_size(ScoreAndPropose), joint=True
    )
    assert '"queries" ([]).' in reply_line(of_full_size(ScoreSegments), joint=True)
    assert '{"step": {"plan": {...}}}' in reply_line(of_full_size(CreatePlan), joint=True)


# Calls of tools in the forms of several chat templates.


def test_one_call_in_any_form_is_read_and_what_is_none_stays_as_it_is() -> None:
    inner = {"name": "go", "arguments": {"where": "home", "fast": None}}
    for said in (
        GO,
        inner,
        [inner],
        {"name": "go", "parameters": {"where": "home", "fast": None}},
        {"tool": "go", "args": {"where": "home"}},
        {"name": "go", "arguments": '{"where": "home", "fast": null}'},
        {"function": inner},
        {"type": "function", "function": {"name": "go", "arguments": '{"where": "home"}'}},
        {"tool_calls": [{"id": "1", "type": "function", "function": inner}]},
        {"function": "go", "arguments": {"where": "home"}},
    ):
        for text in (json.dumps(said), f"I go.\n<tool_call>\n{json.dumps(said)}\n</tool_call>"):
            assert parse_json(text, Walk()) == HOME, said
    others: list[Any] = [{"queries": ["a"]}, {"name": "go"}, {"name": "go", "arguments": "home"}, [], 7]
    others += [
        {"name": "go", "arguments": "[" * 3000},
        {"name": {}, "arguments": {}},
        {"function": None, "tool_calls": []},
    ]
    for other in (*others, {"tool_calls": [inner, inner]}, [inner, inner]):
        assert flat_call(other) is other, other
