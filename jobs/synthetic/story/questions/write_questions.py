"""Write the questions of a story film, every need and kind in turn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from jobs.synthetic.story.film import Range, StoryFilm
from jobs.synthetic.story.questions import order, pictures, texts, words
from jobs.synthetic.story.questions.draft import OPTIONS, Draft, Facts, Maker, Needs

SECONDS_PER_QUESTION = 30
TURNS: tuple[Needs, ...] = ("pictures", "text", "pictures", "words", "both")
MAKERS: tuple[Maker, ...] = (
    pictures.giver,
    pictures.receiver,
    pictures.given,
    pictures.given_where,
    pictures.taker,
    order.comes_back,
    order.brings,
    order.meanwhile,
    order.first,
    order.last,
    order.count,
    order.holder,
    texts.sign,
    texts.beside,
    texts.title,
    words.plan,
    words.reason,
    words.code,
    words.purpose,
    words.cue,
    words.who,
)


@dataclass(frozen=True, slots=True)
class StoryQuestion:
    """A question, its options, the index of the true one, and the ranges of the film that show or say it."""

    question_id: str
    video: str
    kind: str
    needs: Needs
    question: str
    options: tuple[str, ...]
    answer: int
    ranges: tuple[Range, ...]

    def as_json(self) -> dict[str, Any]:
        """Convert to a line of questions.jsonl; `evidence` is the first of the ranges."""
        return {
            "question_id": self.question_id,
            "video": self.video,
            "kind": self.kind,
            "asks": self.kind,
            "needs": self.needs,
            "question": self.question,
            "options": list(self.options),
            "answer": self.answer,
            "evidence": list(self.ranges[0]),
            "ranges": [list(each) for each in self.ranges],
        }


def write_questions(film: StoryFilm, video: str, limit: int | None = None) -> list[StoryQuestion]:
    """Write questions about a film; the same for the same film.

    `limit` defaults to one for each half minute, at least 8 and at most 60, of the film in the order of its story. A
    film in another order has those of them that need no order, with the same ids and options.
    """
    chance = Random(f"questions/{film.film}/{film.seed}")
    facts = Facts(film)
    number = limit or max(8, min(60, round(film.duration_s / SECONDS_PER_QUESTION)))
    piles: dict[Needs, dict[str, list[Draft]]] = defaultdict(lambda: defaultdict(list))
    for make in MAKERS:
        for draft in make(facts, chance):
            if len(set(draft.wrong)) >= OPTIONS - 1:
                piles[draft.needs][draft.asks].append(draft)
    written = []
    for index, draft in enumerate(_take_turns(piles, number, chance)):
        options = [draft.right, *chance.sample(draft.wrong, OPTIONS - 1)]
        chance.shuffle(options)
        if not draft.ordered or film.form == "story":
            question_id = f"{film.film}-{index + 1:03d}"
            ranges = _joined([piece for each in draft.evidence for piece in film.on_screen(each)])
            answer = options.index(draft.right)
            written.append(
                StoryQuestion(question_id, video, draft.asks, draft.needs, draft.text, tuple(options), answer, ranges)
            )
    return written


def _joined(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Join ranges that meet, in order."""
    joined: list[Range] = []
    for low, high in sorted((round(low, 4), round(high, 4)) for low, high in ranges):
        if joined and low <= joined[-1][1]:
            low, high = joined[-1][0], max(joined.pop()[1], high)
        joined.append((low, high))
    return tuple(joined)


def _take_turns(piles: dict[Needs, dict[str, list[Draft]]], number: int, chance: Random) -> list[Draft]:
    """Take drafts by `TURNS`, of each need its kinds in turn, at most two about the same moment."""
    for kinds in piles.values():
        for pile in kinds.values():
            chance.shuffle(pile)
    chosen: list[Draft] = []
    used: Counter[Range] = Counter()
    turns = {needs: _in_turn(piles[needs], used) for needs in set(TURNS)}
    while len(chosen) < number:
        found = [draft for needs in TURNS if (draft := next(turns[needs], None)) is not None]
        if not found:
            break
        chosen += found
    return chosen[:number]


def _in_turn(kinds: dict[str, list[Draft]], used: Counter[Range]) -> Iterator[Draft]:
    while any(kinds.values()):
        for pile in kinds.values():
            while pile:
                draft = pile.pop()
                if used[draft.evidence[0]] < 2:
                    used[draft.evidence[0]] += 1
                    yield draft
                    break
