"""Questions whose answers are known: the `questions.jsonl` that `kinodex sample` writes. No agent sees any of this."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.answer import Answer, Evidence
from agent.question import Question


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
    """The questions of a sample, in the order of the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_known(json.loads(line)) for line in lines]


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
            return Known(film, kind, Question(text, tuple(options)), answer, start_s, end_s)
    raise ValueError(f"not a row of questions.jsonl: {row}")
