"""Read questions with known answers: a `questions.jsonl` as docs/training.md has it. No agent sees any of this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kinodex.agent.answer import Answer
from kinodex.agent.errors import BadQuestion
from kinodex.agent.evidence import Evidence
from kinodex.agent.protocol.question import Question
from kinodex.index.named_files import read_bytes
from kinodex.index.nesting import parse_json
from kinodex.jobs.errors import UsageError

EXPECTED = "give a line of JSON for each question, as docs/training.md has them"


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question about one film, the index of its true option, and the time range [start_s, end_s) that shows it."""

    film: str
    kind: str
    question: Question
    answer: int
    start_s: float
    end_s: float

    def is_right(self, answer: Answer) -> bool:
        """Check the option of an answer."""
        return answer.option == self.answer

    def is_shown_by(self, evidence: Sequence[Evidence]) -> bool:
        """Return True if some of the evidence lies in the true range."""
        return any(each.start_s < self.end_s and self.start_s < each.end_s for each in evidence)


def read_known(path: Path) -> list[KnownQuestion]:
    """Read the questions of a sample, in the order of the file; raise `UsageError` naming the line that is none."""
    try:
        content = read_bytes(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}; {EXPECTED}") from error
    known = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            known.append(_known(parse_json(line)))
        except (ValueError, BadQuestion) as error:
            raise UsageError(f"{path}, line {number}: {error}; {EXPECTED}") from error
    if not known:
        raise UsageError(f"{path} holds no question; {EXPECTED}")
    return known


def _known(row: dict[str, object]) -> KnownQuestion:
    match row:
        case {
            "video": str(film),
            "kind": str(kind),
            "question": str(text),
            "options": list(options),
            "answer": int(answer),
            "evidence": [float() | int() as start_s, float() | int() as end_s],
        }:
            return KnownQuestion(film, kind, Question(text, tuple(map(str, options))), answer, start_s, end_s)
    raise ValueError(f"not a question with its answer: {row}")


def true_option(known: Sequence[KnownQuestion], question: Question, titles: Sequence[str]) -> int:
    """Return the answer to a question about films of these titles; raises `UsageError` unless exactly one is known."""
    found = [each for each in known if (each.question.text, each.question.options) == (question.text, question.options)]
    if len({each.answer for each in found}) > 1:
        found = [each for each in found if Path(each.film).stem in titles]
    answers = {each.answer for each in found}
    if len(answers) != 1:
        state = "different answers are known" if answers else "no answer is known"
        raise UsageError(f"{state} to {question.text!r} about {', '.join(titles)}; give the questions file it is from")
    return answers.pop()
