"""Questions whose answers are known: the `questions.jsonl` that `kinodex sample` writes. No agent sees any of this."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.answer import Answer, Evidence
from agent.core.question import Question
from agent.errors import BadQuestion
from jobs.errors import UsageError

WANTED = "give a questions.jsonl as `kinodex sample` writes"


@dataclass(frozen=True, slots=True)
class Known:
    """A question about one film, the index of its true option, and the time range [start_s, end_s) that shows it."""

    film: str
    kind: str
    question: Question
    answer: int
    start_s: float
    end_s: float

    def right(self, answer: Answer) -> bool:
        return answer.option == self.answer

    def shown_by(self, evidence: Sequence[Evidence]) -> bool:
        """Whether some of the evidence lies in the true range."""
        return any(each.start_s < self.end_s and self.start_s < each.end_s for each in evidence)


def read_known(path: Path) -> list[Known]:
    """The questions of a sample, in the order of the file.

    Raises `UsageError` naming the line that is not one, or if there is none.
    """
    known = []
    for number, line in enumerate(_content(path).splitlines(), start=1):
        try:
            known.append(_known(json.loads(line)))
        except (ValueError, BadQuestion) as error:
            raise UsageError(f"{path}, line {number}: {error}; {WANTED}") from error
    if not known:
        raise UsageError(f"{path} holds no question; {WANTED}")
    return known


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; {WANTED}") from error


def true_option(known: Sequence[Known], question: Question, titles: Sequence[str]) -> int:
    """The answer to a question about films of these titles; raises `UsageError` unless exactly one is known."""
    found = [each for each in known if (each.question.text, each.question.options) == (question.text, question.options)]
    if len({each.answer for each in found}) > 1:
        found = [each for each in found if Path(each.film).stem in titles]
    answers = {each.answer for each in found}
    if len(answers) != 1:
        what = "different answers are known" if answers else "no answer is known"
        raise UsageError(f"{what} to {question.text!r} about {', '.join(titles)}; give the questions file it is from")
    return answers.pop()


def _known(row: dict[str, object]) -> Known:
    match row:
        case {
            "video": str(film),
            "kind": str(kind),
            "question": str(text),
            "options": list(options),
            "answer": int(answer),
            "evidence": [float() | int() as start_s, float() | int() as end_s],
        }:
            return Known(film, kind, Question(text, tuple(map(str, options))), answer, start_s, end_s)
    raise ValueError(f"not a question with its answer: {row}")
