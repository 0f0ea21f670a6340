"""Answers that join quoted lines with what is seen at their times: who says a name, what stands beside a sign.

Words find a time, and what is seen then is the answer ("what passes right after somebody says ..."); or several lines
hold an option each, and what is seen at their times tells which is meant ("what does the sign beside the tent say").
Questions of a few forms only: no sentence is understood.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol import SCREEN_TEXT, SUBTITLE, Note, Question

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


# Statements behind a question, one of which is true, and the verdict on them as a reply.
#
# A cloze statement is a question and an option as one statement that a text tower can compare with a picture: "What
# colour is the kite?" and "red" become "red kite". Words and word order only, no grammar: good enough for
# `RuleBasedModel`, which has no language model.

STATED_COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white", "grey")
STATED_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SOON_S = 60.0
"""The reach of "after" and "before" from their moment."""

_TIME = re.compile(r"\b(?:right|just|directly|immediately|shortly|soon)?\s*\b(after|before)\b\s+(.+)$")
_ORDER = re.compile(r"\b(first|last)\b")
_FILLER = re.compile(
    r"\b(?:in|of|during|throughout) (?:the|this) (?:video|film|movie|clip|footage|recording)\b"
    r"|\b(?:of|among) (?:these|the following|the options)(?: \w+)?\b"
    r"|\bthe following\b|\bthere\b|\bon (?:the )?screen\b"
)
_QUESTION_WORDS = re.compile(
    r"^(?:(?:in|on|at|to|of|from) )?(?:what|which|who|whose|when|where|why|how)\b"
    r"(?: (?:colou?r|many|much|kind|type|sort|number|place|location|things?|objects?|scene|of|long|often))*"
)
_VERBS = re.compile(
    r"\b(?:is|are|was|were|does|do|did|has|have|had|can|could|will|be|been|being|we|you|i|see|sees|seen|show|shows|"
    r"shown|showing|visible|appear|appears|appeared|come|comes|came|happen|happens|happened|follow|follows|"
    r"occur|occurs|mentioned|exactly|next(?! to))\b"
)
_ARTICLE = re.compile(r"^(?:the|a|an|any|some)\s+")
_ASKS_PLACE = re.compile(r"^(?:where\b|(?:in|on|at) (?:what|which)\b|(?:what|which) (?:place|location))")
_PREPOSITION = re.compile(r"^(?:in|on|at|by|over|under|among|near|inside|above|below|between|behind|beside)\b")


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements behind a question.

    `subject` is the question without its question words, `options` the statements one of which is true,
    `moment` the moment from which the question measures time, if `order` is "after" or "before".
    """

    subject: str
    options: tuple[str, ...]
    order: str | None = None
    moment: str | None = None

    @property
    def queries(self) -> tuple[str, ...]:
        """Texts to search for, the most specific first, each once."""
        queries = (self.moment,) if self.moment else (*self.options, self.subject)
        return tuple(dict.fromkeys(text for text in queries if text))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best choice (None: nothing bears on the question), its score and its lead over the second.

    `evidence` holds the numbers, from 1, of the frames or notes that show it. Frames are judged in deviations, notes
    by the share of words found.
    """

    choice: int | None = None
    score: float = 0.0
    lead: float = 0.0
    evidence: tuple[int, ...] = ()


def cloze_statements(question: Question) -> Statements:
    """Turn a question into statements; without options, colours and numbers come from a basic vocabulary."""
    text = re.sub(r"[^\w\s'-]", " ", question.text.casefold())
    text = re.sub(r"\s+", " ", text).strip()
    order: str | None = None
    moment: str | None = None
    if timed := _TIME.search(text):
        order, moment, text = timed[1], _subject(timed[2]), text[: timed.start()].strip()
    elif ordered := _ORDER.search(text):
        order, text = ordered[1], _ORDER.sub(" ", text)
    subject = _subject(text)
    options = tuple(_statement(text, subject, option) for option in _choices(question, text))
    return Statements(subject, options, order, moment)


def choices(question: Question) -> tuple[str, ...]:
    """The options, or basic colours or numbers for questions that ask for one."""
    return _choices(question, question.text.casefold())


def to_reply(question: Question, verdict: Verdict, times_s: Sequence[float]) -> dict[str, Any]:
    """Turn a verdict into a `Conclusion` or `Decision` as JSON values.

    `times_s` are those of all frames or notes that were judged.
    """
    if verdict.choice is None:
        return {"action": "insufficient_evidence"}
    named = choices(question)
    letter = question.lettered[verdict.choice][0] if question.options else None
    text = (
        named[verdict.choice]
        if named
        else f"{cloze_statements(question).subject} at {times_s[verdict.evidence[0] - 1]:.1f} s"
    )
    return {"action": "answer", "option": letter, "answer": text, "evidence": verdict.evidence}


def _choices(question: Question, text: str) -> tuple[str, ...]:
    if question.options:
        return question.options
    if re.search(r"\bcolou?r\b", text):
        return STATED_COLOURS
    return STATED_NUMBERS[1:] if "how many" in text else ()


def _subject(text: str) -> str:
    """The rest of a question without its question words."""
    text = _QUESTION_WORDS.sub(" ", _FILLER.sub(" ", text).strip())
    text = re.sub(r"\s+", " ", _VERBS.sub(" ", text)).strip()
    return re.sub(r"^(?:right|exactly|just)$", "", _ARTICLE.sub("", text))


def _statement(text: str, subject: str, option: str) -> str:
    """Put one option in the gap of the question."""
    option = _ARTICLE.sub("", option.strip().casefold().rstrip("."))
    if option in ("yes", "no"):
        return subject if option == "yes" else f"no {subject}"
    if option.isdecimal() and int(option) < len(STATED_NUMBERS):
        option = STATED_NUMBERS[int(option)]
    if _ASKS_PLACE.match(text) and subject:
        return f"{subject} {option}" if _PREPOSITION.match(option) else f"{subject} in the {option}"
    return f"{option} {subject}".strip()


# Words of the sketch world, on which the built-in space was trained: things, colours, places, numbers, titles.
#
# The agent knows nothing of the code that draws that world, so the words are repeated here; a test compares the two.

# fmt: off
THINGS = (
    "fish", "bird", "cat", "dog", "horse", "elephant", "snake", "butterfly", "snail", "turtle", "rabbit", "duck",
    "spider", "tree", "flower", "mushroom", "cactus", "apple", "person", "ghost", "boat", "car", "truck", "bus",
    "train", "bicycle", "plane", "helicopter", "rocket", "balloon", "tractor", "house", "castle", "lighthouse",
    "windmill", "tent", "bridge", "kite", "clock", "umbrella", "cup", "bottle", "chair", "table", "lamp", "key",
    "book", "guitar", "drum", "bell", "hat", "ball", "star", "heart", "crown", "flag", "gift", "candle", "ladder",
    "anchor", "scissors", "shoe", "robot", "cake", "envelope",
)
# fmt: on
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "white", "black")
PLACES = (
    "at sea",
    "in the desert",
    "in the snow",
    "in the forest",
    "in the city",
    "in the mountains",
    "in the meadow",
    "in the room",
)
HOURS = ("by day", "at night")
NUMBERS = ("one", "two", "three", "four", "five")
# fmt: off
TITLES = (
    "HARBOUR", "MORNING", "JOURNEY", "SECRET", "WINTER", "SUMMER", "LANTERN", "RIVER", "THUNDER", "GARDEN",
    "MARKET", "ISLAND", "SILVER", "MIDNIGHT", "RETURN", "PROMISE", "ORCHARD", "SIGNAL", "VOYAGE", "FESTIVAL",
    "COPPER", "ECHO", "MIRROR", "QUARTZ",
)
# fmt: on
_PLURALS = {
    "fish": "fish",
    "scissors": "scissors",
    "person": "people",
    "bus": "buses",
    "butterfly": "butterflies",
    "cactus": "cacti",
}


def counted(count: int, colour: str, thing: str) -> str:
    """Count things of a colour: "a red boat", "three red boats"."""
    if count > 1:
        return f"{NUMBERS[count - 1]} {colour} {_PLURALS.get(thing, thing + 's')}"
    article = "" if thing == "scissors" else "an " if colour[0] in "aeiou" else "a "
    return f"{article}{colour} {thing}"


def title_card(word: str) -> str:
    """Describe a title card with a word on it."""
    return f"a title card that says {word}"


# Verdicts on notes in general English: the option most of whose words the notes hold.
#
# For notes that are not about the sketch world (`vocabulary`), where none states an option outright. The score of an
# option is the share of its words that a note holds, on average over the notes; words that few notes hold weigh more
# (inverse document frequency, Sparck Jones 1972), and the forms of a word count as one. No sentence is understood: the
# words only separate what the notes are about from what they are not about. A weak baseline: of EgoSchema's 500
# questions, with all captions of the video, it answers 49 % rightly, of NExT-QA's validation 45 % (chance: 20 %).

WORD_FORMS = ("ing", "ied", "ies", "ed", "es", "s")
LEAST_STEM = 3

# fmt: off
SMALL = {
    "a", "an", "and", "are", "at", "by", "for", "from", "has", "have", "in", "is", "it", "of", "on", "or", "over",
    "that", "the", "there", "this", "to", "with",
}
# fmt: on

Share = Callable[[frozenset[str], frozenset[str]], float]


def is_general(notes: Sequence[Note]) -> bool:
    """True if most of the different words of notes are not words of the sketch world."""
    words = frozenset[str]().union(*(stems(note.text) for note in notes))
    return len(words & _sketch_words()) * 2 < len(words)


def judge(question: Question, notes: Sequence[Note]) -> Verdict:
    """Choose the option most of whose words the notes hold, of equals the first; none if they hold no word of any."""
    words_of_notes = [stems(note.text) for note in notes]
    share = _rarity_weighted_share(words_of_notes)
    confidences = [1.0 if note.confidence is None else note.confidence for note in notes]
    held = [
        [confidence * share(words, each) for each, confidence in zip(words_of_notes, confidences, strict=True)]
        for words in map(stems, question.options)
    ]
    scores = [sum(each) / max(1, len(each)) for each in held]
    best = max(range(len(scores)), key=lambda option: scores[option], default=None)
    if best is None or scores[best] == 0.0:
        return Verdict()
    lead = scores[best] - max((score for option, score in enumerate(scores) if option != best), default=0.0)
    ranked = sorted((at for at, each in enumerate(held[best]) if each), key=lambda at: -held[best][at])
    return Verdict(best, scores[best], lead, tuple(at + 1 for at in sorted(ranked[:MOST_EVIDENCE])))


def relevances(question: Question, notes: Sequence[Note]) -> list[int]:
    """Rate notes by the words of question and options that they hold: 3 near the best, 2 for half of it, else 1."""
    found = shares(question, notes)
    best = max(found, default=0.0) or 1.0
    return [3 if each >= 0.75 * best else 2 if each >= 0.5 * best else 1 for each in found]


def shares(question: Question, notes: Sequence[Note]) -> list[float]:
    """The share of the words of question and options that each note holds, weighted by how few of the notes do."""
    words_of_notes = [stems(note.text) for note in notes]
    share, words = _rarity_weighted_share(words_of_notes), stems(" ".join((question.text, *question.options)))
    return [share(words, each) for each in words_of_notes]


def _rarity_weighted_share(words_of_notes: Sequence[frozenset[str]]) -> Share:
    """A function: the share of some words in others, each word weighted by how few of the notes hold it."""
    note_counts = Counter(word for each in words_of_notes for word in each)

    def weight(words: frozenset[str]) -> float:
        # fsum: the same in any order of the words
        return math.fsum(math.log(1 + len(words_of_notes) / max(1, note_counts[word])) for word in words)

    return lambda words, held: weight(words & held) / weight(words) if words else 0.0


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The words of a text without function words and endings."""
    return frozenset(_stem(word) for word in re.findall(r"[^\W_]+", text.casefold()) if word not in SMALL)


def _stem(word: str) -> str:
    ending = next((each for each in WORD_FORMS if word.endswith(each) and len(word) - len(each) >= LEAST_STEM), "")
    stem = word.removesuffix("" if word.endswith("ss") else ending)
    if len(stem) > LEAST_STEM and stem[-1] in (stem[-2], "e"):
        stem = stem[:-1]
    return stem


@cache
def _sketch_words() -> frozenset[str]:
    things = (*THINGS, "people", "cacti", "title card says nothing")
    return stems(" ".join((*things, *COLOURS, *PLACES, *HOURS, *NUMBERS, *TITLES)))
