"""Texts and the videos that they belong to."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath

from kinodex.index.rows import VideoRow
from kinodex.index.text import composed
from kinodex.jobs.add.run import VideoOutcome
from kinodex.jobs.text_import.video_text import ReadFailure, ReadResult, VideoText


def match_texts(
    read: Iterable[ReadResult], videos: Sequence[VideoRow]
) -> tuple[dict[str, VideoText], list[ReadFailure]]:
    """Match texts to the ids of videos; failures are texts of several videos, and second texts of one."""
    names = known_names(videos)
    texts: dict[str, VideoText] = {}
    unread: list[ReadFailure] = []
    for each in chain.from_iterable(_apart(each, names) for each in read):
        if isinstance(each, ReadFailure):
            unread.append(each)
            continue
        whole_name = composed(each.whole_name)
        if whole_name in names:
            each = replace(each, name=whole_name, lines=tuple(replace(line, language=None) for line in each.lines))
        each = replace(each, name=composed(each.name))
        ids = sorted(names.get(each.name, {text_id(each.name)}))
        if len(ids) > 1:
            message = f"{each.name}: got a text for {len(ids)} videos of that name ({', '.join(ids)}); name it by id"
            unread.append(ReadFailure(each.name, each.name, "UnknownVideo", message))
        elif ids[0] in texts:
            message = f"{each.name}: got a second text for this video; join them, or import one under another --model"
            unread.append(ReadFailure(each.name, each.name, "RepeatedVideo", message))
        else:
            texts[ids[0]] = each
    return texts, unread


def _apart(text: ReadResult, names: Mapping[str, set[str]]) -> Sequence[ReadResult]:
    """Return an episode's clips instead of it where the library holds clips, each as a video, and not the episode."""
    if not isinstance(text, VideoText) or composed(text.name) in names:
        return (text,)
    return text.clips if any(composed(clip.name) in names for clip in text.clips) else (text,)


def known_names(videos: Iterable[VideoRow]) -> Mapping[str, set[str]]:
    """Ids of videos by each of their names: title, stem of the file, id, as `composed` writes them."""
    names: dict[str, set[str]] = defaultdict(set)
    for row in videos:
        for name in (row.title, PurePosixPath(row.uri).stem, row.video_id):
            names[composed(name)].add(row.video_id)
    return names


def text_uri(name: str) -> str:
    """Make the URI of a video that has only a text; its id is the hash of it."""
    return f"imported:{name}"


def text_id(name: str) -> str:
    return hashlib.sha256(text_uri(name).encode()).hexdigest()[:32]


def failed_outcome(source: str, unread: ReadFailure) -> VideoOutcome:
    uri = f"{source}#{unread.where}" if unread.name is None else text_uri(unread.name)
    return VideoOutcome("", uri, unread.name or unread.where, 0, unread.message, unread.error_class)
