"""The built-in model: a few rules that answer typed requests from the library's own frame embeddings.

It turns a question into statements and compares them with the frames that a request shows, in the library's space, or
with the words of notes; in libraries in the built-in space it can also describe frames. A weak but real baseline:
perception is the space's, and the reasoning is a few rules. It sees no frame that was not shown to it. A match is
measured against the matches of the same statement with the whole video (`Environment.deviations`), which any search of
the index could see. It refuses what needs language (plans, thoughts, tool calls, summaries, guesses), and does not
imitate it badly.

Each kind of request has its `rule`: those that agents share have theirs here, those of one agent beside that agent.
"""

from __future__ import annotations

import math
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, singledispatch
from itertools import chain, product, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.environment import Environment, Floats, LibraryVideos, calibrate
from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.protocol import (
    Exchange,
    Note,
    Question,
    R,
    Request,
    ScoredSegment,
    Segment,
    ShownFrame,
    citation_numbers,
)
from kinodex.agent.requests.answer import AnswerFrames, AnswerNotes, Recall
from kinodex.agent.requests.describe import DescribeSegment, Verify
from kinodex.agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments

MAX_QUERIES = 5
MOST_EVIDENCE = 4
MIN_VISIBLE = 2.5
"""Robust deviations from which on a statement counts as visible in a frame."""
MIN_ALIKE = 0.5
"""The share of the best match with a moment from which on a frame beside it shows the same moment."""
MIN_LEAD = 0.2
"""The lead over the second-best choice, in deviations, that settles a question."""
MIN_RELEVANT = 1.0
"""Below this no frame has to do with the question, and an answer would be invented."""


class RuleBasedModel:
    """A model that answers from the environment's vectors; its replies cost no tokens.

    Raises `NeedsLanguage` for what it cannot answer.
    """

    name = "builtin"
    has_language = False

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    async def ask(self, request: Request[R]) -> Exchange[R]:
        started = time.perf_counter()
        reply = request.Reply.model_validate(_cite_by_number(request, rule(request, self.environment)))
        if reply.declines and request.declining == "never":
            reply = request.Reply.model_validate(_choose_option(request, self.environment))
        return Exchange(reply, None, raw=reply.model_dump_json(), seconds=time.perf_counter() - started)


@singledispatch
def rule(request: Request[Any], environment: Environment) -> dict[str, Any]:
    """The reply to a request as JSON values, from what the environment holds; frames and notes are cited by their
    places, from 1. Raises `NeedsLanguage` for a kind of request that has no rule.

    `@rule.register(KindOfRequest)` gives one to a kind of request, and to those that derive from it.
    """
    raise NeedsLanguage(
        f"the built-in model compares pictures with words and has no language for {type(request).__name__}; "
        "this agent needs a language model; give --model and --base-url"
    )


def _cite_by_number(request: Request[R], reply: dict[str, Any]) -> dict[str, Any]:
    """The reply with evidence by the numbers that frames and notes have in the request, not by their places."""
    numbers = list(chain(*citation_numbers(request.frames, getattr(request, "notes", ()))))
    if not reply.get("evidence") or not numbers:
        return reply
    return reply | {"evidence": [numbers[place - 1] for place in reply["evidence"]]}


def _choose_option(request: Request[Any], environment: Environment) -> dict[str, Any]:
    """Choose the option that the frames show best though it is not visible, without frames one by chance."""
    question = getattr(request, "question", None)
    if not isinstance(question, Question) or not question.options:
        return {"action": "insufficient_evidence"}
    at = zlib.crc32(question.text.encode()) % len(question.options)
    if request.frames:
        at = int(match_frames(environment, cloze_statements(question).options, request.frames).max(0).argmax())
    return {"action": "answer", "option": question.lettered[at][0], "answer": None, "evidence": []}


# Rules of requests that several agents send.


@rule.register(DiscoverQueries)
def _discover(request: DiscoverQueries, environment: Environment) -> dict[str, Any]:
    texts = cloze_statements(request.question).queries
    return {"queries": texts[:MAX_QUERIES] or (request.question.text,)}


