"""The form of replies: the schema that is sent, the words of the prompt and the example are one, and decoders keep it.

Servers that enforce a schema (OpenAI, vLLM, SGLang, llama.cpp, TGI) do so with the engines that are run here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kinodex.agent.errors import InvalidReply
from kinodex.agent.models.completion import parse_json, tool_parameters
from kinodex.agent.prompts import EXAMPLE, example_text, render, reply_line
from kinodex.agent.protocol import Request
from kinodex.agent.replies import REASONING, in_order
from kinodex.agent.requests.describe import SummarizePart
from kinodex.agent.requests.tree import Decide, ScoreSegments
from kinodex.agent.variants.videoagent2_requests import Assess
from tests.support.every_request import kinds, of_full_size, variations
from tests.support.models.constrained_decoders import ENGINES, Accepts, is_installed, written
from tests.support.strict_mode import violations

KINDS = [kind for kind in kinds() if kind.form != "text"]
CHOICES = {"action", "option", "score", "confidence", "relevance", "found", "sufficient", "clips"}
"""Names of what a model decides: words of its own come before."""
WORDS = {REASONING, "description", "text", "caption", "steps"}
DESCRIPTIONS = {
    *("Description", "Summary", "Observation", "DescribedFrames", "SkimmedFrames", "FrameCaptions", "PartSummary"),
}
"""Replies that say what is seen: their text is the first thing in them, and reasons before it would double its cost."""
NO_COPIES = {SummarizePart}
"""Requests that take a reply with the text of their example for a copy: what is stored must be of the video."""
SCORES = {"SegmentScores", "ScoresAndQueries"}
"""Replies whose reasons stand before each score, since the policy reads them too."""

by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__name__}-{kind.template}")
by_engine = pytest.mark.parametrize(
    "accepts",
    [
        pytest.param(
            accepts, id=name, marks=pytest.mark.skipif(not is_installed(name), reason=f"{name} is not installed")
        )
        for name, accepts in ENGINES.items()
    ],
)


def objects(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All objects of a schema, from the outside inwards."""
    if "properties" in schema:
        yield schema
        for each in schema["properties"].values():
            yield from objects(each.get("items", each))


@by_engine
@by_kind
def test_the_example_of_the_prompt_is_accepted_byte_for_byte_by_the_schema_that_is_sent(
    kind: type[Request[Any]], accepts: Accepts
) -> None:
    for request in variations(kind):
        for reasoning in (True, False):
            assert accepts(request.schema(reasoning=reasoning), example_text(request, reasoning))
            if kind.form == "json":
                assert f"{EXAMPLE} {example_text(request, reasoning)}" in render(request, reasoning=reasoning)


@by_engine
@by_kind
def test_an_answer_before_its_reasons_cannot_be_written(kind: type[Request[Any]], accepts: Accepts) -> None:
    request = of_full_size(kind)
    keys = list(value := json.loads(example_text(request)))
    for at in range(1, len(keys)):
        moved = [keys[at], *keys[:at], *keys[at + 1 :]]
        assert not accepts(request.schema(), written({name: value[name] for name in moved})), moved


@by_engine
@by_kind
def test_a_reply_that_lacks_what_the_prompt_asks_for_cannot_be_written(
    kind: type[Request[Any]], accepts: Accepts
) -> None:
    request = of_full_size(kind)
    schema, value = request.schema(), json.loads(example_text(request))
    for name in value:
        assert not accepts(schema, written({key: each for key, each in value.items() if key != name})), name
        counted = schema["properties"][name].get("minItems")
        if counted and counted == schema["properties"][name].get("maxItems"):
            assert len(value[name]) == counted == 7
            assert not accepts(schema, written({**value, name: value[name][:-1]})), "six of seven"
            lacking = [dict(list(each.items())[:-1]) for each in value[name]]
            assert not accepts(schema, written({**value, name: lacking})), "a part of each"


@by_kind
def test_the_example_is_a_reply_that_is_read_and_passes_the_check(kind: type[Request[Any]]) -> None:
    for request in variations(kind):
        if kind in NO_COPIES:
            with pytest.raises(InvalidReply, match="it repeats the instructions"):
                parse_json(example_text(request), request)
            continue
        reply = parse_json(example_text(request), request)
        request.check(reply)


@by_kind
def test_words_come_before_what_is_decided(kind: type[Request[Any]]) -> None:
    schema = of_full_size(kind).schema()
    thinks = next(iter(schema["properties"])) == REASONING
    assert thinks or kind.form == "tools" or kind.Reply.__name__ in DESCRIPTIONS | SCORES
    for each in objects(schema):
        names = list(each["properties"])
        decided = [name for name in names if name in CHOICES]
        if decided and not thinks and kind.form == "json":
            assert WORDS & set(names[: names.index(decided[0])]), names
        if {"action", "evidence"} <= set(names):
            assert names.index("action") < names.index("option") < names.index("answer") < names.index("evidence")
            assert names[-1] == "evidence"


@by_kind
def test_the_parser_has_the_order_of_the_schema(kind: type[Request[Any]]) -> None:
    request = of_full_size(kind)
    names = list(request.schema()["properties"])
    fields = [name for name in kind.Reply.model_fields if name in names]
    assert fields == [name for name in names if name in fields]


@by_kind
def test_the_prompt_names_the_keys_in_the_order_of_the_schema(kind: type[Request[Any]]) -> None:
    request = of_full_size(kind)
    for reasoning in (True, False):
        line = reply_line(request, reasoning).partition(EXAMPLE)[0]
        places = [line.index(f'- "{name}"') for name in request.schema(reasoning=reasoning)["properties"]]
        assert places == sorted(places)


@by_kind
def test_without_reasons_the_rest_is_the_same(kind: type[Request[Any]]) -> None:
    request = of_full_size(kind)
    full, short = request.schema(), request.schema(reasoning=False)
    assert REASONING not in short["properties"] and "your reasoning" not in reply_line(request, reasoning=False)
    assert [name for name in full["properties"] if name != REASONING] == list(short["properties"])


@by_kind
def test_strict_mode_takes_every_schema(kind: type[Request[Any]]) -> None:
    for request in variations(kind):
        assert violations(request.schema()) == violations(request.schema(reasoning=False)) == []
    tools: Any = tool_parameters(kind.tools)["tools"] if kind.tools else ()
    for tool in tools:
        assert violations(tool["function"]["parameters"]) == []


def test_a_schema_that_strict_mode_refuses_is_found() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string", "default": ""}}, "required": []}
    assert len(violations(loose)) == 3


def test_a_score_of_each_segment_is_demanded() -> None:
    schema = of_full_size(ScoreSegments, 7).schema()
    assert (schema["properties"]["segments"]["minItems"], schema["properties"]["segments"]["maxItems"]) == (7, 7)


def test_only_what_may_be_done_now_is_offered() -> None:
    open_one, last = of_full_size(Decide), next(each for each in variations(Decide) if each.must_answer)
    assert "explore" in open_one.schema()["properties"]["action"]["enum"]
    assert "explore" not in last.schema()["properties"]["action"]["enum"]
    assert last.schema()["properties"]["segment"] == {"type": "null"}


def test_an_assessment_without_a_plan_gives_no_reasons() -> None:
    [hasty] = [each for each in variations(Assess) if not each.reasoning]
    assert REASONING not in hasty.schema()["properties"]


def test_an_example_is_written_in_the_order_of_the_schema_whatever_its_own_is() -> None:
    request = of_full_size(Decide)
    shuffled = dict(reversed(list(request.example().items())))
    assert list(in_order(shuffled, request.schema())) == list(request.schema()["properties"])
