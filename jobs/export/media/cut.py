"""Cut one moment out of a video's file, with the lines that are said in it as its subtitles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from index.clock import player_s, presentation_s
from index.library_reader import LibraryReader
from index.rows import VideoRow
from pipeline.media.add_subtitles import add_subtitles
from pipeline.media.clip import ClipFile
from pipeline.media.copy_clip import copy_clip, copy_suffix
from pipeline.media.encode_clip import encode_ranges
from pipeline.subtitle_formats import Cue

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


def cut_copied(library: LibraryReader, video: VideoRow, path: Path, stem: Path, piece: Range, subtitles: bool) -> Cut:
    """Copy a range of the file `path` to `stem` with the suffix that its codecs need; raises as `copy_clip`."""
    out = stem.with_name(stem.name + copy_suffix(path, video.title))
    until_s = max(piece[1], piece[0] + LEAST_S)
    copied = copy_clip(path, video.title, out, presentation_s(video, piece[0]), presentation_s(video, until_s))
    clip = _as_shown(video, copied)
    return Cut(out, (clip,), _subtitle(library, video, out, [clip]) if subtitles else 0)


def cut_exactly(
    library: LibraryReader, video: VideoRow, path: Path, stem: Path, pieces: Sequence[Range], subtitles: bool
) -> Cut:
    """Encode ranges of the file `path` one after another to `stem`.mp4; raises as `encode_ranges`."""
    out = stem.with_name(stem.name + ".mp4")
    ranges = [(start_s, max(min(end_s, video.end_s), start_s + LEAST_S)) for start_s, end_s in pieces]
    in_file = [(presentation_s(video, start_s), presentation_s(video, end_s)) for start_s, end_s in ranges]
    clips = [_as_shown(video, clip) for clip in encode_ranges(path, video.title, out, in_file)]
    return Cut(out, tuple(clips), _subtitle(library, video, out, clips) if subtitles else 0)


def _as_shown(video: VideoRow, clip: ClipFile) -> ClipFile:
    """A clip with its times as a player of the whole video shows them."""
    return replace(clip, start_s=player_s(video, clip.start_s), end_s=player_s(video, clip.end_s))


def _subtitle(library: LibraryReader, video: VideoRow, out: Path, clips: Sequence[ClipFile]) -> int:
    """Add the transcript of the ranges to a clip that is there; returns the number of lines."""
    cues: list[Cue] = []
    languages = []
    zero_s = 0.0
    for clip in clips:
        for line in library.transcript(video.video_id, clip.start_s, clip.end_s):
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
