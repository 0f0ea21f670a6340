"""Replies by rules to what agents with tools ask: which tool next, and what a tool's frames show.

All of them search alike: look at what the notes half promise, else in the widest part that no note speaks of.
"""

from __future__ import annotations

import re
from typing import Any

from kinodex.agent.protocol.question import Question
from kinodex.index.kinds import QUOTED_KINDS
from tests.support.servers.rules_judge import (
    BELIEVABLE,
    Verdict,
    asked_for,
    judge,
    moment,
    most_promising,
    strongest,
    texts_of,
    wanted,
)
from tests.support.servers.rules_prompt import Asked, Part
from tests.support.servers.rules_replies import PARTLY, conclusion, likeness, notes_view, read_notes
from tests.support.servers.rules_sight import Eyes

Reply = dict[str, Any]
_CLIP = re.compile(
    r'^<clip_(\d+)> (?:video (\S+), )?([\d.]+) s to ([\d.]+) s: (?:said: "|nothing is said)(.*)$', re.MULTILINE
)


def query_of(question: Question) -> str:
    """The thing to look for, as this server's own tools read it (`asked_for`)."""
    return f"{'; '.join(texts_of(question))}?"


def promising(question: Question, notes: list[Part]) -> Part | None:
    """The note that half shows what the question names: worth a closer look."""
    at, strength = strongest(question, notes_view(notes))
    return notes[at] if at is not None and strength >= PARTLY else None


def unseen(videos: list[Part], notes: list[Part]) -> Part:
    """The widest range of a video that no note speaks of, of those shorter than the whole."""
    gaps = []
    for video in videos:
        at_s = video.start_s
        inside = [note for note in notes if note.video == video.video and note.end_s - note.start_s < _whole(video) / 2]
        for note in sorted(inside, key=lambda note: note.start_s):
            gaps.append(Part(0, at_s, max(at_s, note.start_s), video.video))
            at_s = max(at_s, note.end_s)
        gaps.append(Part(0, at_s, video.end_s, video.video))
    return max(gaps, key=_whole)


def _whole(part: Part) -> float:
    return part.end_s - part.start_s


# VideoSeek


def think(sight: Eyes, asked: Asked) -> str:
    """Words that carry nothing: what to do is worked out when it is asked for."""
    notes = asked.notes
    found = promising(asked.question, notes)
    place = f"note {found.number} is worth a closer look" if found else "nothing bears on the question yet"
    return f"There are {len(notes)} notes; {place}."


def seek(sight: Eyes, asked: Asked) -> Reply:
    """Overview first, then the best note in focus, then what nobody has skimmed; the answer when it is settled."""
    question, notes = asked.question, asked.notes
    told = [note for note in notes if note.source not in (*QUOTED_KINDS, "said")]
    verdict = judge(question, notes_view(notes))
    read = read_notes(question, [note for note in notes if note.source in QUOTED_KINDS])
    verdict = read if read.settled else verdict
    if verdict.settled or asked.tools == {"answer"} or _last_step(asked):
        return _finish(asked, verdict)
    chapter = most_promising(asked)
    if not told and chapter is not None and _whole(chapter) >= asked.number(r"a range of at least (\d+) s", 4):
        return _range("skim", chapter.video, chapter.start_s, chapter.end_s, query_of(question))
    if not told:
        return {"tool": "overview", "video": asked.videos[0].video or None}
    query, focused = query_of(question), {note.start_s for note in told if note.source.startswith("focus")}
    longest = asked.number(r"a clip of at most (\d+) s", 4)
    rest = [note for note in told if all(abs(note.start_s - at_s) > longest for at_s in focused)]
    best = promising(question, rest)
    if best is not None:
        video = next(each for each in asked.videos if each.video in ("", best.video))
        start_s = min(max(video.start_s, best.start_s - longest / 4), video.end_s - longest)
        end_s = min(video.end_s, start_s + longest)
        return _range("focus", best.video, max(video.start_s, start_s), end_s, query)
    gap = unseen(asked.videos, told)
    if _whole(gap) < asked.number(r"a range of at least (\d+) s", 4):
        return _finish(asked, verdict)
    return _range("skim", gap.video, gap.start_s, gap.end_s, query)


def _range(tool: str, video: str, start_s: float, end_s: float, query: str) -> Reply:
    return {"tool": tool, "video": video or None, "start_s": start_s, "end_s": end_s, "query": query}


def _finish(asked: Asked, verdict: Verdict) -> Reply:
    said = conclusion(asked.question, verdict, asked.text)
    return {
        "tool": "answer",
        "sufficient": said["action"] == "answer",
        **{name: said[name] for name in ("option", "answer", "evidence")},
    }


def _last_step(asked: Asked) -> bool:
    steps = [re.search(r"Step (\d+) of (\d+)", text) for text in asked.texts]
    last = next((found for found in reversed(steps) if found), None)
    return last is not None and last[1] == last[2]


def describe_frames(sight: Eyes, asked: Asked) -> Reply:
    """A description for each frame; if something is looked for, what of it the frame shows."""
    seen = sight.describe([frame.jpeg for frame in asked.frames])
    told = [{"frame": frame.number, "description": each.text} for frame, each in zip(asked.frames, seen, strict=True)]
    query = asked.line("What is looked for")
    if query:
        for each, shown in zip(told, _shown(sight, asked, query), strict=True):
            each["relevant"] = shown
    return {"frames": told}


def _shown(sight: Eyes, asked: Asked, query: str) -> list[str | None]:
    """The text of a query that each frame shows best, if one is seen in it, or perhaps is."""
    texts = texts_of(asked_for(query))
    matches = sight.strengths(texts, [frame.jpeg for frame in asked.frames])
    best = [(texts[int(row.argmax())], row.max()) for row in matches]
    return [None if match < BELIEVABLE else text if match >= 1.0 else f"perhaps {text}" for text, match in best]


