"""Inference of the ideal observer: what sights and lines settle about a question of a story, by stated rules.

It reads the words of a question and its options, never its truth. A handover is known from two sights of a thing in
one place with different holders at most `reach_s` apart, or from one on its way; a sign and what stands beside it from
sights of one place as near in time; a title card if nothing else is seen between it and the scene. Questions about a
whole film (first, last, how often, in the end) are never settled before the last word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from kinodex.agent.protocol.question import Question
from tests.support.world.sights import GROUND, Heard, Sight
from tests.world.sketch.scenes import NUMBERS, WHERE
from tests.world.story import ACTORS

# fmt: off
KINDS = {
    "giver": r"Who gives the (?P<item>.+) to the (?P<to>.+)\?",
    "receiver": r"Who gets the (?P<item>.+) from the (?P<who>.+)\?",
    "given": r"What does the (?P<who>.+) give to the (?P<to>.+)\?",
    "where": r"Where does the (?P<who>.+) give the (?P<item>.+) away\?",
    "taker": r"Who picks up the (?P<item>.+) from the ground\?",
    "returns": r"Who goes away from the (?P<mark>.+) and comes back",
    "brings": r"What does the (?P<who>.+) bring when it comes back to the (?P<mark>.+)\?",
    "meanwhile": r"What passes by while the (?P<who>.+) is away from the (?P<mark>.+)\?",
    "sign": r"What does the sign beside the (?P<mark>.+) say\?",
    "beside": r"What stands beside the sign that says (?P<sign>.+)\?",
    "title": r"Which word is on the title card right before the scene with the (?P<mark>.+)\?",
    "plan": r"Where does (?P<name>.+) plan to go\?",
    "reason": r"Why was (?P<name>.+) late\?",
    "code": r"What is the code word for (?P<name>.+)\?",
    "purpose": r"What is the (?P<item>.+) for that the (?P<to>.+) is given",
    "cue": r'What passes by right after somebody says "(?P<name>.+)"\?',
    "last": r"Which of these is handed over last in the film\?",
    "who": r"Which of these is (?P<name>.+)\?",
    "first": r"Which of these passes by first in the film\?",
    "count": r"Which of these passes by exactly (?P<name>\w+) times in the film\?",
    "holder": r"Who has the (?P<item>.+) in the end\?",
}
# fmt: on
HANDOVERS = frozenset({"giver", "receiver", "given", "where", "purpose", "taker"})
SPOKEN = {"plan": "plan", "reason": "reason", "code": "code", "purpose": "purpose", "cue": "cue", "who": "name"}
"""The kind of a line that a question needs, by the question's kind."""
WHOLE = frozenset({"first", "last", "count", "holder"})
"""Kinds of questions about a whole film."""
AFTER_S = {"cue": 11.0, "who": 1.0, "purpose": 2.0}
"""Seconds after a line for which the thing that it goes with is still seen."""
AWAY_S = 90.0
"""The longest absence that two sights of an actor span."""
SAME_VISIT_S = 300.0
APART_S = 20.0
"""Sights of a thing that are farther apart are of two times that it passes."""


def bare(text: str) -> str:
    """An option without its article."""
    return re.sub(r"^(?:the|an?) ", "", text)


