"""A story film before it is drawn: its places, things in motion, events, shots and lines.

Times called `story` run in the order of the story, in seconds; a shot shows a stretch of story time, so that shots in
another order make another film of the same content. Times are whole frames at `FPS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jobs.synthetic.story.casting import Prop
from jobs.synthetic.world.scene import TitleCard
from jobs.synthetic.world.script import FPS

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Key:
    """The place of a thing at a time: its middle as fractions of the stage, its side as a fraction of the height."""

    time_s: float
    x: float
    y: float
    side: float


@dataclass(frozen=True, slots=True)
class Track:
    """A thing on stage from its first key to its last, in a straight line from each to the next."""

    prop: Prop
    keys: tuple[Key, ...]
    mirrored: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """A place in one light with a landmark, and a sign beside it or none; it looks the same at each visit."""

    place: str
    night: bool
    landmark: Prop
    landmark_x: float
    sign: str | None
    sign_x: float
    seed: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens during a story range.

    Kinds: "enter" and "return" (`what` is carried in), "leave", "give" (`what`, to `other`), "put" (`what` down),
    "take" (`what`, which `other` had put down), "pass". `moment` is the part that must be seen to know it, which no cut
    interrupts. `back_at_s` is the start of the return from a leave, if there is one in the scene.
    """

    kind: str
    who: Prop
    time: Range
    moment: Range
    what: Prop | None = None
    other: Prop | None = None
    cue: str | None = None
    back_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A spoken line during a story range. `fact` is what a question can ask about it: kind, subject, object."""

    time: Range
    text: str
    speaker: str
    fact: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class StoryScene:
    """A stretch of story in one setting."""

    setting: Setting
    time: Range
    tracks: tuple[Track, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The part of the stage that a camera shows: left and top edge, and width (and height) as a fraction."""

    left: float = 0.0
    top: float = 0.0
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class StoryShot:
    """A stretch of story frames on screen: of a scene (its number) in a view, or a title card."""

    first_frame: int
    frames: int
    scene: int | None = None
    view: View = View()
    card: TitleCard | None = None

    @property
    def time(self) -> Range:
        """The story range."""
        return self.first_frame / FPS, (self.first_frame + self.frames) / FPS


@dataclass(frozen=True, slots=True)
class StoryFilm:
    """A film: its shots in the order of the screen, scenes in that of the story, and names of those in it."""

    film: str
    seed: int
    form: str
    shots: tuple[StoryShot, ...]
    scenes: tuple[StoryScene, ...]
    lines: tuple[Line, ...]
    names: dict[Prop, str]

    @property
    def duration_s(self) -> float:
        """Seconds of film."""
        return sum(shot.frames for shot in self.shots) / FPS

    def starts(self) -> Iterator[tuple[StoryShot, float]]:
        """Go through the shots with the time at which each starts on screen."""
        frame = 0
        for shot in self.shots:
            yield shot, frame / FPS
            frame += shot.frames

    def on_screen(self, story: Range) -> list[Range]:
        """Return the ranges of the film that show a story range, in order, joined where they meet."""
        pieces: list[Range] = []
        for shot, start_s in self.starts():
            low, high = max(story[0], shot.time[0]), min(story[1], shot.time[1])
            if low >= high:
                continue
            piece = (round(start_s + low - shot.time[0], 6), round(start_s + high - shot.time[0], 6))
            if pieces and abs(pieces[-1][1] - piece[0]) < 1e-5:
                piece = (pieces.pop()[0], piece[1])
            pieces.append(piece)
        return pieces

    def events(self) -> Iterator[tuple[Event, StoryScene]]:
        """Go through all events in the order of the story, each with its scene."""
        for scene in self.scenes:
            for event in scene.events:
                yield event, scene

    def reordered(self, shots: tuple[StoryShot, ...], form: str) -> StoryFilm:
        """Return the film with its shots in another order."""
        return replace(self, shots=shots, form=form)


def whole_frames(time_s: float) -> float:
    """Round a time to whole frames."""
    return round(time_s * FPS) / FPS