@rule.register(ProposeQueries)
def _propose(request: ProposeQueries, environment: Environment) -> dict[str, Any]:
    return {"queries": new_statements(request.question, request.known)}


def new_statements(question: Question, known: Sequence[str]) -> list[str]:
    folded = {query.casefold() for query in known}
    statements = cloze_statements(question)
    return [text for text in (*statements.queries, *statements.options) if text not in folded][:MAX_QUERIES]


@rule.register(ScoreSegments)
def score(request: ScoreSegments, environment: Environment) -> dict[str, Any]:
    """Score each segment by the best match of a statement with a frame at its borders, a new one if it has one."""
    queries = cloze_statements(request.question).queries or (request.question.text,)
    matches = match_frames(environment, queries, request.frames)
    new = {(frame.video_id, frame.time_s) for frame in request.new_frames}
    scores: list[dict[str, Any]] = []
    for part in request.segments:
        beside = [
            at
            for at, frame in enumerate(request.frames)
            if frame.video_id == part.video_id and frame.time_s in (part.start_s, part.end_s)
        ]
        telling = [at for at in beside if (part.video_id, request.frames[at].time_s) in new]
        pairs = ((at, text) for at in telling or beside for text in range(len(queries)))
        at, text = max(pairs, key=lambda pair: float(matches[pair]))
        score = round(100 * float(calibrate(matches[at, text])))
        explanation = f"{queries[text]!r}, perhaps" if score else ""
        if (told := round(100 * promise(request.question, request.chapters, part))) > score:
            score, explanation = told, "its summary speaks of it"
        scores.append({"segment": part.number, "reasoning": explanation, "score": score})
    return {"segments": scores}


@rule.register(Decide)
def _decide(request: Decide, environment: Environment) -> dict[str, Any]:
    verdict = judge_frames(environment, request.question, request.frames)
    open_ones = [each for each in request.candidates if each.explorable]
    clear = _recall(request, environment) if request.notes else {}
    if clear.get("action") == "answer":
        return clear
    if frames_settle(verdict) or request.must_answer or not open_ones:
        return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
    return {"action": "explore", "segment": _next_segment(environment, request.question, open_ones, request.frames)}


def _next_segment(
    environment: Environment, question: Question, open_ones: Sequence[ScoredSegment], frames: Sequence[ShownFrame]
) -> int:
    """The segment with the highest score, or the one beside the moment that the question names."""
    statements = cloze_statements(question)
    moment = find_moment(environment, statements, frames)
    if moment is not None:
        for each in open_ones:
            border_s = each.segment.start_s if statements.order == "after" else each.segment.end_s
            if each.segment.video_id == moment.video_id and border_s == moment.time_s and not each.divided:
                return each.segment.number
    # Both sides of an anchor have its score: the longer one has more to show. A part has its parent's frames too.
    return max(
        open_ones,
        key=lambda each: (each.score or 0.0, not each.divided, each.segment.end_s - each.segment.start_s),
    ).segment.number


@rule.register(AnswerFrames)
def _answer_frames(request: AnswerFrames, environment: Environment) -> dict[str, Any]:
    """Answer what the text on screen, the frames or the notes show clearly; else what the frames show best."""
    clear = _recall(request, environment) if request.notes else {}
    if clear.get("action") == "answer":
        return clear
    verdict = judge_frames(environment, request.question, request.frames)
    return to_reply(request.question, verdict, [each.time_s for each in request.frames])


@rule.register(AnswerNotes)
def _answer_notes(request: AnswerNotes, environment: Environment) -> dict[str, Any]:
    question, notes = request.question, request.notes
    return screen_reply(question, notes) or to_reply(question, judge(question, notes), [each.start_s for each in notes])


