"""A question about a story before its options are chosen, and what questions are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from jobs.synthetic.story.casting import Prop
from jobs.synthetic.story.film import Event, Range, StoryFilm, StoryScene
from jobs.synthetic.world.vocabulary import with_article

OPTIONS = 4
Needs = Literal["pictures", "text", "words", "both"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A question, its true option, options that are false, and the story ranges that show or say the truth.

    `ordered` marks a question that has no answer once the shots are in another order.
    """

    asks: str
    needs: Needs
    text: str
    right: str
    wrong: tuple[str, ...]
    evidence: tuple[Range, ...]
    ordered: bool = False


Maker = Callable[["Facts", Random], Iterable[Draft]]


class Facts:
    """The events of a film by kind, and the names of all that occurs in it."""

    def __init__(self, film: StoryFilm) -> None:
        self.film = film
        self.scenes = film.scenes
        self.events = list(film.events())
        self.actors = _in_order(event.who for event, _ in self.events if event.kind in ("enter", "return"))
        self.passers = _in_order(event.who for event, _ in self.events if event.kind == "pass")
        self.items = _in_order(
            event.what for event, _ in self.events if event.what and event.kind in ("enter", "return", "give")
        )
        self.landmarks = _in_order(scene.setting.landmark for scene in film.scenes)

    def of_kind(self, *kinds: str) -> list[tuple[Event, StoryScene]]:
        """List the events of some kinds, in the order of the story."""
        return [each for each in self.events if each[0].kind in kinds]

    def visits(self, scene: StoryScene) -> int:
        """Count the scenes in the setting of a scene."""
        return sum(other.setting == scene.setting for other in self.scenes)


def _in_order(props: Iterable[Prop]) -> list[Prop]:
    return list(dict.fromkeys(props))


def options(props: Iterable[Prop], *without: Prop) -> tuple[str, ...]:
    """Write things as options with articles, some of them left out."""
    return tuple(with_article(prop.name) for prop in props if prop not in without)


def the(props: Iterable[Prop], *without: Prop) -> tuple[str, ...]:
    """Write things as options with "the", some of them left out."""
    return tuple(f"the {prop.name}" for prop in props if prop not in without)


def moments(events: Sequence[Event]) -> tuple[Range, ...]:
    """List the moments of events."""
    return tuple(event.moment for event in events)
