"""The built-in model: a few rules that answer typed requests from the library's own frame embeddings.

It turns a question into statements (`statements`) and compares them with the frames that a request shows, in the
library's space, or with the words of notes (`judge_notes`); in libraries in the built-in space it can also describe
frames (`describe_frames`). A weak but real baseline: perception is the space's, and the reasoning is a few rules. It
sees no frame that was not shown to it. A match is measured against the matches of the same statement with the whole
video (`Environment.deviations`), which any search of the index could see. It refuses what needs language (plans,
thoughts, tool calls, summaries, guesses), and does not imitate it badly.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from functools import partial
from itertools import chain, cycle, pairwise, takewhile
from typing import Any

import numpy as np

from agent.core.protocol import Exchange, R, Request, ShownFrame, citation_numbers
from agent.core.question import Note, Question, ScoredSegment
from agent.environment import Environment
from agent.errors import NeedsLanguage
from agent.models.rulebased import judge_notes
from agent.models.rulebased.describe_frames import describe_reply
from agent.models.rulebased.quoted_moments import Sights, read_moment, words_of
from agent.models.rulebased.read_chapters import promise
from agent.models.rulebased.read_screen import is_talk, screen_reply
from agent.models.rulebased.statements import SOON_S, Statements, Verdict, cloze_statements, to_reply
from agent.requests.answer import AnswerFrames, AnswerNotes, Recall
from agent.requests.describe import DescribeSegment
from agent.requests.tree import Decide, DiscoverQueries, ProposeQueries, ScoreSegments
from agent.requests.verify import Verify
from agent.retrieval.calibration import Floats, calibrate
from agent.variants.eea.requests import ScoreAndPropose
from agent.variants.longvideoagent.requests import LocateClips, ReadFrames
from agent.variants.vca.requests import ChooseFrames
from agent.variants.videoagent.requests import FindMissing, ReflectOnAnswer
from agent.variants.videoagent2.requests import CaptionFrames
from agent.variants.videoseek.look_requests import FocusClip, OverviewVideo, SkimRange
from agent.variants.videotree.requests import JudgeRelevance

MAX_QUERIES = 5
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
        reply = request.Reply.model_validate(_cite_by_number(request, self._reply(request)))
        if reply.declines and request.declining == "never":
            reply = request.Reply.model_validate(self._choose_option(request))
        return Exchange(reply, None, raw=reply.model_dump_json(), seconds=time.perf_counter() - started)

    def _reply(self, request: Request[Any]) -> dict[str, Any]:
        match request:
            case DiscoverQueries(question=question):
                texts = (*words_of(question), *cloze_statements(question).queries)
                return {"queries": texts[:MAX_QUERIES] or (question.text,)}
            case ProposeQueries(question=question, known=known):
                return {"queries": _new_statements(question, known)}
            case ScoreAndPropose(question=question, known=known):
                return {"segments": self._score(request), "queries": _new_statements(question, known)}
            case ScoreSegments():
                return {"segments": self._score(request)}
            case Decide():
                return self._decide(request)
            case ChooseFrames():
                return self._choose(request)
            case AnswerFrames(question=question, frames=frames, notes=()):
                return self._answer_frames(question, frames)
            case AnswerFrames():
                return self._answer_frames_or_notes(request)
            case DescribeSegment() | ReadFrames() | CaptionFrames() | OverviewVideo() | SkimRange() | FocusClip():
                return describe_reply(self.environment, request)
            case Recall() | Verify():
                return self._recall(request)
            case AnswerNotes(question=question, notes=notes):
                return _answer_notes(question, notes)
            case ReflectOnAnswer(question=question, notes=notes):
                verdict = judge_notes.judge(question, notes)
                return {"confidence": 3 if judge_notes.is_settled(verdict) else 2 if verdict.choice is not None else 1}
            case FindMissing():
                return {"frames": _find_missing(request)}
            case JudgeRelevance(question=question, notes=notes):
                levels = judge_notes.relevances(question, notes)
                return {"clusters": [{"cluster": at + 1, "relevance": level} for at, level in enumerate(levels)]}
            case LocateClips():
                return {"clips": judge_notes.locate_clip(request)}
        raise NeedsLanguage(
            f"the built-in model compares pictures with words and has no language for {type(request).__name__}; "
            "this agent needs a language model; give --model and --base-url"
        )

    def _choose_option(self, request: Request[Any]) -> dict[str, Any]:
        """Choose the option that the frames show best though it is not visible, without frames one by chance."""
        question = getattr(request, "question", None)
        if not isinstance(question, Question) or not question.options:
            return {"action": "insufficient_evidence"}
        at = zlib.crc32(question.text.encode()) % len(question.options)
        if request.frames:
            at = int(match_frames(self.environment, cloze_statements(question).options, request.frames).max(0).argmax())
        return {"action": "answer", "option": question.lettered[at][0], "answer": None, "evidence": []}

    def _score(self, request: ScoreSegments) -> list[dict[str, Any]]:
        """Score each segment by the best match of a statement with a frame at its borders, a new one if it has one."""
        queries = cloze_statements(request.question).queries or (request.question.text,)
        matches = match_frames(self.environment, queries, request.frames)
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
        return scores

    def _decide(self, request: Decide) -> dict[str, Any]:
        verdict = judge_frames(self.environment, request.question, request.frames)
        open_ones = [each for each in request.candidates if each.explorable]
        clear = self._recall(request) if request.notes else {}
        if clear.get("action") == "answer":
            return clear
        if frames_settle(verdict) or request.must_answer or not open_ones:
            return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
        return {"action": "explore", "segment": self._next_segment(request.question, open_ones, request.frames)}

    def _next_segment(
        self, question: Question, open_ones: Sequence[ScoredSegment], frames: Sequence[ShownFrame]
    ) -> int:
        """The segment with the highest score, or the one beside the moment that the question names."""
        statements = cloze_statements(question)
        moment = find_moment(self.environment, statements, frames)
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

    def _choose(self, request: ChooseFrames) -> dict[str, Any]:
        """Answer if the frames settle the question, else ask for the middles of the longest unseen stretches."""
        verdict = judge_frames(self.environment, request.question, request.frames)
        if frames_settle(verdict):
            return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
        video = min(request.videos, key=lambda each: sum(video_id == each.video_id for video_id, _ in request.seen))
        times_s = sorted([video.start_s, *(at_s for video_id, at_s in request.seen if video_id == video.video_id)])
        gaps_s = sorted(pairwise([*times_s, video.end_s]), key=lambda gap: gap[0] - gap[1])
        middles_s = [(start_s + end_s) / 2 for start_s, end_s in gaps_s[: request.count]]
        return {"action": "look", "video": video.video_id, "times_s": middles_s}

    def _answer_frames(self, question: Question, frames: Sequence[ShownFrame]) -> dict[str, Any]:
        return to_reply(question, judge_frames(self.environment, question, frames), [each.time_s for each in frames])

    def _answer_frames_or_notes(self, request: AnswerFrames) -> dict[str, Any]:
        """Answer what the text on screen, the frames or the notes show clearly; else what the frames show best."""
        clear = self._recall(request)
        return clear if clear["action"] == "answer" else self._answer_frames(request.question, request.frames)

    def _recall(self, request: Recall | Verify | AnswerFrames | Decide) -> dict[str, Any]:
        """Answer what text on screen, frames or notes show clearly; for a follow-up, those of earlier questions."""
        written = self._joined(request) or screen_reply(request.question, request.notes, len(request.frames))
        if written is not None:
            return written
        verdict = judge_frames(self.environment, request.question, request.frames)
        if frames_settle(verdict):
            return to_reply(request.question, verdict, [each.time_s for each in request.frames])
        verdict = judge_notes.judge(request.question, request.notes)
        if not judge_notes.is_settled(verdict):
            return to_reply(request.question, Verdict(), ())
        reply = to_reply(request.question, verdict, [each.start_s for each in request.notes])
        return reply | {"evidence": [len(request.frames) + number for number in verdict.evidence]}

    def _joined(self, request: Recall | Verify | AnswerFrames | Decide) -> dict[str, Any] | None:
        """Answer what quoted lines and the frames at their times tell together; None where they tell nothing."""
        question, frames = request.question, request.frames
        times_s, videos = [frame.time_s for frame in frames], [frame.video_id for frame in frames]
        matches = partial(match_frames, self.environment, frames=frames)
        found = read_moment(question, request.notes, Sights(videos, times_s, times_s, matches, MIN_RELEVANT))
        if found is None:
            return None
        evidence = *(at + 1 for at in found.sights), *(len(frames) + at + 1 for at in found.lines)
        letter, text = question.lettered[found.choice]
        return {"action": "answer", "option": letter, "answer": text, "evidence": evidence}


def _cite_by_number(request: Request[R], reply: dict[str, Any]) -> dict[str, Any]:
    """The reply with evidence by the numbers that frames and notes have in the request, not by their places."""
    numbers = list(chain(*citation_numbers(request.frames, getattr(request, "notes", ()))))
    if not reply.get("evidence") or not numbers:
        return reply
    return reply | {"evidence": [numbers[place - 1] for place in reply["evidence"]]}


def _answer_notes(question: Question, notes: Sequence[Note]) -> dict[str, Any]:
    written = screen_reply(question, notes)
    return written or to_reply(question, judge_notes.judge(question, notes), [note.start_s for note in notes])


def _new_statements(question: Question, known: Sequence[str]) -> list[str]:
    """Statements that discovery left out: there are no words for anything else in a frame."""
    folded = {query.casefold() for query in known}
    statements = cloze_statements(question)
    return [text for text in (*statements.queries, *statements.options) if text not in folded][:MAX_QUERIES]


def _find_missing(request: FindMissing) -> list[dict[str, Any]]:
    """Look for the statements in turn, each in another of the longest segments; or for all beside the moment."""
    statements = cloze_statements(request.question)
    texts = statements.queries or (request.question.text,)
    promises = {each.number: promise(request.question, request.chapters, each) for each in request.segments}
    segments = sorted(request.segments, key=lambda each: (-promises[each.number], each.start_s - each.end_s))
    then = judge_notes.find_moments(statements.moment, request.notes) if statements.moment else []
    beside = [
        segment
        for segment in segments
        for note in then
        if note.start_s == (segment.start_s if statements.order == "after" else segment.end_s)
        and note.video_id == segment.video_id
    ]
    if beside:
        texts = statements.options or texts
        segments = beside[:1] * len(texts)
    return [
        {"segment": segment.number, "description": text}
        for segment, text in zip(segments[: request.most], cycle(texts), strict=False)
    ]


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
    """True if the frames show one choice clearly."""
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