@rule.register(Recall)
@rule.register(Verify)
def _recall(request: Recall | Verify | AnswerFrames | Decide, environment: Environment) -> dict[str, Any]:
    """Answer what text on screen, frames or notes show clearly; for a follow-up, those of earlier questions."""
    question, frames, notes = request.question, request.frames, request.notes
    if (written := screen_reply(question, notes, len(frames))) is not None:
        return written
    verdict = judge_frames(environment, question, frames)
    if frames_settle(verdict):
        return to_reply(question, verdict, [each.time_s for each in frames])
    verdict = judge(question, notes)
    if not is_settled(verdict):
        return to_reply(question, Verdict(), ())
    reply = to_reply(question, verdict, [each.start_s for each in notes])
    return reply | {"evidence": [len(frames) + number for number in verdict.evidence]}


@rule.register(DescribeSegment)
def _describe_segment(request: DescribeSegment, environment: Environment) -> dict[str, Any]:
    whole = describe(environment, request.frames)
    return {"caption": whole.text, "confidence": 100 * whole.confidence}


# Verdicts on frames: the statement behind a question that matches one of them best.


def judge_frames(environment: Environment, question: Question, frames: Sequence[ShownFrame]) -> Verdict:
    """Choose what the frames show best; without choices, check that they show the subject."""
    statements = cloze_statements(question)
    considered = _frames_in_question(environment, statements, frames)
    texts = statements.options or tuple(text for text in (statements.subject,) if text)
    if not considered or not texts or is_talk(question):
        return Verdict()
    found = match_frames(environment, texts, [frames[at] for at in considered])
    scores = found.max(axis=0)
    ordered = statements.order in ("first", "last") and statements.moment is None
    if ordered:
        scores = _earliest(found, [frames[at].time_s for at in considered], last=statements.order == "last")
    best = int(np.argmax(scores))
    lead = float(scores[best] - np.delete(scores, best).max(initial=0.0))
    if ordered and found.max(axis=0).min() < MIN_VISIBLE:
        lead = 0.0  # a choice that was not found yet may come before
    shown = found[:, best] >= found[:, best].max() - MIN_LEAD
    evidence = tuple(at + 1 for at, visible in zip(considered, shown, strict=True) if visible)
    score = float(found[:, best].max())
    return Verdict(best if score >= MIN_RELEVANT else None, score, lead, evidence)


def frames_settle(verdict: Verdict) -> bool:
    return verdict.score >= MIN_VISIBLE and verdict.lead >= MIN_LEAD


def find_moment(environment: Environment, statements: Statements, frames: Sequence[ShownFrame]) -> ShownFrame | None:
    """Find the frame that shows the moment from which a question measures time, if one does.

    Of several in a row it is the one next to what the question asks about: the last for what comes after the moment,
    the first for what comes before. The others show the moment too, and no answer.
    """
    if not statements.moment or not frames:
        return None
    found = match_frames(environment, [statements.moment], frames)[:, 0]
    best = int(np.argmax(found))
    if found[best] < MIN_VISIBLE:
        return None
    alike = max(MIN_VISIBLE, MIN_ALIKE * found[best])
    of_video = [at for at, frame in enumerate(frames) if frame.video_id == frames[best].video_id]
    in_order = sorted(of_video, key=lambda at: frames[at].time_s, reverse=statements.order == "before")
    row = takewhile(
        lambda at: found[at] >= alike and abs(frames[at].time_s - frames[best].time_s) <= SOON_S,
        in_order[in_order.index(best) :],
    )
    return frames[[*row][-1]]


def match_frames(environment: Environment, texts: Sequence[str], frames: Sequence[ShownFrame]) -> Floats:
    """Match each frame [n] with each text [t], in deviations on one scale: [n, t]."""
    found = np.zeros((len(frames), len(texts)))
    for video_id in {frame.video_id for frame in frames}:
        here = [at for at, frame in enumerate(frames) if frame.video_id == video_id]
        stored = environment.vectors(video_id).frame_no
        rows = np.searchsorted(stored, [frames[at].frame_no for at in here])
        found[here] = environment.deviations(texts, video_id)[rows]
    return found


