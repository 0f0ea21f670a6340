"""Questions that pictures answer in any order of the shots: who gives what to whom and where, and who takes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random

from jobs.synthetic.story.casting import Prop
from jobs.synthetic.story.film import Event, StoryScene
from jobs.synthetic.story.questions.draft import Draft, Facts, moments, options, the
from jobs.synthetic.world.vocabulary import PLACES, with_article

Words = tuple[str, str, tuple[str, ...]]
"""The text of a question, its true option, and false ones."""
Gives = dict[tuple[Prop, Prop], list[tuple[Event, StoryScene]]]


def giver(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask who gives a thing to an actor."""

    def words(item: Prop, taker: Prop, right: Prop) -> Words:
        text = f"Who gives the {item.name} to the {taker.name}?"
        return text, f"the {right.name}", the(facts.actors, right, taker)

    return _of_gives(facts, "giver", ("what", "other"), "who", words)


def receiver(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask to whom an actor gives a thing."""

    def words(item: Prop, who: Prop, right: Prop) -> Words:
        return f"Who gets the {item.name} from the {who.name}?", f"the {right.name}", the(facts.actors, right, who)

    return _of_gives(facts, "receiver", ("what", "who"), "other", words)


def given(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what an actor gives to another."""

    def words(who: Prop, taker: Prop, right: Prop) -> Words:
        text = f"What does the {who.name} give to the {taker.name}?"
        return text, with_article(right.name), options(facts.items, right)

    return _of_gives(facts, "given", ("who", "other"), "what", words)


def given_where(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask at which place an actor gives a thing away."""
    known = tuple(dict.fromkeys(PLACES[scene.setting.place][0] for scene in facts.scenes))
    for (item, who), gives in _gives(facts, "what", "who").items():
        places = {scene.setting.place for _, scene in gives}
        if len(places) == 1:
            right = PLACES[places.pop()][0]
            yield Draft(
                "where",
                "pictures",
                f"Where does the {who.name} give the {item.name} away?",
                right,
                tuple(place for place in known if place != right),
                moments([event for event, _ in gives]),
            )


def taker(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask who takes what another has put down."""
    for item in facts.items:
        takes = [event for event, _ in facts.of_kind("take") if event.what == item]
        if len(takes) == 1 and takes[0].other is not None:
            right = takes[0].who
            yield Draft(
                "taker",
                "pictures",
                f"Who picks up the {item.name} from the ground?",
                f"the {right.name}",
                the(facts.actors, right),
                moments(takes),
            )


def _of_gives(
    facts: Facts, asks: str, known: tuple[str, str], third: str, words: Callable[[Prop, Prop, Prop], Words]
) -> Iterable[Draft]:
    """Draft a question for each two facts of handovers ("what", "who", "other") that leave one answer for the third."""
    for pair, gives in _gives(facts, *known).items():
        answers = {getattr(event, third) for event, _ in gives}
        if len(answers) == 1:
            text, right, wrong = words(*pair, *answers)
            yield Draft(asks, "pictures", text, right, wrong, moments([event for event, _ in gives]))


def _gives(facts: Facts, first: str, second: str) -> Gives:
    """Group the handovers by two of what ("what", "who", "other") they have."""
    groups: Gives = defaultdict(list)
    for event, scene in facts.of_kind("give"):
        groups[getattr(event, first), getattr(event, second)].append((event, scene))
    return groups
