"""The subtitles of LongTVQA and LongTVQA+ (arXiv 2512.20618): a JSON object of one text for each clip or episode.

    {"s05e06_seg02_clip_15": "Sheldon : So . <eos> Penny : No . <eos>"}
    {"s05e06": "<seg02_clip_15> Sheldon : So . <eos> ... <seg02_clip_16> ..."}

Both become a video for every episode, whose segments are its clips in order, each `clip_s` seconds long: times are
those of the episode (section 4.1). They hold no times, so the lines of a clip are spread evenly over it. A clip in
which nobody speaks has no lines.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kinodex.jobs.errors import UnreadableText
from kinodex.jobs.text_import.video_text import ReadFailure, ReadResult, TextLine, VideoText, one_line

CLIP_TAG = re.compile(r"<([^<>]*clip_\d+)>")
CLIP_NAME = re.compile(r"(.+)_seg\d+_clip_\d+")
LINE = re.compile(r"\(?\s*(?P<speaker>[^:()]{1,40}?)\s*:\s*\)?\s*(?P<text>.*)")
UNKNOWN_SPEAKER = "UNKNAME"
END = "<eos>"


def read_clips(name: str, document: Mapping[str, Any], clip_s: float) -> Iterator[ReadResult]:
    """Read the text of every episode in a file of either form, whose clips are `clip_s` seconds long."""
    episodes: dict[str, list[VideoText]] = defaultdict(list)
    for key, subtitles in document.items():
        if not isinstance(subtitles, str):
            message = f"{name}: got {type(subtitles).__name__} for {key}; give its subtitles as text"
            yield ReadFailure(name, key, UnreadableText.__name__, message)
        elif CLIP_TAG.search(subtitles):
            before, *parts = CLIP_TAG.split(subtitles)
            problem = f"{name}: {key} has words before its first clip: {one_line(before)}" if before.strip() else None
            for tag, text in zip(parts[::2], parts[1::2], strict=True):
                episodes[key].append(_clip(tag if tag.startswith(key) else f"{key}_{tag}", text, clip_s, problem))
                problem = None
        elif named := CLIP_NAME.fullmatch(key):
            episodes[named[1]].append(_clip(key, subtitles, clip_s, None))
        else:
            yield _clip(key, subtitles, clip_s, None)
    for episode, clips in episodes.items():
        yield _joined(episode, sorted(clips, key=lambda clip: [int(each) for each in re.findall(r"\d+", clip.name)]))


def _joined(episode: str, clips: Sequence[VideoText]) -> VideoText:
    """Return an episode of clips of one length, with their lines on its own time line."""
    clip_s = clips[0].window_s
    lines = [
        replace(line, start_s=line.start_s + at * clip_s, end_s=line.end_s + at * clip_s)
        for at, clip in enumerate(clips)
        for line in clip.lines
    ]
    problem = next((clip.problem for clip in clips if clip.problem), None)
    return VideoText(episode, tuple(lines), len(clips) * clip_s, clip_s, problem, clips=tuple(clips))


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