def _frames_in_question(environment: Environment, statements: Statements, frames: Sequence[ShownFrame]) -> list[int]:
    """Indices of frames that can hold the answer: all, or those soon after or before the moment in the question."""
    if statements.moment is None:
        return list(range(len(frames)))
    then = find_moment(environment, statements, frames)
    if then is None:
        return []
    low, high = (0.0, SOON_S) if statements.order == "after" else (-SOON_S, 0.0)
    return [
        at
        for at, frame in enumerate(frames)
        if frame.video_id == then.video_id and low <= frame.time_s - then.time_s <= high and frame is not then
    ]


def _earliest(found: Floats, times_s: Sequence[float], *, last: bool) -> Floats:
    """Scores that put the choice seen first (or last) on top: each place in that order leads by twice `MIN_LEAD`."""
    best = found.argmax(axis=0)
    when = [times_s[at] if found[at, choice] >= MIN_VISIBLE else np.inf for choice, at in enumerate(best)]
    order = np.argsort([-time_s if last and np.isfinite(time_s) else time_s for time_s in when], kind="stable")
    scores = np.empty(len(order))
    # A single `MIN_LEAD` would fall short of it by rounding.
    scores[order] = 2 * MIN_LEAD * np.arange(len(order), 0, -1)
    return scores


# Descriptions of frames: the phrases of the sketch world that are nearest to their stored vectors.
#
# Only for libraries in the built-in space, whose words these are. A frame is a title card, or a place at an hour with
# up to two groups of things; each step keeps what the steps before it found. The confidence of a phrase is its share
# among the phrases that it was compared with: a softmax of their cosines.

SPACE = "builtin"
SHARPNESS = 60.0
"""Cosines are multiplied by this before a softmax."""
COUNTED_GROUPS = 8
"""The number of best groups that are counted."""
SECOND_GROUPS = 40
"""The number of best groups that are tried beside the first."""
LEAST_GAIN = 0.02
"""The least gain of the cosine for a second group to be named."""

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Some words and their confidence, from 0 to 1."""

    text: str
    confidence: float


def describe(environment: Environment, frames: Sequence[ShownFrame]) -> Phrase:
    """Describe frames in order, each description once; the least confidence of all counts."""
    phrases = {phrase.text: phrase for phrase in (_described(environment, frame) for frame in frames)}
    return Phrase("; then ".join(phrases), min(phrase.confidence for phrase in phrases.values()))


def describe_each(environment: Environment, frames: Sequence[ShownFrame]) -> list[str]:
    return [_described(environment, frame).text for frame in frames]


def _described(environment: Environment, frame: ShownFrame) -> Phrase:
    parts = clauses(environment, frame)
    return Phrase(" ".join(part.text for part in parts), math.prod(part.confidence for part in parts))


def clauses(environment: Environment, frame: ShownFrame) -> list[Phrase]:
    """Describe one frame: a title card; or the things in it, and where and when.

    Raises `NeedsLanguage` for a library in another space.
    """
    source = environment.source
    if source.space.name != SPACE:
        raise NeedsLanguage(
            f"the built-in model has words only for libraries in the built-in space, and this one is in "
            f"{source.space.name}; give --model and --base-url"
        )
    memory = source.in_memory(frame.video_id)
    vector = memory.units[int(np.searchsorted(memory.stored.frame_no, frame.frame_no))]
    scenes, cards = list(product(PLACES, HOURS)), [title_card(word) for word in TITLES]
    cosines = source.embed_texts([f"a scene {place} {hour}" for place, hour in scenes] + cards) @ vector
    best = int(np.argmax(cosines))
    if best >= len(scenes):
        return [Phrase(cards[best - len(scenes)], _share(cosines))]
    place, hour = scenes[best]
    return [_describe_things(source, vector, place), Phrase(f"{place} {hour}", _share(cosines))]


def _describe_things(source: LibraryVideos, vector: Vector, place: str) -> Phrase:
    def cosines_of(groups: Sequence[str]) -> Vector:
        cosines: Vector = source.embed_texts([f"{each} {place}" for each in groups]) @ vector
        return cosines

    kinds, counts = list(product(COLOURS, THINGS)), range(1, len(NUMBERS) + 1)
    single = cosines_of([counted(1, *each) for each in kinds])
    nearest = [kinds[at] for at in np.argsort(-single)]
    groups = [counted(number, *each) for each in nearest[:COUNTED_GROUPS] for number in counts]
    cosines = cosines_of([*groups, "nothing"])
    best = int(np.argmax(cosines))
    if best == len(groups):
        return Phrase("nothing", _share(cosines))
    first = nearest[best // len(NUMBERS)]
    others = [each for each in nearest[:SECOND_GROUPS] if each != first]
    both = cosines_of([f"{groups[best]} and {counted(1, *each)}" for each in others])
    second = others[int(np.argmax(both))]
    pairs = [f"{groups[best]} and {counted(number, *second)}" for number in counts]
    joint = cosines_of(pairs)
    if joint.max() - cosines[best] < LEAST_GAIN:
        return Phrase(groups[best], _share(cosines))
    return Phrase(pairs[int(np.argmax(joint))], _share(cosines) * _share(both) * _share(joint))


def _share(cosines: Vector) -> float:
    return float(1 / np.exp(SHARPNESS * (cosines - cosines.max())).sum())


# Verdicts on notes: the statement behind a question that shares most words with one of them.
#
# Words only, no meaning: "a red kite in the desert" is found in a note that holds red, kite and desert. A note bears
# on a question if it holds most of the words that the question itself asks about. Where that leads nowhere and the
# notes are in general English, options are compared by word overlap (`judge_by_overlap`).

MIN_BEARING = 0.75
"""The share of the question's own words that a note must hold to bear on it."""
MIN_STATED = 0.9
"""The share of a statement's words, weighted by the note's confidence, from which on it counts as stated."""
MIN_PARTIAL = 0.5
"""The share of a statement's words that makes a note worth following up; an answer needs more."""


