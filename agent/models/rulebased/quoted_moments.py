"""Answers that join quoted lines with what is seen at their times: who says a name, what stands beside a sign.

Words find a time, and what is seen then is the answer ("what passes right after somebody says ..."); or several lines
hold an option each, and what is seen at their times tells which is meant ("what does the sign beside the tent say").
Questions of a few forms only: no sentence is understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agent.core.question import SCREEN_TEXT, SUBTITLE, Note, Question

Floats = NDArray[np.float64]
Asks = Literal["sight", "line", "line before"]
ALIKE = 0.2
"""How far a match may be below the best and count as evidence too."""
MOST_EVIDENCE = 4
SCENE_S = 240.0
"""How long before something is seen the title card of its scene may stand."""


@dataclass(frozen=True, slots=True)
class Sights:
    """Frames or captions, each over [start_s, end_s] of a video; `matches` of texts [t] with them: [n, t].

    A match below `least` shows nothing.
    """

    videos: Sequence[str]
    starts_s: Sequence[float]
    ends_s: Sequence[float]
    matches: Callable[[Sequence[str]], Floats]
    least: float = 0.0

    def at(self, video_id: str, low_s: float, high_s: float) -> list[int]:
        """Indices of those that share some time with [low_s, high_s]."""
        return [
            at
            for at, (video, start_s, end_s) in enumerate(zip(self.videos, self.starts_s, self.ends_s, strict=True))
            if video == video_id and start_s <= high_s and end_s >= low_s
        ]


@dataclass(frozen=True, slots=True)
class Joined:
    """The choice, and the indices of the sights and of the lines that tell it."""

    choice: int
    sights: tuple[int, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of question: its words, the source of its lines, and what it asks for at their times.

    "sight": the option seen at the time of the line that the words name; "line": the option in the line at whose time
    the things that the words name are seen; "line before": the one last before them. `before_s` and `after_s` widen the
    time of a line; a picture may come late where things have to come into view.
    """

    words: re.Pattern[str]
    source: str
    asks: Asks
    before_s: float = 0.0
    after_s: float = 0.0


FORMS = (
    Form(
        re.compile(r'right after (?:some(?:body|one)|he|she|they) (?:says?|said) "(.+?)[.!?]?"'),
        SUBTITLE,
        "sight",
        -1,
        9,
    ),
    Form(re.compile(r"^which of these is ([A-Z]\w+)\?$", re.I), SUBTITLE, "sight", 2.0, 1.0),
    Form(re.compile(r"beside the sign that says (.+?)\?$"), SCREEN_TEXT, "sight"),
    Form(re.compile(r"sign beside (the .+?) says?\b"), SCREEN_TEXT, "line"),
    Form(re.compile(r"what is (the .+?) for that (the .+?) is given", re.I), SUBTITLE, "line", 3.0, 3.0),
    Form(re.compile(r"title card right before the scene with (the .+?)\?$"), SCREEN_TEXT, "line before"),
)
NAMES_ITSELF = r"\b(?:name is|call me) {0}\b|\bhello {0} here\b"
"""The line of somebody who says the name; others speak of whom it names."""


def form_of(question: Question) -> tuple[Form, tuple[str, ...]] | None:
    """The form of a question and the words that stand in its gaps; None of any other question, and without options."""
    for form in FORMS if question.options else ():
        if found := form.words.search(question.text):
            return form, found.groups()
    return None


def telling_lines(question: Question, lines: Sequence[Note]) -> list[int]:
    """Indices of the lines whose times are worth a look: that which the question names, or those with an option."""
    known = form_of(question)
    if known is None:
        return []
    form, named = known
    told = [(at, plain(line.text)) for at, line in enumerate(lines) if line.source == form.source]
    if form.asks != "sight":
        return [at for at, text in told if any(_holds(text, option) for option in question.options)]
    name = plain(named[0])
    spoken = [at for at, text in told if _holds(text, name)]
    own = [at for at in spoken if re.search(NAMES_ITSELF.format(re.escape(name)), plain(lines[at].text))]
    return own or spoken


