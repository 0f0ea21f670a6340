"""Requests to say what frames show, answered in the sketch world's words (`describing`), one description a frame."""

from __future__ import annotations

from typing import Any

from agent.environment import Environment
from agent.errors import NeedsLanguage
from agent.models.rulebased.describe_frames import Phrase, clauses, describe, joined
from agent.models.rulebased.judge_notes import touches
from agent.requests.describe import DescribeSegment
from agent.variants.longvideoagent.requests import ReadFrames
from agent.variants.videoagent2.requests import CaptionFrames
from agent.variants.videoseek.requests import FocusClip, OverviewVideo, SkimRange

Looking = DescribeSegment | ReadFrames | CaptionFrames | OverviewVideo | SkimRange | FocusClip


def told(environment: Environment, request: Looking) -> dict[str, Any]:
    """The reply as JSON values; raises `NeedsLanguage` where there are no words for what is shown."""
    match request:
        case DescribeSegment():
            whole = describe(environment, request.frames)
            return {"caption": whole.text, "confidence": 100 * whole.confidence}
        case ReadFrames():
            return {"observation": describe(environment, request.frames).text}
        case CaptionFrames():
            return {"captions": _captions(environment, request)}
    texts = [joined(clauses(environment, frame)).text for frame in request.frames]
    if isinstance(request, OverviewVideo):
        return {"frames": [{"frame": at, "description": text} for at, text in enumerate(texts, 1)]}
    relevant = {at: text for at, text in enumerate(texts, 1) if touches(request.query, text)}
    if isinstance(request, SkimRange):
        frames = [{"frame": at, "description": text} for at, text in enumerate(texts, 1)]
        return {"frames": [each | {"relevant": relevant.get(at)} for at, each in enumerate(frames, 1)]}
    answer = "; then ".join(dict.fromkeys(relevant.values()))
    return {"found": bool(relevant), "answer": answer, "frames": list(relevant)}


def _captions(environment: Environment, request: CaptionFrames) -> list[dict[str, Any]]:
    if request.box is not None:
        raise NeedsLanguage(
            "the built-in model knows whole frames, not enlarged parts; give a model that sees as the role vision"
        )
    return [
        {"frame": at, "clauses": [_clause(part, request.confidence) for part in clauses(environment, frame)]}
        for at, frame in enumerate(request.frames, 1)
    ]


def _clause(part: Phrase, sure: bool) -> dict[str, Any]:
    return {"text": part.text, "confidence": part.confidence if sure else None}
