"""The subtitles of LongTVQA and LongTVQA+ (arXiv 2512.20618): a JSON object of one text for each clip or episode.

    {"s05e06_seg02_clip_15": "Sheldon : So . <eos> Penny : No . <eos>"}
    {"s05e06": "<seg02_clip_15> Sheldon : So . <eos> ... <seg02_clip_16> ..."}

Both become a video for every clip, under the clip's full name. They hold no times, so the lines of a clip are spread
evenly over `clip_s` seconds. A clip in which nobody speaks is a video without lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kinodex.jobs.errors import UnreadableText
from kinodex.jobs.text_import.video_text import ReadFailure, ReadResult, TextLine, VideoText, one_line

CLIP_TAG = re.compile(r"<([^<>]*clip_\d+)>")
LINE = re.compile(r"\(?\s*(?P<speaker>[^:()]{1,40}?)\s*:\s*\)?\s*(?P<text>.*)")
UNKNOWN_SPEAKER = "UNKNAME"
END = "<eos>"


def read_clips(name: str, document: Mapping[str, Any], clip_s: float) -> Iterator[ReadResult]:
    """Read the text of every clip in a file of either form, `clip_s` seconds long."""
    for key, subtitles in document.items():
        if not isinstance(subtitles, str):
            message = f"{name}: got {type(subtitles).__name__} for {key}; give its subtitles as text"
            yield ReadFailure(name, key, UnreadableText.__name__, message)
        elif CLIP_TAG.search(subtitles):
            before, *parts = CLIP_TAG.split(subtitles)
            problem = f"{name}: {key} has words before its first clip: {one_line(before)}" if before.strip() else None
            for tag, text in zip(parts[::2], parts[1::2], strict=True):
                yield _clip(tag if tag.startswith(key) else f"{key}_{tag}", text, clip_s, problem)
                problem = None
        else:
            yield _clip(key, subtitles, clip_s, None)


def _clip(name: str, subtitles: str, clip_s: float, problem: str | None) -> VideoText:
    texts = [one_line(text) for text in subtitles.split(END) if text.strip()]
    count = len(texts)
    lines = [_longtvqa_line(clip_s * n / count, clip_s * (n + 1) / count, text) for n, text in enumerate(texts)]
    return VideoText(name, tuple(lines), clip_s, clip_s, problem)


def _longtvqa_line(start_s: float, end_s: float, text: str) -> TextLine:
    found = LINE.fullmatch(text)
    if found is None or not found["text"]:
        return TextLine(start_s, end_s, text)
    speaker = found["speaker"].strip()
    return TextLine(start_s, end_s, found["text"], speaker=None if speaker == UNKNOWN_SPEAKER else speaker)
