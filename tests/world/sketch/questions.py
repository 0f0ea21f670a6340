"""Multiple-choice questions about a film, made from its script: one option is true, and nothing is ambiguous.

What a question refers to is shown once in the film; the false options are false throughout the range that it is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from tests.world.sketch import scenes
from tests.world.sketch.script import Script, Shot

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
    """Return one for each half minute, at least 8 and at most 60."""
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


def _is(group: scenes.Group) -> str:
    return "are" if group.count > 1 or group.thing == "scissors" else "is"


def _colour(film: _Film, _: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    for group in _groups(shot):
        if film.placed[group.thing, _place(shot)] == 1:
            text = f"What colour {_is(group)} the {scenes.named(group, colour=False)} {scenes.WHERE[_place(shot)]}?"
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
            yield _Draft(
                "place", f"Where {_is(group)} the {scenes.named(group)}?", scenes.WHERE[_place(shot)], wrong, shot
            )


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
        scenes.counted(group)
        for other in film.shots
        for group in _groups(other)
        if (group.thing, group.colour) not in near
    }
    if len(wrong) < 2 * OPTIONS:
        wrong |= {
            scenes.with_article(f"{chance.choice(scenes.COLOUR_NAMES)} {thing}")
            for thing in scenes.THING_NAMES
            if all(thing != name for name, _ in near)
        }
    if moment:
        yield _Draft(
            "after", f"What appears right after {moment}?", scenes.counted(_groups(shot)[0]), sorted(wrong), shot
        )


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
    return f"the {scenes.named(chance.choice(single))} {scenes.WHERE[_place(shot)]}" if single else None


def _first(film: _Film, index: int, shot: Shot, chance: Random) -> Iterable[_Draft]:
    """Ask for the first of four things that are each shown once."""
    once = [group for group in _groups(shot) if film.coloured[group.thing, group.colour] == 1]
    later = sorted(
        {
            scenes.counted(group)
            for other in film.shots[index + 1 :]
            for group in _groups(other)
            if film.coloured[group.thing, group.colour] == 1
        }
    )
    if once and len(later) >= OPTIONS - 1 and not shot.needle:
        yield _Draft("first", "Which of these is seen first?", scenes.counted(once[0]), later, shot)


_Maker = Callable[[_Film, int, Shot, Random], Iterable[_Draft]]
_MAKERS: tuple[_Maker, ...] = (_colour, _count, _where, _appears, _after, _title, _first)
