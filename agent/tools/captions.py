"""Captions of parts of videos, made from stored frames when an agent first needs them, and stored.

A part is any range of a video; `windows` are the consecutive ones of one length that VideoAgent2 captions (arXiv
2504.04471, section 3.1: a frame a second, clips of 4 s). The caption of a part is stored in the library under the
model's name, so that the model is asked once for all questions; where `kinodex add captions` captioned just this range,
that caption is used, and consecutive windows are not captioned where captions of the library speak of them that are not
much longer. Of two processes that ask for the same at the same moment the first one's caption stays; a
replayed run stores nothing. Parts that show the same frames, as while a picture stands still, have one caption.

Parts are asked for from coarse to fine, so that captions cut short by a budget are spread over the video; those of a
whole video take at most half of what budgets still allow, since an agent needs the rest to work with them. A
part whose description is invalid twice, or refused by the server for what its pictures show, has no caption.

Of a video without pictures no model is asked: the caption of a part is what the library holds in words, lines joined.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import numpy as np

from kinodex.agent.errors import AllRejected, ModelRejected, OutOfBudget
from kinodex.agent.limits.account import Account
from kinodex.agent.limits.ledger import Ledger
from kinodex.agent.limits.parallel_calls import gather_all
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.request_key import request_key
from kinodex.agent.protocol.videos import EXACT_S, Segment, Video
from kinodex.agent.requests.describe import DescribeSegment, Summarize
from kinodex.agent.session import Session
from kinodex.agent.tools.stored_captions import StoredCaptions, as_note, store_captions, stored_captions, stored_clips
from kinodex.agent.traces.events import Acted
from kinodex.index.rows import NoteRow, part_name

CLIP_S = 4.0
FRAMES_A_CLIP = 4
CAPTIONER = DescribeSegment.role
LONGEST_CAPTION_WINDOWS = 4
"""A caption of the library that is longer than this many windows is read, but they are captioned all the same."""
FIRST_PORTION, LARGEST_PORTION = 2, 32
"""Requests at once: a few first, to learn what one costs."""
Span = tuple[float, float]
FrameTime = tuple[str, float]
"""A stored frame by its video and its time in seconds."""
_LOCKS: WeakValueDictionary[tuple[object, ...], asyncio.Lock] = WeakValueDictionary()


def windows(video: Video, segment_s: float = CLIP_S) -> list[Span]:
    """Return the consecutive ranges [start_s, end_s) of `segment_s` that cover a video; the last may be shorter."""
    count = max(1, math.ceil(round(video.duration_s / segment_s, 6)))
    starts_s = [video.start_s + number * segment_s for number in range(count)]
    return list(zip(starts_s, [*starts_s[1:], video.end_s], strict=True))


async def caption_clips(session: Session, video_id: str, segment_s: float = CLIP_S) -> tuple[Note, ...]:
    """Caption a video's consecutive windows, in order, for half of what budgets allow; see `caption_spans`.

    Captions of the library are among them; windows that they cover are not captioned again.
    """
    environment = session.environment
    spans_s = windows(environment.video(video_id), segment_s)
    if not environment.pictured(video_id):
        return await caption_spans(session, video_id, spans_s, half=True)
    held = environment.captions(video_id)
    short = [note for note in held if note.end_s - note.start_s <= LONGEST_CAPTION_WINDOWS * segment_s]
    covered = [span for span in spans_s if _covers(short, span)]
    for span in covered:
        numbers = environment.numbers_between(video_id, *span, FRAMES_A_CLIP)
        session.account.count_captioned(video_id, numbers)
    made = await caption_spans(session, video_id, [span for span in spans_s if span not in covered], half=True)
    return tuple(sorted({*held, *made}, key=lambda note: (note.start_s, note.end_s, note.text)))


def _covers(notes: Sequence[Note], span: Span) -> bool:
    """Return True if notes in order of time speak of all of a range."""
    start_s, end_s = span
    for note in notes:
        if note.start_s <= start_s + EXACT_S:
            start_s = max(start_s, note.end_s)
    return start_s >= end_s - EXACT_S


async def caption_spans(
    session: Session, video_id: str, spans_s: Sequence[Span], half: bool = False
) -> tuple[Note, ...]:
    """Caption each of these ranges of a video, in order; ranges without a caption are left out.

    The role "captioner" is asked for captions that are not stored, for what budgets still allow or `half` of it. A
    spent budget is not raised: the captions so far are returned, and an `Acted` event says what is missing and why.
    """
    if not spans_s:
        return ()
    if not session.environment.pictured(video_id):
        return _text_notes(session, video_id, spans_s)
    scenes = _scenes(session, video_id, spans_s)
    stored = stored_captions(session.environment, video_id, session.model_name(CAPTIONER))
    if session.recording(CAPTIONER) or not all(scene.is_stored(stored) for scene in scenes):
        async with _exclusively(session, video_id):
            stored = stored_captions(session.environment, video_id, session.model_name(CAPTIONER))
            await _caption_missing(session, scenes, stored, 0.5 if half else 1.0)
    captions: dict[Span, Note] = {}
    for scene in scenes:
        if notes := scene.notes(stored):
            captions |= dict(notes)
            session.account.count_captioned(video_id, scene.frame_nos)
    return tuple(captions[span] for span in spans_s if span in captions)


async def caption_frames(session: Session, frames: Iterable[FrameTime]) -> dict[FrameTime, Note]:
    """Caption each frame, for the time until the next stored one; frames without a caption are left out."""
    spans_s: dict[str, list[tuple[float, float]]] = {}
    for video_id, time_s in sorted(set(frames)):
        spans_s.setdefault(video_id, []).append((time_s, session.environment.shown_until(video_id, time_s)))
    notes = await gather_all([caption_spans(session, video_id, spans) for video_id, spans in spans_s.items()])
    return {(note.video_id, note.start_s): note for each in notes for note in each}


def in_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(sorted(set(notes), key=lambda note: (note.video_id, note.start_s, note.end_s, note.text)))


def _text_notes(session: Session, video_id: str, spans_s: Sequence[Span]) -> tuple[Note, ...]:
    """Return the words of these ranges of a video without pictures, and count them as captions that are read."""
    stored = session.environment.frame_times(video_id)
    notes = []
    for span in spans_s:
        if words := session.environment.words(video_id, *span):
            first, until = np.searchsorted(stored.time_s, span)
            session.account.count_captioned(video_id, stored.frame_no[first:until].tolist())
            notes.append(joined(words))
    return tuple(notes)


def joined(words: Sequence[Note]) -> Note:
    """Return one note of several that follow each other, at least one; repeated texts appear once."""
    text = "; ".join(dict.fromkeys(note.text.rstrip(" .") for note in words))
    sure = [note.confidence for note in words if note.confidence is not None]
    first, end_s = words[0], max(note.end_s for note in words)
    return Note(first.video_id, first.start_s, end_s, first.source, text, min(sure, default=None))


async def summarize_video(session: Session, video_id: str, captions: Sequence[Note]) -> Note | None:
    """Summarise a video from the captions of its parts, by the role "policy"; None if the reply is invalid twice.

    Stored as captions are, for exactly these captions. Raises `OutOfBudget`.
    """
    if not captions:
        return None
    environment, recording = session.environment, session.recording(Summarize.role)
    video = environment.video(video_id)
    request = Summarize(videos=(video,), notes=tuple(captions))
    model = f"{session.model_name(request.role)} on captions {request_key(request)[:12]}"
    note = stored_clips(environment, video_id, model).get(part_name(video.start_s, video.end_s))
    if note is None or (recording and recording.holds(request)):
        reply = await session.ask(request)
        if reply is None:
            return None
        row = NoteRow(video_id, model, video.start_s, video.end_s, reply.summary.strip(), None, 0)
        if not recording:
            _report_problems(session, video_id, [store_captions(environment, [row])])
        note = as_note(row)
    return replace(note, source="summary")


@dataclass(frozen=True, slots=True)
class _Scene:
    """Ranges of a video that show the same frames, so that the first one's caption is true of all."""

    video_id: str
    spans_s: tuple[Span, ...]
    frame_nos: tuple[int, ...]

    def is_stored(self, stored: StoredCaptions) -> bool:
        return any(part_name(*span) in stored for span in self.spans_s)

    def notes(self, stored: StoredCaptions) -> list[tuple[Span, Note]]:
        found = [note for span in self.spans_s if (note := stored.get(part_name(*span)))]
        if not found:
            return []
        shared = {span: replace(found[0], start_s=span[0], end_s=span[1]) for span in self.spans_s}
        return [(span, stored.get(part_name(*span)) or note) for span, note in shared.items()]

    def request(self, session: Session) -> DescribeSegment:
        frames = session.environment.frames_numbered(self.video_id, self.frame_nos)
        return DescribeSegment(segment=Segment(0, self.video_id, *self.spans_s[0]), frames=frames)


