"""A reply ends: lists and texts have a length, numbers are of what was shown, and the limit of tokens follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kinodex.agent.models.openai_model import needed_tokens
from kinodex.agent.protocol.notes import Note
from kinodex.agent.replies.lengths import MOST_NUMBERS, finite, numbers_of, with_text_limits
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes, Guess
from tests.support.every_request import built, kinds
from tests.support.servers.chat_server import ChatServer, cut_off, failing, in_turn
from tests.support.servers.wire import QUERIES, QUESTION, VIDEO, ask, decide, discover, frame, score

KINDS = [kind for kind in kinds() if kind.form == "json"]


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for each in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(each)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_list_in_a_schema_has_an_end(kind: Any) -> None:
    request = built(kind)
    assert all("maxItems" in each for each in nodes(request.schema()) if each.get("type") == "array")
    assert 8 < needed_tokens(request) < 10_000


def test_evidence_is_a_few_numbers_of_what_was_shown() -> None:
    notes = tuple(Note(VIDEO.video_id, each, each + 1, "captions", "a kite") for each in range(20))
    shown = AnswerFrames(question=QUESTION, videos=(VIDEO,), frames=(frame(3), frame(4)), notes=notes[:3])
    evidence = shown.schema()["properties"]["evidence"]
    assert (evidence["items"], evidence["maxItems"]) == ({"type": "integer", "minimum": 1, "maximum": 5}, 5)
    many = AnswerNotes(question=QUESTION, videos=(VIDEO,), notes=notes).schema()["properties"]["evidence"]
    assert (many["items"]["maximum"], many["maxItems"]) == (20, MOST_NUMBERS)
    assert Guess(question=QUESTION, videos=(VIDEO,)).schema()["properties"]["evidence"]["maxItems"] == 0
    assert decide().schema()["properties"]["evidence"]["items"]["maximum"] == 1
    assert "1 to 5" in shown_words(shown)


def shown_words(request: AnswerFrames) -> str:
    with ChatServer(lambda _: {"action": "answer", "option": "A", "evidence": [1]}) as server:
        ask(server, request)
    return server.seen[0].text


def test_the_limit_of_tokens_is_what_a_whole_reply_needs_unless_the_user_gave_one() -> None:
    with ChatServer(lambda _: QUERIES) as server:
        ask(server, discover(), score())
        ask(server, discover(), max_tokens=3000)
    queries, scores, given = [each.body["max_tokens"] for each in server.seen]
    assert queries != scores and max(queries, scores) < 4096 and given == 3000


def test_texts_have_a_length_where_a_server_of_ones_own_takes_it_and_reasons_never_have() -> None:
    schema = {"type": "object", "properties": {"reasoning": {"type": "string"}, "queries": finite(LISTED)}}
    limited = with_text_limits(schema)["properties"]
    assert limited["reasoning"] == {"type": "string"} and limited["queries"]["items"]["maxLength"] == 600

    def takes(body: dict[str, Any]) -> Any:
        if "maxLength" in str(body):
            return failing(400, "failed to parse grammar: number of repetitions exceeds sane defaults")
        return QUERIES

    with ChatServer(takes) as server:
        first, second = ask(server, discover(), discover())
    assert first.reply is not None and second.reply is not None and len(server.seen) == 3
    assert all(each.body["response_format"]["type"] == "json_schema" for each in server.seen)


LISTED: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def test_a_reply_that_its_limit_cut_is_asked_for_again_in_fewer_words() -> None:
    long = '{"queries": ["' + "a kite and " * 500
    with ChatServer(in_turn(cut_off(long), QUERIES)) as server:
        [exchange] = ask(server, discover())
    assert exchange.invalid is not None and "words at most this time" in exchange.invalid
    assert numbers_of([]) == {"type": "array", "items": {"type": "integer"}, "maxItems": 0}
