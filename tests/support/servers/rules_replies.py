"""Replies by rules to what trees, controls and captioners ask: answers, scores, queries, choices and descriptions."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from tests.support.servers import rules_words
from tests.support.servers.rules_judge import (
    BELIEVABLE,
    Verdict,
    View,
    judge,
    letter,
    moment,
    most_promising,
    promise_of,
    strongest,
    texts_of,
    wanted,
)
from tests.support.servers.rules_prompt import Asked, Frame, Part
from tests.support.servers.rules_sight import Eyes
from tests.world.rules.notes import relevances as relevance_levels
from tests.world.rules.quoted_lines import is_talk, read_screen
from tests.world.rules.word_overlap import is_general, judge_by_overlap

QUERIES = 5
PARTLY = 0.6
"""Share of a statement's words that makes a caption worth another look."""
HINT = 0.3
"""That of a caption with the right colour or place, and another thing."""
PLACE = re.compile(r"\b(?:in|on|at|under) the .+$")
"""Of a caption of the sketch world, where it is."""
SUMMED = 12
"""Things that a summary names."""
Reply = dict[str, Any]


def frames_view(sight: Eyes, frames: tuple[Frame, ...]) -> View:
    """Frames as they are judged: by what the image tower sees."""
    return View(
        [frame.number for frame in frames],
        [frame.time_s for frame in frames],
        [frame.video for frame in frames],
        lambda texts: sight.strengths(texts, [frame.jpeg for frame in frames]),
        lambda at: sight.describe([frames[at].jpeg])[0].text,
    )


def notes_view(notes: list[Part]) -> View:
    """Notes as they are judged: by their words."""
    return View(
        [note.number for note in notes],
        [note.start_s for note in notes],
        [note.video for note in notes],
        lambda texts: rules_words.strengths(texts, [_text_of(note) for note in notes], [note.score for note in notes]),
        lambda at: _text_of(notes[at]).strip(),
        ranges=True,
    )


def _text_of(note: Part) -> str:
    """The text of a note, without the query that it answers."""
    return note.text.rpartition("?")[2] if note.source.startswith("focus") else note.text


def read_notes(question: Question, notes: list[Part]) -> Verdict:
    """Read notes: quoted lines that hold the answer; those in general English by words, which settles nothing."""
    told = _as_notes(notes)
    written = read_screen(question, told)
    if written.choice is not None:
        first = told[written.evidence[0] - 1].text
        text = question.options[written.choice] if question.options else first
        return Verdict(written.choice, text, 1.0, 1.0, tuple(notes[at - 1].number for at in written.evidence[:4]))
    verdict = judge(question, notes_view(notes))
    if verdict.believable or is_talk(question) or not is_general(told):
        return verdict
    weighed = judge_by_overlap(question, told)
    if weighed.choice is None:
        return verdict
    evidence = tuple(notes[number - 1].number for number in weighed.evidence)
    return Verdict(weighed.choice, question.options[weighed.choice], BELIEVABLE, weighed.lead, evidence)


def likeness(question: Question, notes: list[Part]) -> NDArray[np.float64]:
    """The relevance of notes to a question, 0 to 1: from `HINT` on a little, from `PARTLY` on much."""
    told = _as_notes(notes)
    if is_general(told):
        return np.array([(0.0, HINT, PARTLY)[level - 1] for level in relevance_levels(question, told)])
    matches: NDArray[np.float64] = notes_view(notes).strengths(texts_of(question)).max(axis=1, initial=0.0)
    return matches


def _as_notes(notes: list[Part]) -> list[Note]:
    return [Note(note.video, note.start_s, note.end_s, note.source, _text_of(note), note.score) for note in notes]


FORCED = re.compile(
    "An answer has to be chosen in any case|is true in any case|even if (the evidence is thin|little speaks)"
)
"""Words of prompts under --force-choice."""


def conclusion(question: Question, verdict: Verdict, prompt: str) -> Reply:
    """The answer, or that there is nothing to answer from: it abstains and does not guess, unless it has to."""
    if not verdict.believable and FORCED.search(prompt):
        return guess(question)
    if not verdict.believable:
        return {"action": "insufficient_evidence", "option": None, "answer": None, "evidence": []}
    chosen = letter(question, verdict)
    return {"action": "answer", "option": chosen, "answer": verdict.text, "evidence": list(verdict.evidence)}


