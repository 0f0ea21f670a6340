"""Caption and transcript files: the forms that benchmarks publish, subtitles, and kinodex's own JSON lines."""

from __future__ import annotations

import math
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from kinodex.jobs.errors import UnreadableText, UsageError
from kinodex.jobs.json_files import first_defect, parse_json
from kinodex.pipeline.errors import SubtitleError
from kinodex.pipeline.sources import SUBTITLE_SUFFIXES, sidecar_tags, walk
from kinodex.pipeline.subtitles.lines import subtitle_lines

WINDOW_S = 10.0
"""Length of the segments of a video that has only a transcript; as in an ingest without shots."""
PROBLEMS_SHOWN = 3
LONGEST_S = 1e7
"""Greatest time of a line, 115 days: a video without frames is divided into windows up to its last line."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """Caption or speech in `[start_s, end_s)`, in the time that a player shows; `confidence` is 0 to 1."""

    start_s: float
    end_s: float
    text: str
    confidence: float | None = None
    speaker: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class VideoText:
    """All lines of one video in order of time. `problem` says which of its text was left out, if any."""

    name: str
    """Name of the video: its title, the stem of its file, or a library's id."""
    lines: tuple[TextLine, ...]
    duration_s: float | None = None
    """None if the text does not hold it: the video ends with its last line."""
    window_s: float = WINDOW_S
    problem: str | None = None
    whole_name: str = ""
    """The name with what was read as a language: it is the video's if the library has one of that name."""


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """File, or video of one, whose text cannot be read; `name` is None if no video is known."""

    where: str
    name: str | None
    error_class: str
    message: str


ReadResult = VideoText | ReadFailure


def video_text(where: str, name: str, lines: Sequence[TextLine], problems: Sequence[str]) -> ReadResult:
    """Make the text of a video, or a failure if it has no line."""
    late = [line for line in lines if not line.start_s <= LONGEST_S or line.end_s > LONGEST_S]
    lines = [line for line in lines if line not in late]
    problems = [*problems, *(f"{line.start_s:g} s to {line.end_s:g} s, later than any video" for line in late)]
    left_out = first_problems(problems)
    if not lines:
        message = f"{where}: got no text of video {name}{left_out and f' ({left_out})'}; give it at least one line"
        return ReadFailure(where, name, "EmptyText", message)
    ordered = sorted(lines, key=lambda line: (line.start_s, line.end_s))
    return VideoText(name, tuple(ordered), problem=f"{where}: {left_out}" if left_out else None)


def first_problems(problems: Sequence[str]) -> str:
    """Format the first few problems in one line; empty if there are none."""
    if not problems:
        return ""
    more = f" and {len(problems) - PROBLEMS_SHOWN:,} more" if len(problems) > PROBLEMS_SHOWN else ""
    return f"{len(problems):,} left out: {'; '.join(problems[:PROBLEMS_SHOWN])}{more}"


def one_line(text: str) -> str:
    return " ".join(text.split())


# Caption and transcript files in the forms that benchmarks publish.

CAPTION_SUFFIXES = (".json", ".jsonl")
CAPTION_FORMS = (
    'forms: {"video": ["caption", ...]}, {"second": "caption"}, or JSON lines with video, start_s, end_s, text'
)


def read_captions(source: Path, seconds: float) -> Iterator[ReadResult]:
    """Read the captions of every video in a file, folder or zip; one that has no end lasts for `seconds`.

    Forms: `{video: [caption, ...]}`, a caption for every `seconds` (LaViLa's of EgoSchema); `{second: caption}`, a file
    a video, named after it or with `_cap` behind (NExT-QA's of VideoAgent); JSON lines. Raises UsageError.
    """
    return read_files(source, CAPTION_SUFFIXES, lambda name, data: _caption_texts(name, data, seconds))


def _caption_texts(name: str, data: bytes, seconds: float) -> Iterator[ReadResult]:
    if is_rows(name, data):
        yield from read_rows(name, data)
        return
    document = json_of(name, data)
    if isinstance(document, dict) and any(isinstance(each, list) for each in document.values()):
        for video, captions in document.items():
            if isinstance(captions, list):
                yield _timed(name, video, [(n * seconds, each) for n, each in enumerate(captions)], seconds)
            else:
                message = f"{name}: got {type(captions).__name__} for video {video}; give a list of captions"
                yield ReadFailure(name, video, UnreadableText.__name__, message)
    elif isinstance(document, dict) and document and all(_second(key) is not None for key in document):
        captions = [(_second(key) or 0.0, each) for key, each in document.items()]
        yield _timed(name, stem(name).removesuffix("_cap"), captions, seconds)
    else:
        raise UnreadableText(f"{name}: got JSON of another form than captions; {CAPTION_FORMS}")


