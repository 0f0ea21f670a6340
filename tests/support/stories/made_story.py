"""A story of a few events, written by hand."""

from __future__ import annotations

from kinodex.sketch.scenes import TitleCard
from tests.world.story import Event, Line, Prop, Setting, StoryFilm, StoryScene, StoryShot

CAT, DOG, DUCK, HORSE = Prop("cat", "red"), Prop("dog", "blue"), Prop("duck", "white"), Prop("horse", "pink")
KEY, HAT = Prop("key", "white"), Prop("hat", "black")
BUSES = tuple(Prop("bus", colour) for colour in ("green", "red", "pink", "blue"))
HOUSE, TENT = Prop("house", "green"), Prop("tent", "brown")
AT_HOUSE = Setting("city", False, HOUSE, 0.3, "HOTEL 7", 0.545, 1)
AT_TENT = Setting("desert", True, TENT, 0.3, None, 0.545, 2)
NAMES = {CAT: "Mara", DOG: "Otto", DUCK: "Lina", HORSE: "Bruno"}


def event(
    kind: str,
    who: Prop,
    start_s: float,
    what: Prop | None = None,
    other: Prop | None = None,
    *,
    cue: str | None = None,
    back_at_s: float | None = None,
) -> Event:
    """An event of four seconds, whose moment is its third."""
    return Event(kind, who, (start_s, start_s + 4), (start_s + 2, start_s + 3), what, other, cue, back_at_s)


def story(*scenes: tuple[Setting, list[Event]], lines: tuple[Line, ...] = ()) -> StoryFilm:
    """A film of scenes of 100 s, each a shot of 98 s after a title card of 2 s; events are in the time of the film."""
    shots: list[StoryShot] = []
    for number in range(len(scenes)):
        shots += [StoryShot(number * 1200, 24, card=TitleCard(f"WORD{number}"))]
        shots += [StoryShot(number * 1200 + 24, 1176, number)]
    made = tuple(
        StoryScene(setting, (number * 100 + 2, number * 100 + 100), (), tuple(events))
        for number, (setting, events) in enumerate(scenes)
    )
    return StoryFilm("film", 0, "story", tuple(shots), made, lines, NAMES)