def focus(sight: Eyes, asked: Asked) -> Reply:
    """Find what a clip shows of the query, and at which of its frames."""
    query = asked.line("What is to be found out")
    shown = _shown(sight, asked, query)
    numbers = [frame.number for frame, text in zip(asked.frames, shown, strict=True) if text]
    texts = dict.fromkeys(text for text in shown if text)
    return {"found": bool(texts), "answer": "; ".join(texts), "frames": numbers}


# VideoAgent2


def assess(sight: Eyes, asked: Asked) -> Reply:
    """The answer of the notes, and a confidence by how strongly and how clearly they tell it."""
    question = asked.question
    verdict = read_notes(question, asked.notes)
    level = 0 if not verdict.believable else 5 if verdict.settled else 4 if verdict.strength > 0.93 else 2
    level = min(level, 2) if verdict.lead <= 0 else level
    said = conclusion(question, verdict, asked.text)
    names = ("option", "answer", "evidence")
    return {
        "reasoning": f"{verdict.text}: {verdict.strength:.2f}",
        **{name: said[name] for name in names},
        "confidence": level,
    }


def plan(sight: Eyes, asked: Asked) -> Reply:
    """One step: caption what is promising, frame by frame, else what no tool has looked at."""
    call = tool_call(sight, asked)["action"]
    where = f"{call['start_s']:.0f} s" if call["end_s"] is None else f"{call['start_s']:.0f} to {call['end_s']:.0f} s"
    return {"reasoning": "", "steps": [f"{call['tool']} {where}"], "action": call}


def tool_call(sight: Eyes, asked: Asked) -> Reply:
    """A caption of the range around the best note that no tool has looked at, or of the widest unseen range."""
    question, notes = asked.question, asked.notes
    looked = [note for note in notes if note.source != "captions"]
    rest = [
        note for note in notes if not any(each.start_s <= note.end_s and note.start_s <= each.end_s for each in looked)
    ]
    view = notes_view(notes)
    at = moment(question, view)
    best = promising(question, rest)
    if at is not None and wanted(question).moment:
        best = Part(0, notes[at].end_s, notes[at].end_s + 12.0, notes[at].video)
    part = best or unseen(asked.videos, looked)
    video = next(each for each in asked.videos if each.video in ("", part.video))
    start_s = min(max(part.start_s, video.start_s), video.end_s - 0.1)
    end_s = max(start_s, min(part.end_s, video.end_s))
    return {
        "action": {
            "tool": "caption",
            "video": part.video or None,
            "start_s": start_s,
            "end_s": end_s,
            "box": None,
            "label": None,
        }
    }


def caption_frames(sight: Eyes, asked: Asked) -> Reply:
    """One clause a frame, with how sure the thing in it is."""
    seen = sight.describe([frame.jpeg for frame in asked.frames])
    sure = "For every clause give a confidence" in asked.text
    return {
        "captions": [
            {
                "frame": frame.number,
                "clauses": [{"text": each.text, "confidence": each.sure_of_thing if sure else None}],
            }
            for frame, each in zip(asked.frames, seen, strict=True)
        ]
    }


# LongVideoAgent


def clips(asked: Asked) -> list[Part]:
    """The clips with their words, as the last message that lists them gives them."""
    found = []
    for each in _CLIP.finditer(asked.text):
        place = int(each[1]), float(each[3]), float(each[4]), each[2] or ""
        found.append(Part(*place, each[5].strip('"'), "speech" if 'said: "' in each[0] else ""))
    return found


def master(sight: Eyes, asked: Asked) -> str:
    """Ground, look, and answer when an observation says it; ground once more when it says nothing."""
    question = asked.question
    told = [_observation(number, text) for number, text in enumerate(asked.texts[1:], start=1)]
    verdict = read_notes(question, [*clips(asked), *told])
    grounded = sum("<request_grounding>" in said for said in asked.said)
    looks = "<visual_query>" in asked.text and asked.said and "<request_grounding>" in asked.said[-1]
    over = "answer now" in asked.texts[-1].casefold() or (grounded > 1 and not looks)
    if verdict.settled or over:
        said = conclusion(question, verdict, asked.text)
        return _tag("answer", said["option"] or said["answer"] or "insufficient_evidence")
    return _tag("visual_query", query_of(question)) if looks else _tag("request_grounding", "")


def _observation(number: int, text: str) -> Part:
    """One observation of the master, at the time of its clip."""
    found = re.search(r"\((-?[\d.]+) s to (-?[\d.]+) s(?: of video (\S+))?\)", text)
    times = (float(found[1]), float(found[2]), found[3] or "") if found else (0.0, 0.0, "")
    return Part(number, *times, text=text)


def _tag(name: str, text: str) -> str:
    return f"<think>by rules</think><{name}>{text}</{name}>"


def locate(sight: Eyes, asked: Asked) -> Reply:
    """The clip whose words match best."""
    there = clips(asked)
    return {"clips": [there[int(likeness(asked.question, there).argmax())].number], "reasoning": "its words match best"}


def observe(sight: Eyes, asked: Asked) -> Reply:
    """Describe what the frames show of the request, else what they show at all."""
    query = asked.line("Wanted")
    shown = dict.fromkeys(text for text in _shown(sight, asked, query) if text)
    seen = dict.fromkeys(each.text for each in sight.describe([frame.jpeg for frame in asked.frames]))
    told = f"the frames show {'; '.join(shown)}" if shown else "what is wanted is not there"
    return {"observation": f"{told}. {'; '.join(seen)}"}