def judge(question: Question, notes: Sequence[Note]) -> Verdict:
    """Choose what the notes state more than half of; without choices, check that one speaks of the subject.

    Of two that are stated equally, none is chosen. Failing that, in general English, the one with most words in the
    notes.
    """
    if is_talk(question):
        return Verdict()
    verdict = _judge_statements(question, notes)
    if verdict.choice is None and is_general(notes):
        return judge_by_overlap(question, notes)
    return verdict


def _judge_statements(question: Question, notes: Sequence[Note]) -> Verdict:
    statements = cloze_statements(question)
    bearing = _bearing(statements, notes)
    texts = statements.options or tuple(text for text in (statements.subject,) if text)
    if not bearing or not texts:
        return Verdict()
    sure = [1.0 if note.confidence is None else note.confidence for note in notes]
    shares = [[word_share(text, notes[at].text) * sure[at] for at in bearing] for text in texts]
    if statements.order in ("first", "last") and statements.moment is None:
        return _earliest_note(shares, [notes[at].start_s for at in bearing], bearing, last=statements.order == "last")
    best_of = [max(each) for each in shares]
    best = max(range(len(texts)), key=lambda choice: best_of[choice])
    lead = best_of[best] - max((each for choice, each in enumerate(best_of) if choice != best), default=0.0)
    evidence = tuple(at + 1 for at, share in zip(bearing, shares[best], strict=True) if share == best_of[best])
    partly_stated = any(word_share(texts[best], notes[number - 1].text) > MIN_PARTIAL for number in evidence)
    return Verdict(best if partly_stated and lead > 0 else None, best_of[best], lead, evidence)


def is_settled(verdict: Verdict) -> bool:
    return verdict.choice is not None and verdict.score >= MIN_STATED


def is_relevant(query: str, text: str) -> bool:
    queries = cloze_statements(Question(query)).queries or (query,)
    return any(word_share(each, text) >= MIN_PARTIAL for each in queries)


