"""Questions that spoken words answer, alone or together with the pictures of the same time."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from jobs.synthetic.story.casting import CODE_WORDS, GOALS, PURPOSES, REASONS
from jobs.synthetic.story.film import Event, Line
from jobs.synthetic.story.questions.draft import Draft, Facts, options, the
from jobs.synthetic.world.vocabulary import with_article


def plan(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask where somebody wants to go."""
    yield from _of_fact(facts, "plan", "Where does {} plan to go?", GOALS)


def reason(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask why somebody was late."""
    yield from _of_fact(facts, "reason", "Why was {} late?", REASONS)


def code(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask for the code word of a door."""
    yield from _of_fact(facts, "code", "What is the code word for {}?", CODE_WORDS)


def _of_fact(facts: Facts, kind: str, text: str, made_up: tuple[str, ...]) -> Iterable[Draft]:
    said = _objects(facts, kind)
    for line in facts.film.lines:
        if line.fact is not None and line.fact[0] == kind:
            _, subject, right = line.fact
            wrong = tuple(each for each in _enough(said, made_up) if each != right)
            yield Draft(kind, "words", text.format(subject), right, wrong, (line.time,))


def purpose(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what is said of a thing, which the words do not name, while it is handed over."""
    said = _objects(facts, "purpose")
    for event, line in _spoken_during(facts, "give", "purpose"):
        assert event.what is not None and event.other is not None and line.fact is not None, "a gift"
        same = [other for other, _ in facts.of_kind("give") if (other.what, other.other) == (event.what, event.other)]
        if len(same) == 1:
            right = line.fact[2]
            text = f"What is the {event.what.name} for that the {event.other.name} is given, as is said then?"
            wrong = tuple(each for each in _enough(said, PURPOSES) if each != right)
            yield Draft("purpose", "both", text, right, wrong, (event.moment,))


def cue(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what passes right after some words."""
    for line in facts.film.lines:
        if line.fact is None or line.fact[0] != "cue":
            continue
        event = next(each for each, _ in facts.of_kind("pass") if each.cue == line.fact[1])
        text = f'What passes by right after somebody says "{line.fact[1]}"?'
        yield Draft(
            "cue", "both", text, with_article(event.who.name), options(facts.passers, event.who), (event.moment,)
        )


def who(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask who it is that says its name while it is alone on stage."""
    names = {name: actor for actor, name in facts.film.names.items()}
    for line in facts.film.lines:
        if line.fact is not None and line.fact[0] == "name":
            right = names[line.fact[1]]
            wrong = the(facts.actors, right)
            yield Draft("who", "both", f"Which of these is {line.fact[1]}?", f"the {right.name}", wrong, (line.time,))


def _spoken_during(facts: Facts, kind: str, fact: str) -> list[tuple[Event, Line]]:
    """Pair events of a kind with the line of a kind that is spoken during their moment."""
    return [
        (event, line)
        for event, _ in facts.of_kind(kind)
        for line in facts.film.lines
        if line.fact is not None and line.fact[0] == fact and event.time[0] <= line.time[0] < event.time[1]
    ]


def _objects(facts: Facts, kind: str) -> list[str]:
    return [line.fact[2] for line in facts.film.lines if line.fact is not None and line.fact[0] == kind]


def _enough(said: list[str], made_up: tuple[str, ...]) -> tuple[str, ...]:
    """Take what is said in the film, and others of the kind where that is too little for four options."""
    return tuple(said) if len(said) > 3 else tuple(dict.fromkeys([*said, *made_up]))
