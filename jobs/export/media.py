"""Moments as media: clips cut from the videos' own files, and stored frames as pictures."""

from __future__ import annotations

import errno
import json
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kinodex.index.clocks import player_s, presentation_s
from kinodex.index.library import LibraryReader
from kinodex.index.rows import SourceRow, StoredFrame, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import Moment, Target, by_video, digest, in_time_order, moment_facts, target_folder
from kinodex.jobs.export.texts import check_free, distinct, file_stem, table_text, time_stem, video_stems
from kinodex.jobs.library import picture_of
from kinodex.pipeline.errors import PipelineError, SourceChanged, SourceError, SourceMissing, VideoError, WrongClip
from kinodex.pipeline.fetch import content_id, local_copy
from kinodex.pipeline.filesystems import is_remote
from kinodex.pipeline.media.clip_check import INSIDE_S, check_clip, small_picture
from kinodex.pipeline.media.clip_copy import copy_clip, copy_suffix
from kinodex.pipeline.media.clip_encoding import encode_ranges
from kinodex.pipeline.media.clip_file import ClipFile, Expected, removed_on_error
from kinodex.pipeline.media.clip_subtitles import add_subtitles
from kinodex.pipeline.media.facts import EditFacts, read_edit_facts
from kinodex.pipeline.source import Source
from kinodex.pipeline.stamps import stamp
from kinodex.pipeline.subtitles.cues import Cue
from kinodex.redaction import redact, redact_uri

# `kinodex export clips`: moments cut out of the videos' files, a file each, and a manifest.

MANIFEST = "clips.csv"
OnClip = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ClipRow:
    """A row of the manifest. `start_s` and `end_s` are what the clip shows; `error` says why there is none."""

    file: str
    video_id: str
    title: str
    uri: str
    start_s: float | None
    end_s: float | None
    moment_start_s: float
    moment_end_s: float
    label: str
    score: float | None
    source: str
    way: str
    has_sound: bool | None
    subtitle_lines: int
    error: str


def export_clips(
    library: LibraryReader,
    moments: Sequence[Moment],
    folder: Path,
    way: CutWay,
    on_clip: OnClip = lambda done, total: None,
) -> list[ClipRow]:
    """Write a clip for each moment, and the manifest, into a folder that is new or empty; returns the manifest's rows.

    A video that cannot be cut gives rows with an error; the others go on. An export that was interrupted goes on with
    the clips that are missing. Raises UsageError as `target_folder` does.
    """
    stems = distinct(f"{file_stem(each.video.title)}_{time_stem(each.start_s)}" for each in moments)
    pieces = [_Piece(*each) for each in zip(range(len(moments)), moments, stems, strict=True)]
    settings = {"exact": way.exact, "subtitles": way.subtitles, **moment_facts(moments)}
    if way.subtitles:
        settings["speech"] = digest([(video_id, *library.speech(video_id)) for video_id in by_video(moments)])
    with target_folder(folder, settings, dict) as target:
        missing = [piece for piece in pieces if not target.has(piece.note)]
        done = len(pieces) - len(missing)
        for video_id in by_video(moments):
            for piece, row in _cut_video(library, target, [it for it in missing if it.video_id == video_id], way):
                target.write_bytes(piece.note, json.dumps(asdict(row)))
                done += 1
                on_clip(done, len(pieces))
        notes = [(target.work / piece.note).read_text(encoding="utf-8") for piece in pieces]
        rows = [ClipRow(**json.loads(note)) for note in notes]
        target.write_bytes(MANIFEST, table_text([*ClipRow.__slots__], map(asdict, rows)))
        target.finish(*(row.file for row in rows if row.file), MANIFEST)
    return rows


class _Piece(NamedTuple):
    """A moment to cut, its number among all, and the name of its file without a suffix."""

    number: int
    moment: Moment
    stem: str

    @property
    def note(self) -> str:
        """Name of the file, of the work, that keeps its row: with it, the piece is done."""
        return f"rows/{self.number}.json"

    @property
    def video_id(self) -> str:
        return self.moment.video.video_id


def _cut_video(
    library: LibraryReader, target: Target, pieces: Sequence[_Piece], way: CutWay
) -> Iterator[tuple[_Piece, ClipRow]]:
    """Cut the pieces of one video, whose file is fetched once."""
    if not pieces:
        return
    left = deque(pieces)
    try:
        with video_file(library, pieces[0].moment.video) as path:
            while left:
                row = _cut_row(library, target, path, left[0], way)
                yield left.popleft(), row
    except Exception as error:
        for piece in left:
            yield piece, _row(piece.moment, None, clip_failure(error))


