"""The table of replies as models write them: each is read as the option that it names, or as none."""

from __future__ import annotations

import json
from pathlib import Path

from kinodex.agent.models.completion import parse_reply
from kinodex.agent.protocol import Question
from kinodex.agent.requests.answer import AnswerNotes, chosen_option


def _rows_of_replies() -> list[dict]:
    path = Path(__file__).parents[2] / "data" / "option_replies.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_reply_of_the_table_has_its_right_reading() -> None:
    for row in _rows_of_replies():
        question = Question("What is seen?", tuple(row["options"]))
        reply, _ = parse_reply(row["reply"], AnswerNotes(question=question, videos=(), notes=()))
        option = None if reply is None else chosen_option(question, reply)
        assert (None if option is None else question.lettered[option][0]) == row["option"], row
