"""Rules for the requests that one agent alone sends."""

from __future__ import annotations

from dataclasses import asdict
from itertools import cycle
from typing import Any

from kinodex.agent.errors import NeedsLanguage
from kinodex.agent.similarity.replies import look_between
from kinodex.agent.variants.eea.requests import ProposeQueries
from kinodex.agent.variants.kino.requests import PlanSearch
from kinodex.agent.variants.longvideoagent.requests import LocateClips, ReadFrames
from kinodex.agent.variants.vca.frame_choice import ChooseFrames
from kinodex.agent.variants.videoagent.requests import SURE, FindMissing, ReflectOnAnswer
from kinodex.agent.variants.videoagent2.requests import CaptionFrames
from kinodex.agent.variants.videoseek.look_requests import FocusClip, OverviewVideo, SkimRange
from kinodex.agent.variants.videotree.requests import JudgeRelevance
from kinodex.agent.videos.environment import Environment
from tests.world.rules.descriptions import clauses, describe, describe_each
from tests.world.rules.frames import frames_settle, judge_frames
from tests.world.rules.notes import find_moments, is_relevant, is_settled, judge, relevances, word_share
from tests.world.rules.quoted_lines import is_talk
from tests.world.rules.rules import new_statements, rule
from tests.world.rules.statements import cloze_statements, to_reply


@rule.register(LocateClips)
def _locate_by_rule(request: LocateClips, environment: Environment) -> dict[str, Any]:
    """Find the clip whose words hold most of the question."""
    queries = list(cloze_statements(request.question).queries)
    words = {clip.number: clip.text for clip in request.clips}
    shares = [(max((word_share(text, words[at]) for text in queries), default=0.0), -at) for at in words]
    _, number = max(shares)
    return {"clips": [-number]}


@rule.register(ReadFrames)
def _read_by_rule(request: ReadFrames, environment: Environment) -> dict[str, Any]:
    return {"observation": describe(environment, request.frames).text}


@rule.register(OverviewVideo)
def _overview_by_rule(request: OverviewVideo | SkimRange, environment: Environment) -> dict[str, Any]:
    texts = describe_each(environment, request.frames)
    return {"frames": [{"frame": at, "description": text} for at, text in enumerate(texts, 1)]}


@rule.register(SkimRange)
def _skim_by_rule(request: SkimRange, environment: Environment) -> dict[str, Any]:
    described = _overview_by_rule(request, environment)["frames"]
    texts = [each["description"] for each in described]
    relevant = [text if is_relevant(request.query, text) else None for text in texts]
    return {"frames": [{**each, "relevant": why} for each, why in zip(described, relevant, strict=True)]}


@rule.register(FocusClip)
def _focus_by_rule(request: FocusClip, environment: Environment) -> dict[str, Any]:
    texts = enumerate(describe_each(environment, request.frames), 1)
    relevant = {at: text for at, text in texts if is_relevant(request.query, text)}
    answer = "; then ".join(dict.fromkeys(relevant.values()))
    return {"found": bool(relevant), "answer": answer, "frames": list(relevant)}


@rule.register(CaptionFrames)
def _caption_by_rule(request: CaptionFrames, environment: Environment) -> dict[str, Any]:
    if request.box is not None:
        raise NeedsLanguage(
            "the built-in model knows whole frames, not enlarged parts; give a model that sees as the role vision"
        )
    parts = [clauses(environment, frame) for frame in request.frames]
    said = [[asdict(each) if request.confidence else {"text": each.text} for each in part] for part in parts]
    return {"captions": [{"frame": at, "clauses": each} for at, each in enumerate(said, 1)]}


@rule.register(ChooseFrames)
def _choose_by_rule(request: ChooseFrames, environment: Environment) -> dict[str, Any]:
    """Answer if the frames settle the question, else ask for the middles of the longest unseen stretches."""
    verdict = judge_frames(environment, request.question, request.frames)
    if frames_settle(verdict):
        return to_reply(request.question, verdict, [frame.time_s for frame in request.frames])
    return look_between(request)


@rule.register(JudgeRelevance)
def _judge_by_rule(request: JudgeRelevance, environment: Environment) -> dict[str, Any]:
    levels = enumerate(relevances(request.question, request.notes), start=1)
    return {"clusters": [{"cluster": number, "relevance": level} for number, level in levels]}


@rule.register(ReflectOnAnswer)
def _reflect_by_rule(request: ReflectOnAnswer, environment: Environment) -> dict[str, Any]:
    verdict = judge(request.question, request.notes)
    return {"confidence": SURE if is_settled(verdict) else 2 if verdict.choice is not None else 1}


@rule.register(FindMissing)
def _find_by_rule(request: FindMissing, environment: Environment) -> dict[str, Any]:
    """Look for the statements in turn, each in another of the longest segments; or for all beside the moment."""
    statements = cloze_statements(request.question)
    texts = statements.queries or (request.question.text,)
    segments = sorted(request.segments, key=lambda each: each.start_s - each.end_s)
    then = find_moments(statements.moment, request.notes) if statements.moment else []
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
    wanted = zip(segments[: request.most], cycle(texts), strict=False)
    return {"frames": [{"segment": segment.number, "description": text} for segment, text in wanted]}


@rule.register(ProposeQueries)
def _propose_by_rule(request: ProposeQueries, environment: Environment) -> dict[str, Any]:
    return {"queries": new_statements(request.question, request.known)}


@rule.register(PlanSearch)
def _plan_by_rule(request: PlanSearch, environment: Any) -> dict[str, Any]:
    where = "words" if is_talk(request.question) else "moment"
    return {"queries": new_statements(request.question, ()), "where": where}