def _cut_row(library: LibraryReader, target: Target, path: Path, piece: _Piece, way: CutWay) -> ClipRow:
    moment, scratch = piece.moment, target.work / "cut"
    try:
        if way.exact:
            times = [(moment.start_s, moment.end_s)]
            cut = cut_exactly(library, moment.video, path, scratch, times, way.subtitles)
        else:
            cut = cut_copied(library, moment, path, scratch, way.subtitles)
    except Exception as error:
        return _row(moment, None, clip_failure(error))
    name = f"{piece.stem}{cut.path.suffix}"
    target.write(name, cut.path.rename)
    return _row(moment, cut, "", name)


def _row(moment: Moment, cut: Cut | None, error: str, name: str = "") -> ClipRow:
    clip = None if cut is None else cut.ranges[0]
    video = moment.video
    return ClipRow(
        name,
        video.video_id,
        video.title,
        redact_uri(video.uri),
        None if clip is None else round(clip.start_s, 6),
        None if clip is None else round(clip.end_s, 6),
        moment.start_s,
        moment.end_s,
        moment.label,
        moment.score,
        moment.source,
        "" if clip is None else clip.way,
        None if clip is None else clip.has_sound,
        0 if cut is None else cut.lines,
        error,
    )


# Cut one moment out of a video's file, with the lines that are said in it as its subtitles.
#
# Every clip is opened again when it is written. It has to show its first and last picture as the file does, and the
# pictures that the library keeps of its time as they are stored; else it is deleted, and no success.

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
    """A clip with its times as a player of the whole video shows them."""
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


# `kinodex export frames`: the stored frames of moments as JPEGs, and a table of them.

TABLE = "frames.csv"
COLUMNS = (
    *("file", "video_id", "title", "uri", "frame_no", "time_s", "width_px", "height_px", "label", "score"),
    "source",
)
FRAMES_A_READ = 64


def export_frames(
    library: LibraryReader, moments: Sequence[Moment], folder: Path, most: int | None = None
) -> list[dict[str, Any]]:
    """Write the frames of each moment, at most so many, and `frames.csv` into a folder that is new or empty.

    Returns the rows of the table: a frame of two moments is one file in two rows.
    """
    stems = video_stems(moments)
    rows: list[dict[str, Any]] = []
    with target_folder(folder, {**moment_facts(moments), "most": most}, dict) as target:
        for moment, frame in frames_of(library, moments, most):
            name = f"frames/{stems[frame.video_id]}_{time_stem(frame.time_s)}_{frame.frame_no}.jpg"
            if not target.has(name):
                target.write_bytes(name, frame.jpeg)
            video = moment.video
            about = name, video.video_id, video.title, redact_uri(video.uri), frame.frame_no, frame.time_s
            facts = *about, frame.width_px, frame.height_px, moment.label, moment.score, moment.source
            rows.append(dict(zip(COLUMNS, facts, strict=True)))
        target.write_bytes(TABLE, table_text(COLUMNS, rows))
        target.finish("frames", TABLE)
    return rows


def frames_of(
    library: LibraryReader, moments: Sequence[Moment], most: int | None = None
) -> Iterator[tuple[Moment, StoredFrame]]:
    """Yield the stored frames within each moment, or the one shown at its beginning, at most so many, evenly spread."""
    held: dict[str, tuple[Any, Any]] = {}
    for moment in moments:
        video = moment.video
        if not video.frames:
            continue
        if video.video_id not in held:
            held = {video.video_id: library.frame_times(video.video_id)}
        numbers = _numbers(*held[video.video_id], moment, most)
        for first in range(0, len(numbers), FRAMES_A_READ):
            for frame in library.frames(video.video_id, numbers[first : first + FRAMES_A_READ]):
                yield moment, frame


def _numbers(frame_no: Any, time_s: Any, moment: Moment, most: int | None) -> list[int]:
    first, last = np.searchsorted(time_s, [moment.start_s, moment.end_s])
    if first == last:
        return [int(frame_no[max(int(np.searchsorted(time_s, moment.start_s, side="right")) - 1, 0)])]
    found = frame_no[first:last]
    if most is not None and len(found) > most:
        found = found[((np.arange(most) + 0.5) * len(found) / most).astype(int)]
    return [int(number) for number in found]


@dataclass(frozen=True, slots=True)
class JoinedClip:
    """A film of the ranges of one video, or the `error` why there is none."""

    path: Path
    title: str
    ranges: tuple[tuple[float, float], ...]
    error: str = ""


def check_clip_path(out: Path) -> None:
    """Raise UsageError for a name that is no .mp4, for a file that is there, and for a folder that is not."""
    if out.suffix.lower() != ".mp4":
        raise UsageError(f"got {out}; a clip is an .mp4: give such a name")
    check_free(out, overwrite=False)
    if not out.parent.is_dir():
        raise UsageError(f"got {out}, whose folder is not there; make it first")