def _scenes(session: Session, video_id: str, spans_s: Sequence[Span]) -> list[_Scene]:
    """Return all scenes from coarse to fine: by the binary digits of their place in the video, reversed."""
    alike: dict[tuple[int, ...], list[Span]] = {}
    for span in dict.fromkeys(spans_s):
        numbers = session.environment.numbers_between(video_id, *span, FRAMES_A_CLIP)
        alike.setdefault(numbers, []).append(span)
    scenes = [_Scene(video_id, tuple(spans), numbers) for numbers, spans in alike.items()]
    digits = len(scenes).bit_length()
    order = sorted(range(len(scenes)), key=lambda place: f"{place:0{digits}b}"[::-1])
    return [scenes[place] for place in order]


@asynccontextmanager
async def _exclusively(session: Session, video_id: str) -> AsyncIterator[None]:
    """Let one question of this process at a time caption a video with a model: the next finds what it stored."""
    if not session.environment.keep_captions:
        yield
        return
    key = asyncio.get_running_loop(), session.environment.source.uri, video_id, session.model_name(CAPTIONER)
    lock = _LOCKS.setdefault(key, asyncio.Lock())
    await session.in_time(lock.acquire())
    try:
        yield
    finally:
        lock.release()


async def _caption_missing(session: Session, scenes: Sequence[_Scene], stored: StoredCaptions, share: float) -> None:
    """Add captions of the scenes that are not `stored`; a replayed run asks exactly what it asked then."""
    recording = session.recording(CAPTIONER)
    missing = [
        scene
        for scene in scenes
        if (recording.holds(scene.request(session)) if recording else not scene.is_stored(stored))
    ]
    before, taken, done, portion, unsaved = session.account.ledger, session.account.frames_taken, 0, FIRST_PORTION, ""
    frames, refused = max((len(scene.frame_nos) for scene in missing), default=0), list[ModelRejected]()
    while size := min(portion, len(missing) - done, _affordable(session.account, before, taken, done, frames, share)):
        some = missing[done : done + size]
        if not recording:  # another process may be at the same video
            stored |= stored_captions(session.environment, missing[0].video_id, session.model_name(CAPTIONER))
            some = [scene for scene in some if not scene.is_stored(stored)]
        for scene in some:  # at once, since other videos are captioned at the same time
            session.account.claim(scene.video_id, scene.frame_nos)
        unsaved += await _describe(session, some, stored, refused)
        if len(refused) == done + size:  # every one so far: it is not about what some pictures show
            raise refused[-1]
        done, portion = done + size, min(2 * portion, LARGEST_PORTION)
    _report_problems(session, scenes[0].video_id, [*_shortfalls(missing, stored, refused, share), unsaved])