def answer(sight: Eyes, asked: Asked) -> Reply:
    """From frames, from notes, from both (what was seen before), or from nothing."""
    question = asked.question
    if "that you cannot see" in asked.text and "Nothing of the video is shown" in asked.text:
        return guess(question)
    seen = judge(question, frames_view(sight, asked.frames)) if asked.frames else Verdict()
    told = read_notes(question, asked.notes) if asked.notes else Verdict()
    best = max(seen, told, key=lambda verdict: verdict.strength)
    if "Answer only if" in asked.text and not best.settled:
        best = Verdict()
    return conclusion(question, best, asked.text)


def guess(question: Question) -> Reply:
    """An option by a hash of the question: what a language model would make up is no better here."""
    if not question.options:
        return {"action": "insufficient_evidence", "option": None, "answer": None, "evidence": []}
    digest = hashlib.sha256("|".join((question.text, *question.options)).encode()).digest()
    chosen, text = question.lettered[digest[0] % len(question.options)]
    return {"action": "answer", "option": chosen, "answer": text, "evidence": []}


def queries(sight: Eyes, asked: Asked) -> Reply:
    """Query for the things that the question names; frames add nothing."""
    if "have been searched for already" in asked.text:
        return {"queries": []}
    return {"queries": list(wanted(asked.question).queries[:QUERIES]) or [asked.question.text]}


def score_segments(sight: Eyes, asked: Asked) -> Reply:
    """Score segments by the likeness of the frames at their borders to anything that the question names.

    Where the prompt says which frames are new, a segment with one of them is scored by new ones alone.
    """
    texts = texts_of(asked.question)
    matches = sight.likenesses(texts, [frame.jpeg for frame in asked.frames])
    new = asked.new_frames
    scores = []
    for part in asked.segments:
        beside = [
            at
            for at, frame in enumerate(asked.frames)
            if frame.video in ("", part.video)
            and min(abs(frame.time_s - part.start_s), abs(frame.time_s - part.end_s)) < 0.1
        ]
        beside = [at for at in beside if asked.frames[at].number in new] or beside
        at, text = np.unravel_index(int(matches[beside].argmax()), (len(beside), len(texts))) if beside else (0, 0)
        best = float(matches[beside][at, text]) if beside else 0.0
        told = f"somewhat like {texts[int(text)]!r}" if best >= 0.5 else ""
        if (promise := promise_of(asked, part)) > best:
            best, told = promise, "its summary speaks of it"
        scores.append({"segment": part.number, "reasoning": told, "score": round(100 * best)})
    return {"segments": scores}


def decide(sight: Eyes, asked: Asked) -> Reply:
    """Answer when it is settled, or when exploring is over; else go beside the moment asked about, else by score."""
    question, view = asked.question, frames_view(sight, asked.frames)
    verdict = judge(question, view)
    told = read_notes(question, asked.notes) if asked.notes else Verdict()
    verdict = max(told, verdict, key=lambda each: (each.settled, each.strength))
    open_ones = [part for part in asked.segments if part.open]
    if verdict.settled or not open_ones or "Exploring is over" in asked.text:
        return {**conclusion(question, verdict, asked.text), "segment": None}
    chosen = _beside_moment(question, view, open_ones)
    chosen = chosen or max(open_ones, key=lambda part: (not part.again, part.score, part.end_s - part.start_s))
    return {"action": "explore", "segment": chosen.number, "option": None, "answer": None, "evidence": []}


def _beside_moment(question: Question, view: View, parts: list[Part]) -> Part | None:
    at = moment(question, view)
    if at is None:
        return None
    after = wanted(question).order != "before"
    return next(
        (
            part
            for part in parts
            if view.videos[at] in ("", part.video)
            and abs((part.start_s if after else part.end_s) - view.times_s[at]) < 0.1
        ),
        None,
    )


def choose_frames(sight: Eyes, asked: Asked) -> Reply:
    """Times in the widest gaps between the frames seen so far, and beside what shows most."""
    question, view = asked.question, frames_view(sight, asked.frames)
    verdict = judge(question, view)
    blank = {"video": None, "times_s": [], **conclusion(question, verdict, asked.text)}
    if verdict.settled:
        return blank
    count = asked.number(r"the times of 1 to (\d+) frames", 1)
    seen_s = _seen(asked)
    video = min(asked.videos, key=lambda each: len(seen_s.get(each.video, ())) / (each.end_s - each.start_s))
    times = [video.start_s, *sorted(seen_s.get(video.video, ())), video.end_s]
    gaps = sorted(itertools.pairwise(times), key=lambda gap: gap[0] - gap[1])[:count]
    middles = [round((low + high) / 2, 1) for low, high in gaps if high - low > 2.0]
    if not middles:
        return blank
    where = video.video or None
    return {**blank, "action": "look", "video": where, "times_s": middles, "option": None, "answer": None}


