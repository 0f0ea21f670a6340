"""Spoken lines: mostly of what no picture shows (names, plans, reasons, code words), sometimes of what one does.

Lines bound to an act are made here and timed by it; free lines are put where nobody speaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from jobs.synthetic.story.acts import LINE_S
from jobs.synthetic.story.casting import (
    CHATTER,
    CODE_WORDS,
    CUES,
    GATES,
    GOALS,
    ITEMS,
    PURPOSES,
    REASONS,
    Pool,
    Prop,
)
from jobs.synthetic.story.film import Line, Range, StoryScene, StoryShot, whole_frames
from jobs.synthetic.world.vocabulary import with_article

UNTIMED: Range = (0.0, 0.0)
SHARE_OF_SHOTS = 0.55
"""The share of shots in which a free line is spoken, where there is time."""


def name_line(name: str, actor: Prop, chance: Random) -> Line:
    """Write the line in which an actor, alone on stage, says its name and nothing of its looks."""
    text = chance.choice(("Good to see you. My name is {}.", "They call me {}.", "Hello, {} here, right on time."))
    return Line(UNTIMED, text.format(name), name, ("name", name, actor.name))


def gift_line(pool: Pool, giver: str, chance: Random) -> Line | None:
    """Write what is said at a handover: what the thing, which is not named, is for."""
    purpose = pool.word(PURPOSES)
    if purpose is None:
        return None
    text = chance.choice(("Take this, we need it for {}.", "Keep it safe, it is for {}.", "It is yours until {}."))
    return Line(UNTIMED, text.format(purpose), giver, ("purpose", "", purpose))


def cue_line(pool: Pool, names: Mapping[Prop, str], chance: Random) -> Line | None:
    """Write a line that comes right before something passes, and does not name it."""
    cue = pool.word(CUES)
    if cue is None:
        return None
    return Line(UNTIMED, f"{cue}.", chance.choice(list(names.values())), ("cue", cue, ""))


def free_lines(
    shots: Sequence[StoryShot],
    scenes: Sequence[StoryScene],
    spoken: Sequence[Line],
    names: Mapping[Prop, str],
    pool: Pool,
    chance: Random,
) -> list[Line]:
    """Write lines for shots in which there is time for one beside those that are spoken already."""
    lines: list[Line] = []
    used: set[str] = set()
    for shot in shots:
        start, end = shot.time
        free = _gap(start, end, [line.time for line in spoken])
        if shot.scene is not None and free is not None and chance.random() < SHARE_OF_SHOTS:
            speaker = chance.choice(list(names.values()))
            begin = whole_frames(chance.uniform(free[0], free[1] - LINE_S - 0.5))
            landmark = scenes[shot.scene].setting.landmark
            text, fact = _free_text(landmark, names, used, pool, chance)
            lines.append(Line((begin, whole_frames(begin + LINE_S)), text, speaker, fact))
    return lines


def _gap(start: float, end: float, spoken: Sequence[Range]) -> Range | None:
    """Find the longest stretch of a shot in which nobody speaks, if a line fits."""
    inside = sorted(each for each in spoken if each[0] < end and each[1] > start)
    borders = [start, *(time_s for each in inside for time_s in each), end]
    gaps = [(low + 0.25, high) for low, high in zip(borders[::2], borders[1::2], strict=True)]
    low, high = max(gaps, key=lambda gap: gap[1] - gap[0])
    return (low, high) if high - low > LINE_S + 1.0 else None


def _free_text(
    landmark: Prop, names: Mapping[Prop, str], used: set[str], pool: Pool, chance: Random
) -> tuple[str, tuple[str, str, str] | None]:
    """Write a plan, a reason, a code word, a thing that no picture shows, the landmark that one shows, or idle talk."""
    kind = chance.choice(("plan", "reason", "code", "unseen", "shown", "chatter"))
    name = chance.choice(list(names.values()))
    if kind == "plan" and f"plan {name}" not in used and (goal := pool.word(GOALS)):
        used.add(f"plan {name}")
        text = chance.choice(("Next week {} is off to {}.", "{} has always meant to go to {}, and soon it will be."))
        return text.format(name, goal), ("plan", name, goal)
    if kind == "reason" and f"reason {name}" not in used and (reason := pool.word(REASONS)):
        used.add(f"reason {name}")
        text = chance.choice(("{} was late, because {}.", "You know why {} came late: {}."))
        return text.format(name, reason), ("reason", name, reason)
    if kind == "code" and (gate := pool.word(GATES)) and (word := pool.word(CODE_WORDS)):
        text = chance.choice(("Remember, for {} the code word is {}.", "Whoever wants to get into {} has to say {}."))
        return text.format(gate, word), ("code", gate, word)
    if kind == "unseen" and (thing := pool.prop(ITEMS)):
        return f"I used to have {with_article(thing.name)}, long ago.", None
    if kind == "shown":
        return f"Whose is the {landmark.name} back there, anyway?", None
    return chance.choice(CHATTER), None