def _shortfalls(
    missing: Sequence[_Scene], stored: StoredCaptions, refused: Sequence[ModelRejected], share: float
) -> list[str]:
    """Say of how many scenes there is no caption, and why; "" for what did not happen."""
    unasked = sum(not scene.is_stored(stored) for scene in missing)
    invalid = sum(scene.is_stored(stored) and not scene.notes(stored) for scene in missing) - len(refused)
    why = "since budgets allow no more" if share == 1.0 else "to leave half of the budget"
    return [
        f"{unasked} of {len(missing)} captions were not asked for, {why}" if unasked else "",
        f"{invalid} of {len(missing)} captions were invalid twice" if invalid else "",
        f"{len(refused)} of {len(missing)} captions were refused, the last because: {refused[-1]}" if refused else "",
    ]


async def _describe(
    session: Session, scenes: Sequence[_Scene], stored: StoredCaptions, refused: list[ModelRejected]
) -> str:
    """Have scenes described at once and store the captions, even after an error; returns why they cannot be stored.

    What the server refuses to describe is added to `refused`.
    """
    rows: list[NoteRow] = []
    unsaved = ""
    try:
        await gather_all([_describe_one(session, scene, stored, rows, refused) for scene in scenes])
    finally:
        if not session.recording(CAPTIONER):
            unsaved = store_captions(session.environment, rows)
    return unsaved


async def _describe_one(
    session: Session, scene: _Scene, stored: StoredCaptions, rows: list[NoteRow], refused: list[ModelRejected]
) -> None:
    request, model, span = scene.request(session), session.model_name(CAPTIONER), scene.spans_s[0]
    try:
        reply = await session.ask(request)
    except OutOfBudget:  # the run may end in an answer from what there is
        return
    except ModelRejected as error:
        if isinstance(error, AllRejected):
            raise
        refused.append(error)
        reply = None
    if reply is None:
        stored[part_name(*span)] = session.environment.unsaved_captions[scene.video_id, model, part_name(*span)] = None
        return
    row = NoteRow(scene.video_id, model, *span, reply.caption.strip(), reply.confidence / 100, len(request.frames))
    rows.append(row)
    stored[row.part] = as_note(row)


def _affordable(account: Account, before: Ledger, taken: int, done: int, frames: int, share: float) -> int:
    """Return the number of further scenes of up to this many frames that fit into this share of what budgets allowed
    before.

    Each is expected to cost as much as the `done` ones did; `taken` is the number of frames taken before.
    """
    spending = [(account.budget.frames, taken, account.frames_taken, float(frames))]
    for name in ("tokens", "cost", "seconds"):
        at_first, by_now = getattr(before, name), getattr(account.ledger, name)
        spending.append((getattr(account.budget, name), at_first, by_now, (by_now - at_first) / max(done, 1)))
    room = float(LARGEST_PORTION)
    for limit, at_first, by_now, each in spending:
        if limit is not None:
            left = share * (limit - at_first) - (by_now - at_first)
            room = min(room, left / each if each else room * (left > 0))
    return max(0, math.floor(room))


def _report_problems(session: Session, video_id: str, problems: Sequence[str]) -> None:
    if any(problems):
        problem = "; ".join(filter(None, problems))
        session.emit(Acted(session.account.rounds, "captions", {"video": video_id}, problem=problem))
