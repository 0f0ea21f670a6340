"""Questions that pictures answer in any order of the shots: who gives what to whom and where, and who takes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random

from jobs.synthetic.story.casting import Prop
from jobs.synthetic.story.film import Event, StoryScene
from jobs.synthetic.story.questions.draft import Draft, Facts, moments, options, the
from jobs.synthetic.world.vocabulary import PLACES, with_article

Gives = dict[tuple[Prop, Prop], list[tuple[Event, StoryScene]]]


def giver(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask who gives a thing to an actor."""
    for (item, taker), gives in _gives(facts, "what", "other").items():
        givers = {event.who for event, _ in gives}
        if len(givers) == 1:
            (right,) = givers
            yield Draft(
                "giver",
                "pictures",
                f"Who gives the {item.name} to the {taker.name}?",
                f"the {right.name}",
                the(facts.actors, right, taker),
                moments([event for event, _ in gives]),
            )


def receiver(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask to whom an actor gives a thing."""
    for (item, who), gives in _gives(facts, "what", "who").items():
        takers = {event.other for event, _ in gives}
        if len(takers) == 1:
            (right,) = takers
            assert right is not None, "what is given is given to somebody"
            yield Draft(
                "receiver",
                "pictures",
                f"Who gets the {item.name} from the {who.name}?",
                f"the {right.name}",
                the(facts.actors, right, who),
                moments([event for event, _ in gives]),
            )


def given(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what an actor gives to another."""
    for (who, taker), gives in _gives(facts, "who", "other").items():
        items = {event.what for event, _ in gives}
        if len(items) == 1:
            (right,) = items
            assert right is not None, "something is given"
            yield Draft(
                "given",
                "pictures",
                f"What does the {who.name} give to the {taker.name}?",
                with_article(right.name),
                options(facts.items, right),
                moments([event for event, _ in gives]),
            )


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


def _gives(facts: Facts, first: str, second: str) -> Gives:
    """Group the handovers by two of what ("what", "who", "other") they have."""
    groups: Gives = defaultdict(list)
    for event, scene in facts.of_kind("give"):
        groups[getattr(event, first), getattr(event, second)].append((event, scene))
    return groups
