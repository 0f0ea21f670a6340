"""The content of a request as JSON values, and the key under which its reply is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from kinodex.agent.protocol.frames import ShownFrame
from kinodex.agent.protocol.reply import R
from kinodex.agent.protocol.request import Request


def request_fields(request: Request[R]) -> dict[str, object]:
    """Return a request as JSON values; a frame is named by its video, number, time and the hash of its picture."""
    if not is_dataclass(request):
        raise TypeError(f"{type(request).__name__} is not a dataclass")
    return {"kind": type(request).__name__, **_plain_fields(request)}


def request_key(request: Request[R]) -> str:
    """Content key of a request: 32 hex digits, equal exactly when all inputs (and the attempt) are equal."""
    text = json.dumps(request_fields(request), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def plain(value: object) -> object:
    """Convert frozen dataclasses, tuples and mappings to JSON values; a frame's picture becomes its hash."""
    if isinstance(value, ShownFrame):
        digest = hashlib.sha256(value.jpeg).hexdigest()[:16]
        frame = {"video_id": value.video_id, "frame_no": value.frame_no, "time_s": value.time_s}
        detail = {} if value.detail == "auto" else {"detail": value.detail}
        label = {"label": value.label} if value.label else {}
        return {**frame, "jpeg": digest, **detail, **label}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    return value


def _plain_fields(value: Any) -> dict[str, object]:
    return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
