"""`kinodex export clips`: moments cut out of the videos' files, a file each, and a manifest."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from kinodex.index.library import LibraryReader
from kinodex.jobs.export.cutting import Cut, CutWay, clip_failure, cut_copied, cut_exactly
from kinodex.jobs.export.file_names import distinct, file_stem, time_stem
from kinodex.jobs.export.moments import Moment, by_video, digest, moment_facts
from kinodex.jobs.export.tables import table_text
from kinodex.jobs.export.target_folder import Target, target_folder
from kinodex.jobs.export.video_files import video_file
from kinodex.redaction import redact_uri

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