def relevances(question: Question, notes: Sequence[Note]) -> list[int]:
    """Rate notes: 3 for one that states all of some statement behind the question, 2 for a part of one, else 1.

    In general English by the words of question and options that they hold: 3 near the best, 2 for half of it.
    """
    if is_general(notes):
        shares = overlap_shares(question, notes)
        most = max(shares, default=0.0) or 1.0
        high, low = 0.75 * most, 0.5 * most
    else:
        queries = cloze_statements(question).queries
        shares = [max((word_share(text, note.text) for text in queries), default=0.0) for note in notes]
        high, low = MIN_STATED, MIN_PARTIAL
    return [3 if share >= high else 2 if share >= low else 1 for share in shares]


def find_moments(text: str, notes: Sequence[Note]) -> list[Note]:
    return [note for note in notes if word_share(text, note.text) >= MIN_STATED]


def _bearing(statements: Statements, notes: Sequence[Note]) -> list[int]:
    if statements.moment is None:
        return [at for at, note in enumerate(notes) if word_share(statements.subject, note.text) >= MIN_BEARING]
    then = find_moments(statements.moment, notes)
    return [at for at, note in enumerate(notes) if any(_soon(statements, each, note) for each in then)]


def _soon(statements: Statements, moment: Note, note: Note) -> bool:
    passed_s = note.start_s - moment.start_s if statements.order == "after" else moment.start_s - note.start_s
    return note.video_id == moment.video_id and 0 < passed_s <= SOON_S


def _earliest_note(
    shares: Sequence[Sequence[float]], times_s: Sequence[float], bearing: Sequence[int], *, last: bool
) -> Verdict:
    """Choose what a note states outright before (or after) any other choice; settled only if all are stated."""
    sign = -1.0 if last else 1.0
    found = [
        (sign * times_s[at], choice, at)
        for choice, each in enumerate(shares)
        for at, share in enumerate(each)
        if share >= MIN_STATED
    ]
    if not found:
        return Verdict()
    _, best, at = min(found)
    all_stated = len({choice for _, choice, _ in found}) == len(shares)
    return Verdict(best, shares[best][at] if all_stated else MIN_PARTIAL, 1.0, (bearing[at] + 1,))


def word_share(text: str, note_text: str) -> float:
    """The share of a text's words that a note holds; 1 for a text without words."""
    words = _words(text)
    return len(words & _words(note_text)) / len(words) if words else 1.0


def _words(text: str) -> set[str]:
    words = re.findall(r"[\w-]+", text.casefold())
    plural = [len(word) > 3 and word.endswith("s") and not word.endswith("ss") for word in words]
    return {word[:-1] if many else word for word, many in zip(words, plural, strict=True)} - SMALL


# Scenes and chapters that a prompt lists, by their words: which of them a question speaks of more than of others.

MOST_OF_IT = 0.5


def promise(question: Question, chapters: Sequence[Note], part: Segment) -> float:
    """The promise, from 0 to 1, of the chapter that a part of a video lies in, by the words of its title and summary.

    The share of the question's words that it holds, rare words counting more, less the least share of any chapter:
    where all speak alike of the question none of them promises anything. A part of less than `MOST_OF_IT` of its
    chapter has no promise: there frames say more than a summary of all.
    """
    shares = overlap_shares(question, chapters)
    inside = [max(0.0, min(each.end_s, part.end_s) - max(each.start_s, part.start_s)) for each in chapters]
    inside = [s if each.video_id == part.video_id else 0.0 for s, each in zip(inside, chapters, strict=True)]
    at = max(range(len(chapters)), key=lambda number: inside[number], default=None)
    if at is None or inside[at] < MOST_OF_IT * (chapters[at].end_s - chapters[at].start_s):
        return 0.0
    return shares[at] - min(shares)


# Answers from quoted lines: of text on screen and of speech, the one option that stands there word by word.
#
# Text on screen answers a question for a word, a sign or a title card; a spoken line one that names somebody, or what
# a code word is for, that the line names too. Other questions are not answered so: a thing that is spoken or written
# of need not be seen.