def _seen(asked: Asked) -> dict[str, list[float]]:
    """Times seen so far by video ("" for the only one), from the list that the prompt gives."""
    found: dict[str, list[float]] = {}
    listed = asked.text.partition("You have seen so far:")[2].partition("\n\nIf ")[0]
    for line in listed.splitlines():
        if line.startswith("- "):
            video, _, times = line[2:].rpartition(": ")
            numbers = [time for time in times.replace(" s", "").split(", ") if time[:1].isdigit()]
            found[video.removeprefix("video ")] = [float(time) for time in numbers]
    return found


def describe(sight: Eyes, asked: Asked) -> Reply:
    """A segment by its frames: what each shows, said once."""
    seen = sight.describe([frame.jpeg for frame in asked.frames])
    texts = dict.fromkeys(each.text for each in seen)
    sure = min((each.sure_of_thing for each in seen), default=0.0)
    return {"caption": "; ".join(texts) or "nothing is shown", "confidence": round(100 * sure)}


def summarize(sight: Eyes, asked: Asked) -> Reply:
    """Every so often one of the captions, in order: a summary leaves most of a film out."""
    notes = asked.notes
    every = notes[:: max(1, len(notes) // 8)][:8]
    return {"summary": ". ".join(f"{note.text} at {note.start_s:.0f} s" for note in every) or "nothing"}


def summarize_part(sight: Eyes, asked: Asked) -> Reply:
    """An entry of a table of contents: the place that is named most often is the title, what is there the summary."""
    if asked.notes:
        texts = [note.text for note in asked.notes]
    else:
        texts = [each.text for each in sight.describe([frame.jpeg for frame in asked.frames])]
    phrases = [
        phrase.strip(" .") for text in texts for phrase in re.split(r"; then |; |[.] ", text) if phrase.strip(" .")
    ]
    places = Counter(found[0] for phrase in phrases if (found := PLACE.search(phrase)))
    title = max(places, key=lambda each: places[each], default=phrases[0] if phrases else "nothing")
    summary = ". ".join([*dict.fromkeys(phrases)][:SUMMED])
    return {"title": " ".join(title.split()[:8]), "summary": f"{summary or 'Nothing is known'}."}


def relevances(sight: Eyes, asked: Asked) -> Reply:
    """Clusters by the words of their captions."""
    matches = likeness(asked.question, asked.notes)
    levels = [3 if match >= PARTLY else 2 if match >= HINT else 1 for match in matches]
    chapter = most_promising(asked)
    hinted = [
        chapter is not None and chapter.video == note.video and chapter.start_s <= note.start_s < chapter.end_s
        for note in asked.notes
    ]
    levels = [max(level, 2) if hint else level for level, hint in zip(levels, hinted, strict=True)]
    told = zip(asked.notes, levels, strict=True)
    return {"clusters": [{"cluster": note.number, "relevance": level} for note, level in told]}


def reflect(sight: Eyes, asked: Asked) -> Reply:
    """Sure if the notes settle the question."""
    verdict = read_notes(asked.question, asked.notes)
    level = 3 if verdict.settled or (verdict.strength > 0.9 and verdict.lead > 0) else 2 if verdict.believable else 1
    return {"reasoning": f"best: {verdict.text} ({verdict.strength:.2f})", "confidence": level}


def find_missing(sight: Eyes, asked: Asked) -> Reply:
    """Ask for the things that the question names, in the segments beside the best note and in the longest ones."""
    notes, most = asked.notes, asked.number(r"Describe 1 to (\d+) frames", 1)
    best, strength = strongest(asked.question, notes_view(notes))
    longest = sorted(asked.segments, key=lambda part: part.start_s - part.end_s)
    longest.sort(key=lambda part: -promise_of(asked, part))
    if best is not None and strength >= PARTLY:
        at_s = notes[best].start_s
        longest.sort(key=lambda part: min(abs(part.start_s - at_s), abs(part.end_s - at_s)))
    texts = texts_of(asked.question)[:most]
    return {
        "frames": [{"segment": longest[at % len(longest)].number, "description": text} for at, text in enumerate(texts)]
    }
