"""Write the script of a film: its shots, their exact times, its spoken lines; random, from a seed.

Times are whole frames at `FPS`, so a shot's start and the one past its end are exact presentation times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from kinodex.index.times import cue_clock
from tests.world.sketch import scenes

FPS = 12
WIDTH_PX, HEIGHT_PX = 640, 360
MOTIONS = ("still", "left", "right", "up", "down", "bob")
ENTRIES = ("cut", "cut", "cut", "dissolve", "black")
SECONDS_PER_NEEDLE = 240
NEEDLE_THINGS = 20
SECONDS_PER_LINE = 60


@dataclass(frozen=True, slots=True)
class Shot:
    """One event of a film: a scene or title card on screen during [start_s, end_s).

    `entry` is the transition from the shot before: a cut, a dissolve, or from black. A `needle` is a shot of 2 to 4
    seconds whose thing is nowhere else in the film.
    """

    first_frame: int
    frames: int
    scene: scenes.Scene | scenes.TitleCard
    motion: str = "still"
    entry: str = "cut"
    needle: bool = False

    @property
    def start_s(self) -> float:
        return self.first_frame / FPS

    @property
    def end_s(self) -> float:
        """Presentation time of the first frame that is no longer this shot's."""
        return (self.first_frame + self.frames) / FPS

    @property
    def description(self) -> str:
        if isinstance(self.scene, scenes.TitleCard):
            return f"a title card that says {self.scene.word}"
        things = " and ".join(map(scenes.counted, self.scene.groups[:2])) or "nothing"
        return f"{things} {scenes.WHERE[self.scene.place]} {'at night' if self.scene.night else 'by day'}"


@dataclass(frozen=True, slots=True)
class SpokenLine:
    start_s: float
    end_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    film: str
    seed: int
    shots: tuple[Shot, ...]
    lines: tuple[SpokenLine, ...] = ()

    @property
    def duration_s(self) -> float:
        return self.shots[-1].end_s


