"""One moment cut out of a video's file, with the lines that are said in it as its subtitles.

Every clip is opened again when it is written. It has to show its first and last picture as the file does, and the
pictures that the library keeps of its time as they are stored; else it is deleted, and no success.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from kinodex.index.clocks import player_s, presentation_s
from kinodex.index.library import LibraryReader
from kinodex.index.rows import VideoRow
from kinodex.jobs.export.moments import Moment
from kinodex.jobs.library import picture_of
from kinodex.pipeline.errors import PipelineError, VideoError, WrongClip
from kinodex.pipeline.media.clip_check import INSIDE_S, check_clip, small_picture
from kinodex.pipeline.media.clip_copy import copy_clip, copy_suffix
from kinodex.pipeline.media.clip_encoding import encode_ranges
from kinodex.pipeline.media.clip_file import ClipFile, Expected, removed_on_error
from kinodex.pipeline.media.clip_subtitles import add_subtitles
from kinodex.pipeline.subtitles.cues import Cue
from kinodex.redaction import redact

LEAST_S = 0.04
"""A moment shorter than this is cut as long: a range of no length shows nothing."""


@dataclass(frozen=True, slots=True)
class CutWay:
    """Way to cut: at key frames without loss, or `exact` by encoding again; with subtitles or without."""

    exact: bool = False
    subtitles: bool = True


@dataclass(frozen=True, slots=True)
class Cut:
    """A clip that was written: its ranges in the order in which it shows them, and its lines of subtitles."""

    path: Path
    ranges: tuple[ClipFile, ...]
    lines: int


Range = tuple[float, float]


def clip_failure(error: Exception) -> str:
    """Say why one clip failed, whatever it was; raises the error again where every other would meet it: a full disk."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise error
    return redact(str(error) if isinstance(error, PipelineError) else f"{type(error).__name__}: {error}")


def cut_copied(library: LibraryReader, moment: Moment, path: Path, stem: Path, subtitles: bool) -> Cut:
    """Copy a moment out of the file `path` to `stem` with the suffix that its codecs need."""
    video, until_s = moment.video, max(moment.end_s, moment.start_s + LEAST_S)
    out = stem.with_name(stem.name + copy_suffix(path, video.title))
    clip = copy_clip(path, video.title, out, moment.presentation_start_s, presentation_s(video, until_s))
    return _checked(library, video, out, [clip], subtitles)


def cut_exactly(
    library: LibraryReader, video: VideoRow, path: Path, stem: Path, pieces: Sequence[Range], subtitles: bool
) -> Cut:
    """Encode ranges of the file `path` one after another to `stem`.mp4; raises WrongClip, or as `encode_ranges`.

    A file in which a search leads to other pictures, such as one whose clock is reset, is decoded from its beginning.
    """
    out = stem.with_name(stem.name + ".mp4")
    ranges = [(start_s, max(min(end_s, video.end_s), start_s + LEAST_S)) for start_s, end_s in pieces]
    in_file = [(presentation_s(video, start_s), presentation_s(video, end_s)) for start_s, end_s in ranges]
    try:
        return _checked(library, video, out, encode_ranges(path, video.title, out, in_file), subtitles)
    except (VideoError, WrongClip):
        clips = encode_ranges(path, video.title, out, in_file, search=False)
        return _checked(library, video, out, clips, subtitles)


def _checked(library: LibraryReader, video: VideoRow, out: Path, clips: Sequence[ClipFile], subtitles: bool) -> Cut:
    """Add the subtitles to a clip, and check what it shows."""
    clips = [_as_shown(video, clip) for clip in clips]
    with removed_on_error(out):
        lines = _subtitle(library, video, out, clips) if subtitles else 0
        check_clip(out, video.title, [*chain.from_iterable(clip.expected for clip in clips)])
        check_clip(out, video.title, _stored_pictures(library, video, clips))
    return Cut(out, tuple(clips), lines)


def _stored_pictures(library: LibraryReader, video: VideoRow, clips: Sequence[ClipFile]) -> Iterator[Expected]:
    """Read the first and the last picture that the library keeps of the time of each range."""
    frame_no, time_s = library.frame_times(video.video_id)
    zero_s = 0.0
    for clip in clips:
        first, after = np.searchsorted(time_s, [clip.start_s, clip.end_s - INSIDE_S])
        numbers = [int(number) for number in dict.fromkeys(frame_no[first:after][[0, -1]])] if after > first else []
        for frame in library.frames(video.video_id, numbers):
            shown_s = zero_s + frame.time_s - clip.start_s + INSIDE_S
            yield Expected(shown_s, small_picture(np.asarray(picture_of(frame))))
        zero_s += clip.end_s - clip.start_s


def _as_shown(video: VideoRow, clip: ClipFile) -> ClipFile:
    """Return a clip with its times as a player of the whole video shows them."""
    return replace(clip, start_s=player_s(video, clip.start_s), end_s=player_s(video, clip.end_s))


def _subtitle(library: LibraryReader, video: VideoRow, out: Path, clips: Sequence[ClipFile]) -> int:
    """Add the transcript of the ranges to a clip that is there; returns the number of lines."""
    cues: list[Cue] = []
    languages = []
    zero_s = 0.0
    for clip in clips:
        for line in library.speech(video.video_id, clip.start_s, clip.end_s):
            start_s, end_s = max(line.start_s, clip.start_s), min(line.end_s, clip.end_s)
            shift_s = zero_s - clip.start_s
            cues.append(Cue(start_s + shift_s, end_s + shift_s, line.text, line.speaker))
            languages.append(line.language)
        zero_s += clip.end_s - clip.start_s
    if cues:
        with_text = out.with_name(f"text-{out.name}")
        add_subtitles(out, with_text, cues, next(filter(None, languages), None))
        with_text.replace(out)
    return len(cues)