@dataclass(frozen=True, slots=True)
class Settled:
    """An option, by its words without an article, and the numbers of the frames and notes that show it."""

    option: str
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A question as it is read: its kind, and what its words name (item, giver or actor, taker, landmark, ...)."""

    question: Question
    kind: str = "other"
    item: str = ""
    who: str = ""
    to: str = ""
    mark: str = ""
    sign: str = ""
    name: str = ""
    reach_s: float = 60.0

    @classmethod
    def read(cls, question: Question, reach_s: float) -> Wanted:
        """Read a question by its words; one of no known kind is of kind "other"."""
        for kind, pattern in KINDS.items():
            if found := re.match(pattern, question.text):
                return cls(question, kind, **found.groupdict(), reach_s=reach_s)
        return cls(question, reach_s=reach_s)

    @cached_property
    def options(self) -> dict[str, str]:
        """The letters of the options, by their words without articles."""
        return {bare(text): letter for letter, text in self.question.lettered}

    @cached_property
    def named(self) -> frozenset[str]:
        """The things that the question names; those of its options where it names none."""
        named = frozenset(filter(None, (self.item, self.who, self.to, self.mark, self.sign)))
        return named or (frozenset(self.options) if self.kind in WHOLE else frozenset())

    def queries(self) -> list[str]:
        """Texts to search for."""
        texts = [text.format(**vars(self)) for text in _QUERIES.get(self.kind, ())]
        texts += [f"a {name}" for name in sorted(self.named)]
        texts += self.question.options[:2] if self.kind == "given" else ()
        return (list(dict.fromkeys(texts)) or [self.question.text])[:5]

    def telling(self, lines: Sequence[Heard]) -> Iterator[tuple[Heard, str]]:
        """The lines that the question needs, each with what it says."""
        for line in lines:
            for kind, subject, said in line.facts:
                if kind == SPOKEN.get(self.kind) and subject in (self.name, ""):
                    yield line, said


_QUERIES = {
    "giver": ["the {to} with the {item}"],
    "receiver": ["the {who} with the {item}"],
    "purpose": ["the {to} with the {item}"],
    "given": ["the {who} beside the {to}"],
    "where": ["the {who} with the {item}"],
    "brings": ["the {who} at the {mark}"],
    "meanwhile": ["the {who} at the {mark}"],
    "sign": ["a sign beside the {mark}"],
    "beside": ["a sign that says {sign}"],
    "title": ["the {mark}"],
    "who": ["My name is {name}", "they call me {name}", "Hello, {name} here"],
    "cue": ["{name}"],
    "plan": ["{name} is off to", "{name} has always meant to go to"],
    "reason": ["{name} was late because", "why {name} came late"],
    "code": ["the code word for {name} is", "get into {name}"],
}

Found = tuple[str, tuple[int, ...]]
"""An option's words, and numbers of what shows it."""


def settle(wanted: Wanted, sights: Sequence[Sight], lines: Sequence[Heard], *, last_word: bool) -> Settled | None:
    """The option that sights and lines settle; None if they settle none.

    `last_word`: no more will be seen, so that what was seen may be taken for the whole.
    """
    in_order = sorted(sights, key=lambda sight: sight.time_s)
    found = list(_found(wanted, in_order, lines))
    if last_word and wanted.kind in WHOLE:
        found += _of_the_whole(wanted, in_order)
    options = [(bare(text), numbers) for text, numbers in found if bare(text) in wanted.options]
    return Settled(options[-1][0], tuple(sorted({each for each in options[-1][1] if each}))) if options else None


def _found(wanted: Wanted, sights: Sequence[Sight], lines: Sequence[Heard]) -> Iterator[Found]:
    match wanted.kind:
        case "giver" | "receiver" | "where" | "taker" | "purpose" | "given":
            yield from _handovers(wanted, sights, lines)
        case "brings" | "meanwhile" | "returns":
            yield from _absences(wanted, sights)
        case "sign" | "beside":
            yield from _signs(wanted, sights)
        case "title":
            yield from _titles(wanted, sights)
        case "plan" | "reason" | "code":
            yield from ((said, (line.number,)) for line, said in wanted.telling(lines))
        case "cue" | "who":
            yield from _beside_lines(wanted, sights, lines)


Move = tuple[str, str, Sight, Sight]
"""From whom, to whom, and the sights before and after."""


def moves(sights: Sequence[Sight], item: str, reach_s: float) -> Iterator[Move]:
    """Changes of an item's holder between sights that follow each other, and both ways of one on its way."""
    known = [(sight, held) for sight in sights if (held := sight.holder(item)) is not None]
    for sight, held in known:
        if isinstance(held, tuple):
            yield held[0], held[1], sight, sight
            yield held[1], held[0], sight, sight
    sure = [(sight, held) for sight, held in known if isinstance(held, str)]
    for (before, giver), (after, taker) in pairwise(sure):
        if giver != taker and before.setting == after.setting and after.time_s - before.time_s <= reach_s:
            yield giver, taker, before, after