def write_script(film: str, duration_s: float, seed: int, *, spoken: bool = False) -> Script:
    """Write a script of `duration_s` seconds (whole frames, at least 30 s), the same for the same arguments."""
    chance = Random(f"{film}/{seed}")
    total = max(30 * FPS, round(duration_s * FPS))
    rare = chance.sample(scenes.THING_NAMES, NEEDLE_THINGS)
    common = [thing for thing in scenes.THING_NAMES if thing not in rare]
    words = chance.sample(scenes.TITLE_WORDS, len(scenes.TITLE_WORDS))
    needles = _needle_slots(total, min(len(rare), max(1, round(total / FPS / SECONDS_PER_NEEDLE))), chance)
    longest = min(20 * FPS, max(5 * FPS, total // 6))
    shots: list[Shot] = []
    position, place = 0, ""
    while position < total:
        after_card = bool(shots) and isinstance(shots[-1].scene, scenes.TitleCard)
        if needles and position >= needles[0] and total - position >= 6 * FPS:
            needles.pop(0)
            scene: scenes.Scene | scenes.TitleCard = _random_scene([rare.pop()], place, chance, most=1)
            shot = Shot(position, chance.randint(2 * FPS, 4 * FPS), scene, needle=True)
        elif words and not after_card and (not shots or chance.random() < 0.08):
            card = scenes.TitleCard(words.pop(), *chance.choice(scenes.CARD_PAINTS))
            shot = Shot(position, chance.randint(3 * FPS, 4 * FPS), card)
        else:
            scene = _random_scene(common, place, chance, most=3)
            frames = chance.randint(4 * FPS, longest)
            shot = Shot(position, frames, scene, chance.choice(MOTIONS), chance.choice(ENTRIES))
        shot = _fit(shot, total)
        shots.append(shot)
        position += shot.frames
        place = shot.scene.place if isinstance(shot.scene, scenes.Scene) else place
    return Script(film, seed, tuple(shots), _spoken_lines(total / FPS, chance) if spoken else ())


def _needle_slots(total: int, number: int, chance: Random) -> list[int]:
    """Choose frames from which the next shot is a needle: one in each equal part of the film, none at the start."""
    part = total // number
    return [
        number_of * part + chance.randint(min(part // 3, 10 * FPS), max(part * 3 // 5, 11 * FPS))
        for number_of in range(number)
    ]


def _fit(shot: Shot, total: int) -> Shot:
    """End the shot with the film, or extend it to there where less than four seconds would be left."""
    left = total - shot.first_frame
    if shot.needle:
        return replace(shot, frames=min(shot.frames, left))
    return replace(shot, frames=left if left < shot.frames + 4 * FPS else shot.frames)


def _random_scene(things: list[str], last_place: str, chance: Random, most: int) -> scenes.Scene:
    place = chance.choice([name for name in scenes.PLACE_NAMES if name != last_place])
    night = chance.random() < 0.35
    if most > 1 and chance.random() < 0.04:
        return scenes.Scene(place, night)
    number = min(most, chance.choices((1, 2, 3), (60, 30, 10))[0])
    positions = {
        1: (chance.choice(("left", "middle", "right")),),
        2: ("left", "right"),
        3: ("left", "middle", "right"),
    }[number]
    groups = []
    for thing, position in zip(chance.sample(things, number), positions, strict=True):
        count = chance.randint(2, 5 if number == 1 else 3) if number < 3 and chance.random() < 0.35 else 1
        position = "middle" if number == 1 and count > 1 else position
        groups.append(
            scenes.Group(
                thing,
                chance.choice(scenes.COLOUR_NAMES),
                count,
                chance.choice(tuple(scenes.SIDE_OF_SIZE)),
                position,
                chance.random(),
                chance.random() < 0.5,
            )
        )
    return scenes.Scene(place, night, tuple(groups))


def _spoken_lines(duration_s: float, chance: Random) -> tuple[SpokenLine, ...]:
    word = chance.choice(scenes.TITLE_WORDS).lower()
    texts = [
        f"Listen well: the code word is {word}.",
        "Nobody knows how long this journey will take.",
        "Keep your eyes open, the next thing may come and go quickly.",
        "It was quieter than anyone remembered.",
        "From here on, everything looks a little different.",
        "We will come back to this place in the morning.",
    ]
    number = max(3, int(duration_s // SECONDS_PER_LINE))
    lines = []
    for index in range(number):
        start = round((index + chance.uniform(0.2, 0.7)) * duration_s / number, 1)
        text = texts[0] if index == number // 2 else texts[1 + index % (len(texts) - 1)]
        lines.append(SpokenLine(start, round(start + 3.0, 1), text))
    return tuple(lines)


def as_json(script: Script) -> dict[str, Any]:
    return {
        "film": script.film,
        "seed": script.seed,
        "width_px": WIDTH_PX,
        "height_px": HEIGHT_PX,
        "fps": FPS,
        "duration_s": script.duration_s,
        "shots": [_shot_json(shot) for shot in script.shots],
        "spoken": [{"start_s": line.start_s, "end_s": line.end_s, "text": line.text} for line in script.lines],
    }


def _shot_json(shot: Shot) -> dict[str, Any]:
    said = ("start_s", "end_s", "description", "needle", "motion", "entry")
    facts: dict[str, Any] = {name: getattr(shot, name) for name in said}
    if isinstance(shot.scene, scenes.TitleCard):
        return {**facts, "title_card": shot.scene.word}
    names = ("thing", "colour", "count", "size", "position")
    groups = [{name: getattr(group, name) for name in names} for group in shot.scene.groups]
    return {**facts, "place": shot.scene.place, "night": shot.scene.night, "groups": groups}


def subtitles(script: Script) -> str:
    return subrip(script.lines)


def subrip(lines: Sequence[SpokenLine]) -> str:
    blocks = []
    for number, line in enumerate(lines, 1):
        blocks.append(f"{number}\n{cue_clock(line.start_s, ',')} --> {cue_clock(line.end_s, ',')}\n{line.text}\n")
    return "\n".join(blocks)
