"""Questions that pictures answer in the order of the story: who comes back, what passes meanwhile or first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random

from jobs.synthetic.story.casting import PASSERS, Prop
from jobs.synthetic.story.film import Event, StoryScene
from jobs.synthetic.story.questions.draft import OPTIONS, Draft, Facts, moments, options, the
from jobs.synthetic.world.vocabulary import NUMBERS, with_article


def comes_back(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask who goes away from a landmark and comes back to it."""
    for scene in _seen_once(facts):
        returns = [event for event in scene.events if event.kind == "return"]
        if len({event.who for event in returns}) == 1:
            right = returns[0].who
            here = [event.who for event in scene.events if event.kind == "enter"]
            leaves = [event for event in scene.events if event.kind == "leave" and event.who == right]
            others = [*(actor for actor in here if actor != right), *facts.actors]
            yield Draft(
                "returns",
                "pictures",
                f"Who goes away from the {scene.setting.landmark.name} and comes back a little later?",
                f"the {right.name}",
                the(dict.fromkeys(others), right),
                moments([*leaves, *returns]),
                ordered=True,
            )


def brings(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what one who comes back brings."""
    for scene in _seen_once(facts):
        returns = [event for event in scene.events if event.kind == "return"]
        often = Counter(event.who for event in returns)
        for event in returns:
            left = next(each for each in scene.events if each.who == event.who and each.back_at_s == event.time[0])
            if often[event.who] == 1 and event.what is not None and left.what is None:
                yield Draft(
                    "brings",
                    "pictures",
                    f"What does the {event.who.name} bring when it comes back to the {scene.setting.landmark.name}?",
                    with_article(event.what.name),
                    options(facts.items, event.what),
                    (event.moment,),
                    ordered=True,
                )


def meanwhile(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask what passes while one is away; the false options pass such places too, as the landmark tells the place."""
    for scene in _seen_once(facts):
        passes = [event for event in scene.events if event.kind == "pass"]
        away = [event for event in scene.events if event.kind == "leave" and event.back_at_s is not None]
        often = Counter(event.who for event in away)
        for event in away:
            low, high = event.time[1], event.back_at_s or 0.0
            inside = [each for each in passes if low <= each.moment[0] and each.moment[1] <= high]
            near = {each.who for each in passes if each.time[0] < high and each.time[1] > low}
            if often[event.who] == 1 and len(inside) == 1 and near == {inside[0].who}:
                right = inside[0].who
                likely = [each for each in facts.passers if each.thing in PASSERS[scene.setting.place]]
                yield Draft(
                    "meanwhile",
                    "pictures",
                    f"What passes by while the {event.who.name} is away from the {scene.setting.landmark.name}?",
                    with_article(right.name),
                    options(likely, right),
                    (inside[0].moment,),
                    ordered=True,
                )


def first(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask which of four things passes first."""
    for number, passer in enumerate(facts.passers[: -(OPTIONS - 1)]):
        passes = [event for event, _ in facts.of_kind("pass") if event.who == passer]
        yield Draft(
            "first",
            "pictures",
            "Which of these passes by first in the film?",
            with_article(passer.name),
            options(facts.passers[number + 1 :]),
            moments(passes[:1]),
            ordered=True,
        )


def last(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask which of four things changes hands last."""
    gives = [event for event, _ in facts.of_kind("give")]
    in_order = list(dict.fromkeys(event.what for event in reversed(gives) if event.what))
    for number, item in enumerate(in_order[: -(OPTIONS - 1)]):
        of_item = [event for event in gives if event.what == item]
        yield Draft(
            "last",
            "pictures",
            "Which of these is handed over last in the film?",
            with_article(item.name),
            options(in_order[number + 1 :]),
            moments(of_item[-1:]),
            ordered=True,
        )


def count(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask which of four things passes so many times, once for each number.

    "How many times" has an answer that needs no film: two is the most frequent by far.
    """
    passes: dict[Prop, list[Event]] = defaultdict(list)
    for event, _scene in facts.of_kind("pass"):
        passes[event.who].append(event)
    for number in range(2, len(NUMBERS)):
        often = [passer for passer in facts.passers if len(passes[passer]) == number]
        for passer in often[:1]:
            yield Draft(
                "count",
                "pictures",
                f"Which of these passes by exactly {NUMBERS[number]} times in the film?",
                with_article(passer.name),
                options(facts.passers, *often),
                moments(passes[passer]),
                ordered=True,
            )


def holder(facts: Facts, _: Random) -> Iterable[Draft]:
    """Ask who has a thing in the end that changed hands more than once."""
    changes: dict[Prop, list[Event]] = defaultdict(list)
    for event, _scene in facts.of_kind("give", "put", "take"):
        if event.what is not None:
            changes[event.what].append(event)
    for item, events in changes.items():
        if len(events) > 1 and events[-1].kind != "put":
            right = events[-1].other if events[-1].kind == "give" else events[-1].who
            assert right is not None, "what is given is given to somebody"
            earlier = dict.fromkeys(event.who for event in events)
            yield Draft(
                "holder",
                "pictures",
                f"Who has the {item.name} in the end?",
                f"the {right.name}",
                the(dict.fromkeys([*earlier, *facts.actors]), right),
                moments(events[-1:]),
                ordered=True,
            )


def _seen_once(facts: Facts) -> list[StoryScene]:
    """List the scenes in settings that have no other scene, which their landmark names."""
    return [scene for scene in facts.scenes if facts.visits(scene) == 1]