def _handovers(wanted: Wanted, sights: Sequence[Sight], lines: Sequence[Heard]) -> Iterator[Found]:
    items = {item for sight in sights for item, _ in sight.held} if wanted.kind == "given" else {wanted.item}
    for item in sorted(items):
        for giver, taker, before, after in moves(sights, item, wanted.reach_s):
            numbers = (before.number, after.number)
            given = giver != GROUND
            match wanted.kind:
                case "giver" if taker == wanted.to and given:
                    yield giver, numbers
                case "receiver" if giver == wanted.who and taker != GROUND:
                    yield taker, numbers
                case "where" if giver == wanted.who and taker != GROUND and before.setting:
                    yield WHERE[before.setting[0]], numbers
                case "taker" if not given:
                    yield taker, numbers
                case "given" if (giver, taker) == (wanted.who, wanted.to):
                    yield item, numbers
                case "purpose" if taker == wanted.to and given:
                    for line, said in wanted.telling(lines):
                        if line.start_s <= after.time_s + 1.5 and line.end_s >= before.time_s - 1.5:
                            yield said, (*numbers, line.number)


def _absences(wanted: Wanted, sights: Sequence[Sight]) -> Iterator[Found]:
    marked = [sight for sight in sights if sight.landmark == wanted.mark]
    here = [
        sight
        for sight in sights
        if sight.setting
        and any(each.setting == sight.setting and abs(each.time_s - sight.time_s) < SAME_VISIT_S for each in marked)
    ]
    for who in [wanted.who] if wanted.who else list(wanted.options):
        for at, sight in enumerate(here):
            before = next((each for each in reversed(here[:at]) if who in each.things), None)
            later = [each for each in here[at + 1 :] if who in each.things]
            if who in sight.things or before is None or not later or later[0].time_s - before.time_s > AWAY_S:
                continue
            numbers = (before.number, sight.number, later[0].number)
            if wanted.kind == "returns" and sight.wide:
                yield who, numbers
            elif wanted.kind == "brings" and sight.wide:
                yield from ((item, numbers) for back in later[:2] for item, holder in back.held if holder == who)
            elif wanted.kind == "meanwhile":
                yield from ((thing, numbers) for thing in sorted(sight.things) if thing in wanted.options)


def _signs(wanted: Wanted, sights: Sequence[Sight]) -> Iterator[Found]:
    for board in (sight for sight in sights if sight.sign):
        for other in (sight for sight in sights if sight.landmark):
            apart_s = abs(other.time_s - board.time_s)
            together = other.setting == board.setting and apart_s <= wanted.reach_s
            together |= board.setting is None and apart_s <= 1.0  # text on screen, read by a program
            if together and wanted.kind == "sign" and other.landmark == wanted.mark:
                yield board.sign, (board.number, other.number)
            if together and wanted.kind == "beside" and board.sign == wanted.sign:
                yield other.landmark, (board.number, other.number)


def _titles(wanted: Wanted, sights: Sequence[Sight]) -> Iterator[Found]:
    for scene in (sight for sight in sights if sight.landmark == wanted.mark):
        cards = [sight for sight in sights if sight.card and sight.time_s < scene.time_s]
        if not cards:
            continue
        between = [sight for sight in sights if cards[-1].time_s < sight.time_s <= scene.time_s]
        if all(each.setting in (None, scene.setting) for each in between) and (
            between[0].time_s - cards[-1].time_s <= 150.0
        ):
            yield cards[-1].card, (cards[-1].number, scene.number)


def _beside_lines(wanted: Wanted, sights: Sequence[Sight], lines: Sequence[Heard]) -> Iterator[Found]:
    early_s = 1.0 if wanted.kind == "who" else 0.0
    for line, _ in wanted.telling(lines):
        for sight in sights:
            actors = [name for name in sight.things if name.split()[-1] in ACTORS]
            alone = wanted.kind == "cue" or len(actors) == 1
            if line.start_s - early_s <= sight.time_s <= line.end_s + AFTER_S[wanted.kind] and alone:
                numbers = (line.number, sight.number)
                yield from ((name, numbers) for name in sorted(sight.things) if name in wanted.options)


