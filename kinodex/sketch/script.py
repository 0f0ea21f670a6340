"""Write the script of a film: its shots, their exact times, its spoken lines; random, from a seed.

Times are whole frames at `FPS`, so a shot's start and the one past its end are exact presentation times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.index.times import cue_clock
from kinodex.pipeline.decoding.stream import COMMENT, DRAWN
from kinodex.pipeline.video_writer import encode_video
from kinodex.sketch import scenes
from kinodex.sketch.drawings import draw_place

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
        things = " and ".join(map(_option, self.scene.groups[:2])) or "nothing"
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


# Multiple-choice questions about a film, made from its script: one option is true, and nothing is ambiguous.
#
# What a question refers to is shown once in the film; the false options are false throughout what is asked about.

OPTIONS = 4
SECONDS_PER_QUESTION = 30
AFTERMATH_S = 60.0
"""Distance of false options: those of "what comes after" are nowhere in these seconds around the moment asked about."""


@dataclass(frozen=True, slots=True)
class FilmQuestion:
    """A question, its options, the index of the true one, and the shot that shows it: a line of questions.jsonl.

    The kind is "needle" if that is a shot of 2 to 4 seconds, else what the question `asks`.
    """

    question_id: str
    video: str
    kind: str
    asks: str
    question: str
    options: tuple[str, ...]
    answer: int
    evidence: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Draft:
    asks: str
    text: str
    right: str
    wrong: list[str]
    shot: Shot


@dataclass(frozen=True, slots=True)
class _Film:
    """A script with counts of everything in it, in shots."""

    shots: tuple[Shot, ...]
    things: Counter[str]
    coloured: Counter[tuple[str, str]]
    placed: Counter[tuple[str, str]]
    full: Counter[tuple[str, str, str]]


def question_count(duration_s: float) -> int:
    """One for each half minute, at least 8 and at most 60."""
    return max(8, min(60, round(duration_s / SECONDS_PER_QUESTION)))


def write_questions(script: Script, video: str, seed: int, limit: int | None = None) -> list[FilmQuestion]:
    """Write questions about a film, every kind in its share, needles first; the same for the same arguments.

    `limit` defaults to `question_count`.
    """
    chance = Random(f"questions/{script.film}/{seed}")
    film = _survey(script)
    number = limit or question_count(script.duration_s)
    drafts: dict[str, list[_Draft]] = {}
    for index, shot in enumerate(film.shots):
        for maker in _MAKERS:
            for draft in maker(film, index, shot, chance):
                drafts.setdefault("needle" if shot.needle else draft.asks, []).append(draft)
    chosen = _take_turns(drafts, number, chance)
    return [_finished(draft, video, f"{script.film}-{index + 1:03d}", chance) for index, draft in enumerate(chosen)]


def _take_turns(drafts: dict[str, list[_Draft]], number: int, chance: Random) -> list[_Draft]:
    """Take drafts of every kind in turn, at most two for a shot, no text with the same answer twice."""
    for pile in drafts.values():
        chance.shuffle(pile)
    order = sorted(drafts, key=lambda kind: (kind != "needle", kind))
    chosen: list[_Draft] = []
    used: Counter[int] = Counter()
    texts: set[tuple[str, str]] = set()
    while len(chosen) < number and any(drafts.values()):
        for kind in order:
            while drafts[kind]:
                draft = drafts[kind].pop()
                if used[draft.shot.first_frame] < 2 and (draft.text, draft.right) not in texts:
                    used[draft.shot.first_frame] += 1
                    texts.add((draft.text, draft.right))
                    chosen.append(draft)
                    break
    return chosen[:number]


def _finished(draft: _Draft, video: str, question_id: str, chance: Random) -> FilmQuestion:
    options = [draft.right, *chance.sample(draft.wrong, OPTIONS - 1)]
    chance.shuffle(options)
    return FilmQuestion(
        question_id,
        video,
        "needle" if draft.shot.needle else draft.asks,
        draft.asks,
        draft.text,
        tuple(options),
        options.index(draft.right),
        (draft.shot.start_s, draft.shot.end_s),
    )


def _survey(script: Script) -> _Film:
    found = [(group.thing, group.colour, _place(shot)) for shot in script.shots for group in _groups(shot)]
    return _Film(
        script.shots,
        things=Counter(thing for thing, _, _ in found),
        coloured=Counter((thing, colour) for thing, colour, _ in found),
        placed=Counter((thing, place) for thing, _, place in found),
        full=Counter(found),
    )


def _groups(shot: Shot) -> tuple[scenes.Group, ...]:
    return shot.scene.groups if isinstance(shot.scene, scenes.Scene) else ()


def _place(shot: Shot) -> str:
    return shot.scene.place if isinstance(shot.scene, scenes.Scene) else ""


def _named(group: scenes.Group, *, colour: bool = True) -> str:
    noun = scenes.plural(group.thing) if group.count > 1 or group.thing == "scissors" else group.thing
    return f"{group.colour} {noun}" if colour else noun


def _option(group: scenes.Group) -> str:
    """Write a group as an option: "a red boat" or "three red boats"."""
    return f"{scenes.NUMBERS[group.count]} {_named(group)}" if group.count > 1 else scenes.with_article(_named(group))


def _is(group: scenes.Group) -> str:
    return "are" if group.count > 1 or group.thing == "scissors" else "is"


def _colour(film: _Film, _: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    for group in _groups(shot):
        if film.placed[group.thing, _place(shot)] == 1:
            text = f"What colour {_is(group)} the {_named(group, colour=False)} {scenes.WHERE[_place(shot)]}?"
            yield _Draft(
                "colour", text, group.colour, [name for name in scenes.COLOUR_NAMES if name != group.colour], shot
            )


def _count(film: _Film, _: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    for group in _groups(shot):
        if film.full[group.thing, group.colour, _place(shot)] == 1 and group.thing != "scissors":
            text, right = (
                f"How many {group.colour} {scenes.plural(group.thing)} are there {scenes.WHERE[_place(shot)]}?",
                scenes.NUMBERS[group.count],
            )
            yield _Draft("count", text, right, [word for word in scenes.NUMBERS[1:] if word != right], shot)


def _where(film: _Film, _: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    for group in _groups(shot):
        if film.coloured[group.thing, group.colour] == 1:
            wrong = [scenes.WHERE[place] for place in scenes.PLACE_NAMES if place != _place(shot)]
            yield _Draft("place", f"Where {_is(group)} the {_named(group)}?", scenes.WHERE[_place(shot)], wrong, shot)


def _appears(film: _Film, _: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    for group in _groups(shot):
        if film.coloured[group.thing, group.colour] == 1:
            known = sorted(film.things)
            wrong = {
                scenes.with_article(f"{colour} {thing}")
                for thing, colour in ((chance.choice(known), chance.choice(scenes.COLOUR_NAMES)) for _ in range(12))
                if not film.coloured[thing, colour] and thing != group.thing
            }
            if len(wrong) >= OPTIONS - 1:
                right = scenes.with_article(f"{group.colour} {group.thing}")
                yield _Draft("appears", "Which of these appears in the film?", right, sorted(wrong), shot)
                seen = f"Which of these can be seen {scenes.WHERE[_place(shot)]}?"
                yield _Draft("appears", seen, right, sorted(wrong), shot)


def _after(film: _Film, index: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    """Ask about `shot`, which comes right after the shot that the question names."""
    before = film.shots[index - 1] if index else None
    if before is None or not _groups(shot):
        return
    moment = _reference(film, before, chance)
    near = {
        (group.thing, group.colour)
        for other in film.shots
        if abs(other.start_s - shot.start_s) < AFTERMATH_S
        for group in _groups(other)
    }
    wrong = {
        _option(group) for other in film.shots for group in _groups(other) if (group.thing, group.colour) not in near
    }
    if len(wrong) < 2 * OPTIONS:
        wrong |= {
            scenes.with_article(f"{chance.choice(scenes.COLOUR_NAMES)} {thing}")
            for thing in scenes.THING_NAMES
            if all(thing != name for name, _ in near)
        }
    if moment:
        yield _Draft("after", f"What appears right after {moment}?", _option(_groups(shot)[0]), sorted(wrong), shot)


def _title(film: _Film, index: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    before = film.shots[index - 1] if index else None
    if before is None or not isinstance(shot.scene, scenes.TitleCard):
        return
    moment = _reference(film, before, chance)
    if moment:
        wrong = [word for word in scenes.TITLE_WORDS if word != shot.scene.word]
        text = f"Which word does the title card right after {moment} show?"
        yield _Draft("title", text, shot.scene.word, wrong, shot)


def _reference(film: _Film, shot: Shot, chance: Random) -> str | None:
    """Describe the shot in words that fit no other shot of the film; None if there are none."""
    if isinstance(shot.scene, scenes.TitleCard):
        return f"the title card {shot.scene.word}"
    single = [group for group in _groups(shot) if film.full[group.thing, group.colour, _place(shot)] == 1]
    return f"the {_named(chance.choice(single))} {scenes.WHERE[_place(shot)]}" if single else None


def _first(film: _Film, index: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    """Ask for the first of four things that are each shown once."""
    once = [group for group in _groups(shot) if film.coloured[group.thing, group.colour] == 1]
    later = sorted(
        {
            _option(group)
            for other in film.shots[index + 1 :]
            for group in _groups(other)
            if film.coloured[group.thing, group.colour] == 1
        }
    )
    if once and len(later) >= OPTIONS - 1 and not shot.needle:
        yield _Draft("first", "Which of these is seen first?", _option(once[0]), later, shot)


_Maker = Callable[[_Film, int, Shot, Random], Iterable[_Draft]]
_MAKERS: tuple[_Maker, ...] = (_colour, _count, _where, _appears, _after, _title, _first)


# Draw a script frame by frame and encode it, streaming: an hour of film in a few minutes.

FADE_FRAMES = FPS // 2
DRIFT = 0.14
Pixels = NDArray[np.uint8]


OnFrame = Callable[[int], object]


def render_film(script: Script, path: Path, on_frame: OnFrame = lambda number: None, every: int = 1) -> None:
    """Draw and encode the film to `path` (.mp4); the same script gives the same bytes."""
    encode_frames(draw_frames(script, every), path, on_frame, every)


def encode_frames(frames: Iterator[Pixels], path: Path, on_frame: OnFrame, every: int = 1) -> None:
    def reported() -> Iterator[Pixels]:
        for number, picture in enumerate(frames):
            on_frame(number * every)
            yield picture

    encode_video(reported(), path, width_px=WIDTH_PX, height_px=HEIGHT_PX, fps=FPS // every, tags={COMMENT: DRAWN})


def draw_frames(script: Script, every: int = 1) -> Iterator[Pixels]:
    """Draw the frames of a film in order, all or one in `every`: uint8 [height, width, 3]."""
    last: Pixels = np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8)
    for number, shot in enumerate(script.shots):
        picture_of = _pictures(shot, script.seed * 100003 + number)
        for frame in range(-shot.first_frame % every, shot.frames, every):
            yield _transition(last, picture_of(frame), shot.entry, (frame + 1) / FADE_FRAMES)
        last = picture_of(shot.frames - 1)


def _transition(before: Pixels, picture: Pixels, entry: str, share: float) -> Pixels:
    if entry == "cut" or share >= 1:
        return picture
    old = before if entry == "dissolve" else np.zeros_like(picture)
    mixed: Pixels = (picture * np.float32(share) + old * np.float32(1 - share)).astype(np.uint8)
    return mixed


def _pictures(shot: Shot, seed: int) -> Callable[[int], Pixels]:
    """Return what draws a frame of a shot; where nothing has moved, it is the picture of the frame before."""
    if isinstance(shot.scene, scenes.TitleCard):
        still = np.asarray(scenes.draw_card(shot.scene, WIDTH_PX, HEIGHT_PX))
        return lambda frame: still
    background = draw_place(shot.scene.place, shot.scene.night, WIDTH_PX, HEIGHT_PX, Random(seed))
    items = scenes.lay_out(shot.scene, WIDTH_PX, HEIGHT_PX)
    drawn: dict[tuple[int, int], Pixels] = {}

    def picture_of(frame: int) -> Pixels:
        shift_x, shift_y = _shift(shot, frame)
        offset = (round(shift_x * WIDTH_PX), round(shift_y * HEIGHT_PX))
        if offset not in drawn:
            drawn.clear()
            drawn[offset] = _compose(background, items, shift_x, shift_y)
        return drawn[offset]

    return picture_of


def _compose(background: Image.Image, items: list[scenes.Pasted], shift_x: float, shift_y: float) -> Pixels:
    canvas = background.copy()
    for item in items:
        scenes.paste(canvas, item, shift_x, shift_y)
    return np.asarray(canvas)


def _shift(shot: Shot, frame: int) -> tuple[float, float]:
    """Offset of everything from its place, in fractions of width and height; zero in the middle of the shot."""
    part = frame / max(1, shot.frames - 1) - 0.5
    if shot.motion in ("left", "right"):
        crowded = isinstance(shot.scene, scenes.TitleCard) or len(shot.scene.groups) > 1 or shot.scene.groups[:1] == ()
        reach = 0.04 if crowded else DRIFT
        return (part if shot.motion == "right" else -part) * reach, 0.0
    if shot.motion in ("up", "down"):
        return 0.0, (part if shot.motion == "down" else -part) * 0.06
    if shot.motion == "bob":
        return 0.0, 0.015 * math.sin(2 * math.pi * frame / FPS / 2)
    return 0.0, 0.0
