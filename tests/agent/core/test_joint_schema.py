"""One schema for all requests of a run: what is sent, what the prompt says, and what is read from a reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.completion import parse_json, reply_schema
from kinodex.agent.prompts import example_text, reply_line, request_message
from kinodex.agent.protocol import Request
from kinodex.agent.replies import STEP
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ScoreSegments
from kinodex.agent.variants.eea import ScoreAndPropose
from kinodex.agent.variants.videoagent2_requests import AdjustPlan, AnswerBank, Assess, CallTool, CreatePlan
from tests.support.every_request import of_full_size, variations
from tests.support.models.constrained_decoders import ENGINES, is_installed, written
from tests.support.strict_mode import violations

SEARCH: list[type[Request[Any]]] = [ScoreSegments, ScoreAndPropose, Decide]
BANK: list[type[Request[Any]]] = [Assess, CreatePlan, AdjustPlan, CallTool, AnswerBank]
by_kind = pytest.mark.parametrize("kind", [*SEARCH, *BANK], ids=lambda kind: kind.__name__)
by_family = pytest.mark.parametrize("family", [SEARCH, BANK], ids=["search", "bank"])


def joined(request: Request[Any], reasoning: bool = True) -> Mapping[str, Any]:
    """The example of a request's prompt, written by the joint schema of its run."""
    joint = request.joint()
    assert joint is not None
    inner: dict[str, Any] = json.loads(example_text(request, reasoning))
    if isinstance(request, ScoreSegments):
        inner.setdefault("queries", [])
    named = f'"{joint.name}"' in joint.outline(reasoning=reasoning)
    return {STEP: {joint.name: inner} if named else inner}


@by_family
def test_all_requests_of_a_run_have_one_schema_byte_for_byte(family: list[type[Request[Any]]]) -> None:
    requests = [of_full_size(kind, count) for kind in family for count in (1, 4, 7)]
    requests += [each for kind in family for each in variations(kind) if getattr(each, "must_answer", False)]
    assert len({json.dumps(reply_schema(each, joint=True)) for each in requests}) == 1
    assert len({json.dumps(reply_schema(each)) for each in requests}) > 1


@by_kind
@pytest.mark.parametrize("reasoning", [True, False])
def test_strict_mode_takes_it_and_its_objects_begin_with_different_keys(
    kind: type[Request[Any]], reasoning: bool
) -> None:
    for request in variations(kind):
        if request.joint() is None:
            continue
        schema = reply_schema(request, reasoning=reasoning, joint=True)
        assert violations(schema) == []
        first = [next(iter(each["properties"])) for each in schema["properties"][STEP]["anyOf"]]
        assert len(first) == len(set(first))


@pytest.mark.parametrize("engine", [name for name in ENGINES if is_installed(name)])
@by_kind
def test_the_example_can_be_written_under_it(kind: type[Request[Any]], engine: str) -> None:
    request = of_full_size(kind)
    for reasoning in (True, False):
        schema = reply_schema(request, reasoning=reasoning, joint=True)
        assert ENGINES[engine](schema, written(joined(request, reasoning)))
        assert not ENGINES[engine](schema, example_text(request, reasoning))


@by_kind
def test_a_reply_is_read_with_and_without_the_keys_around_it(kind: type[Request[Any]]) -> None:
    request = of_full_size(kind)
    assert parse_json(written(joined(request)), request) == parse_json(example_text(request), request)


def test_a_reply_to_another_step_is_none_to_this_one() -> None:
    with pytest.raises(InvalidReply, match='another step; this one asks for "segments", "queries"'):
        parse_json(written(joined(of_full_size(Decide))), of_full_size(ScoreAndPropose))
    with pytest.raises(InvalidReply, match='another step; this one asks for "reasoning", "option"'):
        parse_json(written(joined(of_full_size(CreatePlan))), of_full_size(Assess))


def test_the_prompt_names_the_reply_that_is_due_and_what_binds_it_more_closely() -> None:
    last = next(each for each in variations(Decide) if each.must_answer)
    line = reply_line(last, joint=True)
    assert line.startswith('Reply with JSON only, as {"step": {...}}, with the keys "reasoning", "action" ("answer" | ')
    assert '"segment" (null)' in line
    assert '"segments" (exactly 7), "queries".' in reply_line(of_full_size(ScoreAndPropose), joint=True)
    assert '"queries" ([]).' in reply_line(of_full_size(ScoreSegments), joint=True)
    assert '{"step": {"plan": {...}}}' in reply_line(of_full_size(CreatePlan), joint=True)


@by_kind
def test_the_line_is_shorter_and_the_rest_of_the_prompt_the_same(kind: type[Request[Any]]) -> None:
    request = of_full_size(kind)
    own, joint = (json.dumps(request_message(request, None, joint=each)) for each in (False, True))
    assert len(own) - len(joint) > 200
    assert own.partition("Reply with JSON only")[0] == joint.partition("Reply with JSON only")[0]


def test_requests_without_a_run_of_their_kind_keep_their_own_schema() -> None:
    request = of_full_size(DiscoverQueries)
    assert request.joint() is None and reply_schema(request, joint=True) == request.schema()
    assert reply_line(request, joint=True) == reply_line(request)
    hasty = next(each for each in variations(Assess) if not each.reasoning)
    assert hasty.joint() is None