def _of_the_whole(wanted: Wanted, sights: Sequence[Sight]) -> Iterator[Found]:
    """Options for a whole film, as if the sights showed all of it."""
    shown = {name: [sight for sight in sights if name in sight.things] for name in wanted.options}
    match wanted.kind:
        case "first" if any(shown.values()):
            name = min((name for name in shown if shown[name]), key=lambda name: shown[name][0].time_s)
            yield name, (shown[name][0].number,)
        case "last":
            given = [
                (after.time_s, name, after) for name in shown for _, _, _, after in moves(sights, name, wanted.reach_s)
            ]
            yield from ((name, (after.number,)) for _, name, after in sorted(given, key=lambda each: each[:2]))
        case "count":
            for name, seen in shown.items():
                times = bool(seen) + sum(late.time_s - early.time_s > APART_S for early, late in pairwise(seen))
                if times == NUMBERS.index(wanted.name):
                    yield name, tuple(sight.number for sight in seen)
        case "holder":
            with_somebody = [(sight, held) for sight in sights if isinstance(held := sight.holder(wanted.item), str)]
            yield from ((held, (sight.number,)) for sight, held in with_somebody)


# How much a segment promises, by the sights at its ends, those inside, and the lines that are read.


def promise(
    wanted: Wanted, left: Sight | None, right: Sight | None, inside: Sequence[Sight], heard: float = 0.0
) -> tuple[float, tuple[Sight, ...]]:
    """The promise of a segment, 0 to 100, and the sights that tell why; `heard` is the share of a needed line."""
    if heard:
        return 99.0 * heard, tuple(sight for sight in (left, right) if sight)
    near = [sight for sight in (left, right, *inside) if sight is not None]
    if not near or not wanted.named:
        return 0.0, ()
    best = max(near, key=lambda sight: len(wanted.named & sight.names))
    share = len(wanted.named & best.names) / len(wanted.named)
    score = 60 * share + 10 * (share > 0 and any(option in best.names for option in wanted.options))
    rule = _PROMISES.get("handover" if wanted.kind in HANDOVERS and wanted.item else wanted.kind)
    score = max(score, rule(wanted, left, right) if rule else 0.0)
    return score, tuple(sight for sight in (left, right) if sight) if score >= 66 else ((best,) if share else ())


def _handover_promise(wanted: Wanted, left: Sight | None, right: Sight | None) -> float:
    first, then = (sight.holder(wanted.item) if sight else None for sight in (left, right))
    starts = first is not None and (
        first == wanted.who
        if wanted.who
        else first == GROUND
        if wanted.kind == "taker"
        else first not in (wanted.to, GROUND)
    )
    ends = then is not None and (then == wanted.to if wanted.to else then not in (wanted.who, GROUND))
    if starts and ends:
        return 98.0
    told = (ends and wanted.to) or (starts and (wanted.who or wanted.kind == "taker"))
    return 88.0 if told else 66.0 if starts or ends else 0.0


def _given_promise(wanted: Wanted, left: Sight | None, right: Sight | None) -> float:
    if left is None or right is None:
        return 0.0
    first, then = (
        {item for item, held in sight.held if held == who} for sight, who in ((left, wanted.who), (right, wanted.to))
    )
    if first & then:
        return 98.0
    return 85.0 if (first and wanted.to in left.things) or (then and wanted.who in right.things) else 0.0


def _title_promise(wanted: Wanted, left: Sight | None, right: Sight | None) -> float:
    begins = right and right.landmark == wanted.mark and left and left.setting != right.setting and not left.card
    return 96.0 if begins else 0.0


def _absence_promise(wanted: Wanted, left: Sight | None, right: Sight | None) -> float:
    if (
        left is None
        or right is None
        or left.setting != right.setting
        or wanted.mark not in (left.landmark, right.landmark)
    ):
        return 0.0
    before, after = (wanted.who in sight.things if wanted.who else False for sight in (left, right))
    return 85.0 if before != after else 75.0 if before else 0.0


_PROMISES = {
    "handover": _handover_promise,
    "given": _given_promise,
    "title": _title_promise,
    "brings": _absence_promise,
    "meanwhile": _absence_promise,
    "returns": _absence_promise,
}