def sights_of(question: Question) -> tuple[str, ...]:
    """The texts to look for at the times of lines: the things that the question names, else its options."""
    known = form_of(question)
    if known is None:
        return ()
    form, named = known
    return question.options if form.asks == "sight" else tuple(each.removeprefix("the ") for each in named)


def words_of(question: Question) -> tuple[str, ...]:
    """The words by which lines are found: those that the question names, or its options."""
    known = form_of(question)
    if known is None:
        return ()
    return known[1] if known[0].asks == "sight" else question.options


def read_moment(question: Question, lines: Sequence[Note], sights: Sights) -> Joined | None:
    """The option that lines and what is seen at their times tell together; None where either is missing."""
    known, telling = form_of(question), telling_lines(question, lines)
    if known is None or not telling or not len(sights.videos):
        return None
    form = known[0]
    matches = sights.matches(sights_of(question))
    if form.asks == "sight":
        return _best_option(form, [lines[at] for at in telling], telling, sights, matches)
    together = matches.mean(axis=1)
    if form.asks == "line before":
        return _line_before(question, lines, telling, sights, together)
    return _line_beside(form, question, lines, telling, sights, together)


def _best_option(
    form: Form, lines: Sequence[Note], numbers: Sequence[int], sights: Sights, matches: Floats
) -> Joined | None:
    """The option that is seen best at the times of the lines."""
    inside = sorted({at for line in lines for at in _beside(form, line, sights)})
    if not inside:
        return None
    best = int(matches[inside].max(axis=0).argmax())
    if matches[inside, best].max() < sights.least:
        return None
    return Joined(best, _clearest(inside, matches[:, best]), tuple(numbers[:MOST_EVIDENCE]))


def _line_beside(
    form: Form, question: Question, lines: Sequence[Note], telling: Sequence[int], sights: Sights, together: Floats
) -> Joined | None:
    """The option in the line at whose time the things of the question are seen best."""
    beside = ((at, each) for each in telling for at in _beside(form, lines[each], sights))
    places = [(at, each) for at, each in beside if together[at] >= sights.least]
    if not places:
        return None
    at, line = max(places, key=lambda place: float(together[place[0]]))
    return Joined(_option_in(question, lines[line]), (at,), (line,))


def _line_before(
    question: Question, lines: Sequence[Note], telling: Sequence[int], sights: Sights, together: Floats
) -> Joined | None:
    """The option in the line that stands last before the things of the question are seen best."""
    at = int(together.argmax())
    video, seen_s = sights.videos[at], sights.starts_s[at]
    before = [
        each
        for each in telling
        if lines[each].video_id == video
        and lines[each].start_s <= sights.ends_s[at]
        and seen_s - lines[each].end_s <= SCENE_S
    ]
    if not before or together[at] < sights.least:
        return None
    line = max(before, key=lambda each: lines[each].start_s)
    return Joined(_option_in(question, lines[line]), (at,), (line,))


def _beside(form: Form, line: Note, sights: Sights) -> list[int]:
    return sights.at(line.video_id, line.start_s - form.before_s, line.end_s + form.after_s)


def _clearest(inside: Sequence[int], match: Floats) -> tuple[int, ...]:
    ranked = sorted(inside, key=lambda at: -match[at])
    return tuple(at for at in ranked if match[ranked[0]] - match[at] <= ALIKE)[:MOST_EVIDENCE]


def _option_in(question: Question, line: Note) -> int:
    return next(which for which, option in enumerate(question.options) if _holds(plain(line.text), option))


def _holds(text: str, words: str) -> bool:
    return f" {plain(words)} " in f" {text} "


def plain(text: str) -> str:
    """The words of a text in lower case, without marks."""
    return " ".join(re.findall(r"\w+", text.casefold()))