def _timed(where: str, video: str, captions: Sequence[tuple[float, Any]], seconds: float) -> ReadResult:
    lines: list[TextLine] = []
    problems: list[str] = []
    for start_s, caption in captions:
        if isinstance(caption, str) and caption.strip():
            lines.append(TextLine(start_s, start_s + seconds, one_line(caption)))
        else:
            problems.append(f"{video} at {start_s:g} s: got {caption!r}, which is no caption")
    return video_text(where, video, lines, problems)


def _second(key: str) -> float | None:
    """Parse a key as a time in seconds; None if it is none."""
    try:
        time_s = float(key)
    except ValueError:
        return None
    return time_s if math.isfinite(time_s) and time_s >= 0 else None


TRANSCRIPT_SUFFIXES = (*SUBTITLE_SUFFIXES, ".json", ".jsonl")
TRANSCRIPT_FORMS = (
    "forms: subtitles (SRT, VTT, ASS), LongVideoBench's lists of lines, LongTVQA's texts by clip or episode, or JSON "
    "lines with video, start_s, end_s, text"
)


def read_transcripts(source: Path, clip_s: float, cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
    """Read the lines of every video in a file, folder or zip; `clip_s` is the length of LongTVQA's clips."""
    return read_files(source, TRANSCRIPT_SUFFIXES, lambda name, data: _transcript_texts(name, data, clip_s, cuts))


def _transcript_texts(name: str, data: bytes, clip_s: float, cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
    if PurePosixPath(name).suffix.lower() in SUBTITLE_SUFFIXES:
        yield _subtitles(name, data)
        return
    if is_rows(name, data):
        yield from read_rows(name, data)
        return
    document = json_of(name, data)
    if isinstance(document, list) and any(isinstance(row, dict) and {"text", "line"} & row.keys() for row in document):
        yield from read_lines(name, document, cuts)
    elif isinstance(document, dict) and any(isinstance(each, str) for each in document.values()):
        yield from read_clips(name, document, clip_s)
    else:
        raise UnreadableText(f"{name}: got JSON of another form than a transcript; {TRANSCRIPT_FORMS}")


def _subtitles(name: str, data: bytes) -> ReadResult:
    """Read subtitles named after their video, with the language if there is one: film.srt, film.en.srt."""
    video, language = sidecar_tags(name)
    problems: list[str] = []
    lines = [
        TextLine(line.start_s, line.end_s, one_line(line.text), None, line.speaker, language)
        for line in subtitle_lines(data, name, report=problems.append)
    ]
    text = video_text(name, video, lines, problems)
    return replace(text, whole_name=stem(name)) if language and isinstance(text, VideoText) else text


SMALL_BYTES, MOST_TIMES = 64_000_000, 50
"""Texts of an archive are read if they take no more than this, or no more than so many times the archive's own size."""

# Files of a source: one file, all of a folder, or all of a zip archive; a bad one does not stop the others.


def read_files(
    source: Path, suffixes: Collection[str], texts_of: Callable[[str, bytes], Iterable[ReadResult]]
) -> Iterator[ReadResult]:
    """Apply `texts_of` to the name and the bytes of every file that has one of these suffixes; raises UsageError."""
    found = False
    for name, read in _files(source, suffixes):
        found = True
        try:
            data = read()
        except (OSError, zipfile.BadZipFile, RuntimeError) as error:  # RuntimeError: a member is encrypted
            message = f"{name}: cannot be read ({error}); repair the file or remove it"
            yield ReadFailure(name, None, UnreadableText.__name__, message)
            continue
        try:
            yield from texts_of(name, data)
        except (UnreadableText, SubtitleError) as error:
            yield ReadFailure(name, None, type(error).__name__, str(error))
    if not found:
        raise UsageError(
            f"got {source}, which holds no text; give {', '.join(sorted(suffixes))} files, or a zip of them"
        )


def _files(source: Path, suffixes: Collection[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """List files by their names in the folder or archive, in order and without hidden ones, with their readers."""
    if source.is_dir():
        unread: list[str] = []
        files = sorted(Path(folder, name) for folder, names in walk(str(source), unread) for name in names)
        for path in files:
            name = path.relative_to(source).as_posix()
            if _is_wanted(name, suffixes) and path.is_file():
                yield name, path.read_bytes
        for place in map(Path, unread):  # reading one says why
            yield place.relative_to(source).as_posix(), place.read_bytes
    elif not source.is_file():
        raise UsageError(f"got {source}, which does not exist; give a file, a folder or a zip archive on this machine")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            members = _members(source, archive, suffixes)
            _check_unpacked(source, members.values())
            for name in sorted(members):
                yield name, partial(archive.read, members[name])  # no more of it than it says that there is
    elif source.suffix.lower() == ".zip":
        raise UsageError(
            f"got {source}, which is no whole zip archive; copy it again, or unpack it and give the folder"
        )
    elif _is_wanted(source.name, suffixes):
        yield source.name, source.read_bytes


def _members(source: Path, archive: zipfile.ZipFile, suffixes: Collection[str]) -> dict[str, zipfile.ZipInfo]:
    """The texts of an archive by name, with / between folders, for which Windows may write \\; raises UsageError."""
    members: dict[str, zipfile.ZipInfo] = {}
    for each in archive.infolist():
        name = each.filename.replace("\\", "/")
        if _is_wanted(name, suffixes) and members.setdefault(name, each) is not each:
            raise UsageError(f"got {source}, which holds two files called {name}; unpack it, and give the folder")
    return members


def _check_unpacked(source: Path, members: Iterable[zipfile.ZipInfo]) -> None:
    """Raise UsageError for an archive that unpacks to more than texts do."""
    unpacked_bytes = sum(each.file_size for each in members)
    most_bytes = max(SMALL_BYTES, MOST_TIMES * source.stat().st_size)
    if unpacked_bytes > most_bytes:
        raise UsageError(
            f"got {source}, whose texts unpack to {unpacked_bytes / 1e6:,.0f} MB, and of an archive of its size "
            f"{most_bytes / 1e6:,.0f} MB are taken; unpack it yourself, and give the folder"
        )


def _is_wanted(name: str, suffixes: Collection[str]) -> bool:
    path = PurePosixPath(name)
    hidden = any(
        (part.startswith(".") and part != "..") or part == "__MACOSX" for part in path.parts
    )  # a video's id may begin with __
    return path.suffix.lower() in suffixes and not hidden


def stem(name: str) -> str:
    return PurePosixPath(name).stem


def json_of(name: str, data: bytes) -> Any:
    """Parse the JSON document in a file; raises UnreadableText."""
    try:
        return parse_json(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableText(f"{name}: is not JSON ({error}); repair the file or remove it") from error


# JSON lines in kinodex's own form: `{"video", "start_s", "end_s", "text"}` and optional fields, in any order.

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Row(BaseModel):
    """One line of text; times are in seconds from the video's beginning."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, coerce_numbers_to_str=True)

    video: Text
    start_s: float = Field(ge=0)
    end_s: float
    text: Text
    confidence: float | None = Field(default=None, ge=0, le=1)
    speaker: str | None = None
    language: str | None = None

    @model_validator(mode="after")
    def _lasts(self) -> _Row:
        if not self.start_s < self.end_s:
            raise ValueError(f"ends at {self.end_s} s, not after its start at {self.start_s} s")
        return self


def is_rows(name: str, data: bytes) -> bool:
    """Check that a file is in this form: some files named .jsonl hold one JSON document of another form instead."""
    first, _, rest = data.lstrip().partition(b"\n")
    return name.lower().endswith(".jsonl") and (b'"start_s"' in first or (first.startswith(b"{") and b"\n{" in rest))


def read_rows(name: str, data: bytes) -> Iterator[ReadResult]:
    """Read the text of every video in a file, in the order of first rows; bad rows become one failure."""
    lines: dict[str, list[TextLine]] = defaultdict(list)
    problems: list[str] = []
    for number, row in enumerate(data.splitlines(), start=1):
        if not row.strip():
            continue
        try:
            read = _Row.model_validate_json(row)
        except ValidationError as error:
            problems.append(f"row {number}: {first_defect(error)}")
            continue
        tags = read.confidence, read.speaker or None, read.language or None
        lines[read.video].append(TextLine(read.start_s, read.end_s, one_line(read.text), *tags))
    for video, each in lines.items():
        yield video_text(name, video, each, ())
    if problems:
        message = f"{name}: {first_problems(problems)}; correct these rows"
        yield ReadFailure(name, None, UnreadableText.__name__, message)


# The subtitles of LongTVQA and LongTVQA+ (arXiv 2512.20618): a JSON object of one text for each clip, or each episode.
#
#     {"s05e06_seg02_clip_15": "Sheldon : So . <eos> Penny : No . <eos>"}
#     {"s05e06": "<seg02_clip_15> Sheldon : So . <eos> ... <seg02_clip_16> ..."}
#
# Both become a video for every clip, under the clip's full name. They hold no times, so the lines of a clip are spread
# evenly over `clip_s` seconds. A clip in which nobody speaks is a video without lines.

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


# Read the subtitles of LongVideoBench (arXiv 2407.15754): a JSON list a video, in one of two schemas.
#
#     [{"start": "00:00:01.040", "end": "00:00:03.500", "line": "So"}]
#     [{"timestamp": [1.04, 3.5], "text": "So"}]
#
# Where `end` is no number the line lasts until the next. A video may be cut from a longer one, whose subtitles these
# are: `starting_timestamp_for_subtitles` in the annotation file says where it begins, and `duration` how long it is.

CLOCK = re.compile(r"(?:(?P<h>\d{1,5}):)?(?P<m>\d{1,5}):(?P<s>\d{1,5}(?:[.,]\d{1,9})?)")
LANGUAGE = re.compile(r"_[a-z]{2}$")
LAST_LINE_S = 5.0
"""Length of a last line without an end."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Position of a video in the longer one that its subtitles belong to."""

    video: str
    start_s: float
    duration_s: float


class _Annotation(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    video_id: str
    subtitle_path: str
    starting_timestamp_for_subtitles: Annotated[float, Field(ge=0)]
    duration: Annotated[float, Field(gt=0)]


def read_cuts(annotations: Path) -> dict[str, tuple[Cut, ...]]:
    """Read the cuts of each subtitle file from LongVideoBench's annotations, one a video; raises UsageError."""
    try:
        rows = TypeAdapter(list[_Annotation]).validate_json(annotations.read_bytes())
    except (OSError, ValidationError) as error:
        problem = " ".join(str(error).split())[:200]
        raise UsageError(f"got --cuts {annotations}: {problem}; give LongVideoBench's lvb_val.json") from error
    cuts: dict[str, dict[Cut, None]] = defaultdict(dict)
    for row in rows:
        cut = Cut(row.video_id, row.starting_timestamp_for_subtitles, row.duration)
        cuts[PurePosixPath(row.subtitle_path).name][cut] = None
    return {name: tuple(found) for name, found in cuts.items()}


def read_lines(name: str, rows: Sequence[Any], cuts: Mapping[str, Sequence[Cut]]) -> Iterator[ReadResult]:
    """Read the lines of each video whose subtitles a file holds, without those outside its cut, if `cuts` are known."""
    known = cuts.get(PurePosixPath(name).name, ())
    if cuts and not known:
        message = f"{name}: --cuts does not say of which part of a video it is; give annotations that do, or no --cuts"
        yield ReadFailure(name, None, UnreadableText.__name__, message)
    for cut in known if cuts else (None,):
        yield _lines_of(name, rows, cut)


def _lines_of(name: str, rows: Sequence[Any], cut: Cut | None) -> ReadResult:
    video = cut.video if cut else LANGUAGE.sub("", stem(name))
    lines: list[TextLine] = []
    problems: list[str] = []
    for number, row in enumerate(rows, start=1):
        line = _longvideobench_line(row) if isinstance(row, Mapping) else None
        if line is None:
            problems.append(f"row {number}: got {str(row)[:80]}, which is no line with a start and a text")
        else:
            lines.append(line)
    found = video_text(name, video, lines, problems)
    if not isinstance(found, VideoText):
        return found
    ended = replace(found, lines=_ended(found.lines))
    return _within(ended, cut) if cut else ended


def _longvideobench_line(row: Mapping[str, Any]) -> TextLine | None:
    """Parse a row of either schema; its end is NaN if it is no number."""
    times = row.get("timestamp", [row.get("start"), row.get("end")])
    start, end = times if isinstance(times, list) and len(times) == 2 else (None, None)
    text, start_s = row.get("text", row.get("line")), _seconds(start)
    if not isinstance(text, str) or not text.strip() or not start_s >= 0:
        return None
    return TextLine(start_s, _seconds(end), one_line(text))


def _seconds(value: Any) -> float:
    """Parse a time given as a number or as H:M:S; NaN if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(min(value, 2 * LONGEST_S))  # JSON has whole numbers that are no float; `video_text` drops them
    clock = CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if clock is None:
        return math.nan
    return int(clock["h"] or 0) * 3600 + int(clock["m"]) * 60 + float(clock["s"].replace(",", "."))


def _ended(lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
    """Give every line an end, not before its start."""
    last = TextLine(lines[-1].start_s + LAST_LINE_S, math.nan, "")
    return tuple(
        line if line.end_s >= line.start_s else replace(line, end_s=following.start_s)
        for line, following in pairwise([*lines, last])
    )


def _within(text: VideoText, cut: Cut) -> VideoText:
    """Shift the lines that overlap the cut to its own time."""
    moved = [
        replace(line, start_s=max(line.start_s - cut.start_s, 0.0), end_s=min(line.end_s - cut.start_s, cut.duration_s))
        for line in text.lines
        if line.end_s > cut.start_s and line.start_s < cut.start_s + cut.duration_s
    ]
    return replace(text, lines=tuple(moved), duration_s=cut.duration_s)
