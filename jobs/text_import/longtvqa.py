"""The subtitles of LongTVQA and LongTVQA+ (arXiv 2512.20618): a JSON object of one text for each clip, or each episode.

    {"s05e06_seg02_clip_15": "Sheldon : So . <eos> Penny : No . <eos>"}
    {"s05e06": "<seg02_clip_15> Sheldon : So . <eos> ... <seg02_clip_16> ..."}

Both become a video for every clip, under the clip's full name. They tell no times, so the lines of a clip are spread
evenly over `clip_s` seconds. A clip in which nobody speaks is a video without lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jobs.errors import UnreadableText
from jobs.text_import.types import Read, TextLine, Unread, VideoText, plain

CLIP_TAG = re.compile(r"<([^<>]*clip_\d+)>")
SPOKEN = re.compile(r"\(?\s*(?P<speaker>[^:()]{1,40}?)\s*:\s*\)?\s*(?P<text>.*)")
NOBODY = "UNKNAME"
END = "<eos>"


def read_clips(name: str, document: Mapping[str, Any], clip_s: float) -> Iterator[Read]:
    """The text of every clip in a file of either form, `clip_s` seconds long."""
    for key, said in document.items():
        if not isinstance(said, str):
            message = f"{name}: got {type(said).__name__} for {key}; give its subtitles as text"
            yield Unread(name, key, UnreadableText.__name__, message)
        elif CLIP_TAG.search(said):
            before, *parts = CLIP_TAG.split(said)
            problem = f"{name}: {key} has words before its first clip: {plain(before)}" if before.strip() else None
            for tag, text in zip(parts[::2], parts[1::2], strict=True):
                yield _clip(tag if tag.startswith(key) else f"{key}_{tag}", text, clip_s, problem)
                problem = None
        else:
            yield _clip(key, said, clip_s, None)


def _clip(name: str, said: str, clip_s: float, problem: str | None) -> VideoText:
    texts = [plain(text) for text in said.split(END) if text.strip()]
    lines = [
        _line(clip_s * number / len(texts), clip_s * (number + 1) / len(texts), text)
        for number, text in enumerate(texts)
    ]
    return VideoText(name, tuple(lines), clip_s, clip_s, problem)


def _line(start_s: float, end_s: float, said: str) -> TextLine:
    found = SPOKEN.fullmatch(said)
    if found is None or not found["text"]:
        return TextLine(start_s, end_s, said)
    speaker = found["speaker"].strip()
    return TextLine(start_s, end_s, found["text"], speaker=None if speaker == NOBODY else speaker)