ASKS_FOR_TEXT = re.compile(r"\b(?:title cards?|signs?|words?|texts?|letters|written|captions?|reads?|says?)\b", re.I)
NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]+\b")
CODE = re.compile(r"\bcode word for (.+?)\?$")
TALK = re.compile(r"\bcode word\b|\bplans? to go\b|\bwhy was [A-Z]\w+ late\b", re.I)
"""Questions of what is only spoken of: no picture shows a plan, a reason or a password."""
SPOKEN = re.compile(r"\b(?:said|somebody says|says that|spoken|speaks?|code word)\b", re.I)


def read_screen(question: Question, notes: Sequence[Note]) -> Verdict:
    """The option that stands on screen, if one alone does and the question asks for text.

    Without options the choice is 0 if one text alone stands there: `screen_reply` says it.
    """
    lines = [(at, note.source, f" {plain(note.text)} ") for at, note in enumerate(notes, 1)]
    subjects = [*NAME.findall(question.text), *CODE.findall(question.text)] or TALK.findall(question.text)
    if names := {plain(name) for name in subjects}:
        said = [(at, text) for at, source, text in lines if source == "speech"]
        found = [(at, text) for at, text in said if any(f" {name} " in text for name in names)]
        options = question.options
    elif not ASKS_FOR_TEXT.search(question.text) or SPOKEN.search(question.text):
        return Verdict()
    else:
        found = [(at, text) for at, source, text in lines if source == "screen_text"]
        options = question.options or tuple(dict.fromkeys(text for _, text in found))
    places = [tuple(at for at, text in found if f" {plain(option)} " in text) for option in options]
    held = [which for which, numbers in enumerate(places) if numbers]
    return Verdict(held[0], 1.0, 1.0, places[held[0]]) if len(held) == 1 else Verdict()


def is_talk(question: Question) -> bool:
    """True if a question asks for what only words tell, whatever its options look like in pictures."""
    return bool(question.options and TALK.search(question.text))


def screen_reply(question: Question, notes: Sequence[Note], frames: int = 0) -> dict[str, Any] | None:
    """An answer as JSON values from text on screen; its evidence counts on from so many frames. None without one."""
    verdict = read_screen(question, notes)
    if verdict.choice is None:
        return None
    letter = question.lettered[verdict.choice][0] if question.options else None
    text = question.options[verdict.choice] if question.options else notes[verdict.evidence[0] - 1].text
    evidence = tuple(frames + at for at in verdict.evidence)
    return {"action": "answer", "option": letter, "answer": text, "evidence": evidence}


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
    options = tuple(_statement(text, subject, option) for option in choices(question, text))
    return Statements(subject, options, order, moment)


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


def choices(question: Question, text: str | None = None) -> tuple[str, ...]:
    """The options, else the colours or numbers that a question asks for, by its words or those given as `text`."""
    text = question.text.casefold() if text is None else text
    if question.options:
        return question.options
    if re.search(r"\bcolou?r\b", text):
        return STATED_COLOURS
    return STATED_NUMBERS[1:] if "how many" in text else ()


def _subject(text: str) -> str:
    text = _QUESTION_WORDS.sub(" ", _FILLER.sub(" ", text).strip())
    text = re.sub(r"\s+", " ", _VERBS.sub(" ", text)).strip()
    return re.sub(r"^(?:right|exactly|just)$", "", _ARTICLE.sub("", text))


def _statement(text: str, subject: str, option: str) -> str:
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
    return f"a title card that says {word}"


# Verdicts on notes in general English: the option most of whose words the notes hold.
#
# For notes that are not about the sketch world (see the chapter on its words), where none states an option outright.
# The score of an option is the share of its words that a note holds, on average over the notes; words that few notes
# hold weigh more (inverse document frequency, Sparck Jones 1972), and the forms of a word count as one. No sentence is
# understood: the words only separate what the notes are about from what they are not about. A weak baseline: of
# EgoSchema's 500 questions, with all captions of the video, it answers 49 % rightly, of NExT-QA's validation 45 %
# (chance: 20 %).

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


def judge_by_overlap(question: Question, notes: Sequence[Note]) -> Verdict:
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


def overlap_shares(question: Question, notes: Sequence[Note]) -> list[float]:
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