def join_clips(library: LibraryReader, moments: Sequence[Moment], out: Path) -> list[JoinedClip]:
    """Write the moments of each video, in time order and with the transcript as subtitles, as one file a video.

    Moments that overlap are joined; of several videos the files are `out` with -1, -2 and so on. A video that cannot be
    cut gives an entry with an error.
    """
    groups = by_video(moments)
    numbered = [out.with_name(f"{out.stem}-{number}{out.suffix}") for number in range(1, len(groups) + 1)]
    paths = [out] if len(groups) == 1 else numbered
    for path in paths:
        check_clip_path(path)
    return [_joined(library, group, path) for group, path in zip(groups.values(), paths, strict=True)]


def export_joined(library: LibraryReader, moments: Sequence[Moment], folder: Path) -> list[JoinedClip]:
    """Write the films of `join_clips` and a table, `clips.csv`, into a folder that is new or empty."""
    groups = list(by_video(moments).values())
    names = [f"{stem}.mp4" for stem in distinct(file_stem(group[0].video.title) for group in groups)]
    with target_folder(folder, {"joined": True, **moment_facts(moments)}, dict) as target:
        made = [_joined(library, each, target.work / name) for each, name in zip(groups, names, strict=True)]
        rows = [asdict(each) | {"path": "" if each.error else each.path.name} for each in made]
        target.write_bytes(MANIFEST, table_text([*JoinedClip.__slots__], rows))
        target.finish(*(each.path.name for each in made if not each.error), MANIFEST)
    return [replace(each, path=folder / each.path.name) for each in made]


def _joined(library: LibraryReader, moments: Sequence[Moment], out: Path) -> JoinedClip:
    video, ranges = moments[0].video, merged_ranges(moments)
    try:
        with video_file(library, video) as path, tempfile.TemporaryDirectory(dir=out.parent, prefix=".clip-") as work:
            cut: Cut = cut_exactly(library, video, path, Path(work) / "clip", ranges, subtitles=True)
            cut.path.replace(out)
    except Exception as error:
        return JoinedClip(out, video.title, ranges, clip_failure(error))
    return JoinedClip(out, video.title, tuple((each.start_s, each.end_s) for each in cut.ranges))


def merged_ranges(moments: Sequence[Moment]) -> tuple[tuple[float, float], ...]:
    """List the ranges of moments of one video in time order, those that touch as one."""
    ranges: list[tuple[float, float]] = []
    for each in in_time_order(moments):
        if ranges and each.start_s <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], each.end_s)
        else:
            ranges.append((each.start_s, each.end_s))
    return tuple(ranges)


@contextmanager
def video_file(library: LibraryReader, video: VideoRow, *, is_here: bool = False) -> Iterator[Path]:
    """Provide the path of a video's file, for a remote one of a copy that is deleted on leaving.

    Where its address cannot be read, the other places where an ingest found it are tried, with `is_here` those of this
    machine. Equal size and mark of change show that the bytes are those that were indexed; else all of them are read.
    Raises the SourceError of its own address: it is not there, cannot be read, or holds other bytes by now.
    """
    if not video.frames:
        raise SourceMissing(f"{video.title}: was imported as text; there is no file to cut")
    places = library.ingest_log.places(video)
    places.sort(key=lambda place: redact_uri(place.uri) != redact_uri(video.uri))
    with ExitStack() as held:
        yield _first_file(video, [each for each in places if not (is_here and is_remote(each.uri))], held)


def _first_file(video: VideoRow, places: Sequence[SourceRow], held: ExitStack) -> Path:
    first: SourceError | None = None
    for place in places:
        try:
            path = held.enter_context(local_copy(Source(place.uri, video.title)))
            now, noted = stamp(Source(place.uri, video.title)), (place.video_id, place.size_bytes, place.stamp)
            is_unchanged = now is not None and noted == (video.video_id, now.size_bytes, now.mark)
            if is_unchanged or content_id(path) == video.video_id:
                return path
            raise SourceChanged(
                f"{redact_uri(place.uri)}: holds other bytes than those that were indexed; ingest it again first"
            )
        except SourceError as error:
            first = first or error
    assert first is not None  # a video has one place at least
    raise first


def edit_facts_of(library: LibraryReader, videos: Iterable[VideoRow]) -> dict[str, EditFacts]:
    """Read start time codes and times of frames, by video id, of those whose file is on this machine and unchanged."""
    found = {}
    for video in {each.video_id: each for each in videos}.values():
        if is_remote(video.uri):
            continue  # a whole film would be fetched for a few bytes
        try:
            with video_file(library, video, is_here=True) as path:
                found[video.video_id] = read_edit_facts(path, video.title)
        except PipelineError:  # without its file a video is counted by its rate, as remote ones are
            continue
    return found
