"""Moments: ranges of videos with a label, the one thing that all kinds of export but datasets are made of."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from kinodex.agent.traces.trace import read_trace
from kinodex.index.clocks import presentation_s
from kinodex.index.errors import QueryError, UnknownVideo
from kinodex.index.kinds import LINE_KINDS, KindName
from kinodex.index.library import Library, LibraryReader
from kinodex.index.named_files import open_named
from kinodex.index.nesting import parse_json
from kinodex.index.rows import Basis, Scope, SegmentRow, VideoRow
from kinodex.index.times import parse_time
from kinodex.jobs.errors import UsageError
from kinodex.jobs.open import load_text_tower


@dataclass(frozen=True, slots=True)
class MomentChoice:
    """Choice of moments, at most one of `ranges`, `search`, `traces`, `sql` and `rows`; videos and times limit all."""

    ranges: Path | None = None
    search: str | None = None
    hits: int = 10
    traces: tuple[Path, ...] = ()
    sql: str | None = None
    rows: str | None = None
    videos: tuple[str, ...] = ()
    where: str | None = None
    """Only of videos for which this condition holds."""
    start_s: float | None = None
    end_s: float | None = None
    label: str = ""
    pad_s: float | None = None
    join_s: float | None = None
    snap: bool = False

    def rule(self, is_watched: bool) -> MomentRule:
        """The rule that is asked for; hits and evidence that are to be watched are `PLAYED` without one."""
        usual = PLAYED if is_watched and (self.search is not None or self.traces) else AS_FOUND
        pad_s = usual.pad_s if self.pad_s is None else self.pad_s
        return MomentRule(pad_s, usual.join_s if self.join_s is None else self.join_s, self.snap)


def choose_moments(
    library: Library, choice: MomentChoice, usual_rows: str | None, is_watched: bool = False
) -> list[Moment]:
    """Find the moments of a choice; without any, those of `usual_rows` of its videos.

    Hits come best first, ranges and evidence in their order, rows by video and time; `is_watched`: for people who watch
    them (see `MomentChoice.rule`). Raises UsageError for a choice that makes no sense or finds nothing.
    """
    _check(choice, usual_rows)
    found = arranged(list(_found(library, choice, usual_rows)), choice.rule(is_watched), library.segments)
    limited = [cut for moment in found if (cut := moment.within(choice.start_s, choice.end_s))]
    if not limited:
        raise UsageError("nothing was found to export: no such moment lies in these videos and times")
    return limited


def _check(choice: MomentChoice, usual_rows: str | None) -> None:
    named = {"--ranges": choice.ranges, "--search": choice.search, "--trace": choice.traces or None}
    named |= {"--from-sql": choice.sql, "--of": choice.rows}
    given = [name for name, value in named.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"got {' and '.join(given)}; give one of them")
    if choice.rows is not None and choice.rows not in ROWS:
        raise UsageError(f"got --of {choice.rows}; it is one of {', '.join(ROWS)}")
    if choice.start_s is not None and choice.end_s is not None and choice.start_s >= choice.end_s:
        raise UsageError(f"got --from {choice.start_s:g} and --to {choice.end_s:g}; give a --to after it")
    if not 0 <= (choice.pad_s or 0.0) < math.inf:
        raise UsageError(f"got --pad {choice.pad_s:g}; give the seconds to add before and after each, 0 or more")
    if not math.isfinite(choice.join_s or 0.0):
        raise UsageError(f"got --join {choice.join_s:g}; give the most seconds between those that become one, or -1")
    if choice.search is not None and not choice.search.strip():
        raise UsageError("got an empty --search; give some words to look for")
    if not given and not _is_range(choice) and usual_rows is None:
        raise UsageError(
            "got no moments; give --ranges FILE, --search WORDS, --trace FILE, --from-sql SELECT, --video NAME "
            f"--from S --to S, or --of {'|'.join(ROWS)}"
        )


def _is_range(choice: MomentChoice) -> bool:
    return bool(choice.videos) and (choice.start_s is not None or choice.end_s is not None)


def _found(library: Library, choice: MomentChoice, usual_rows: str | None) -> Iterator[Moment]:
    whole, library = library, library.where(choice.where)
    videos = library.select(choice.videos)
    if choice.ranges is not None:
        yield from _among(read_ranges(choice.ranges, whole), videos)
    elif choice.sql is not None:
        yield from _among(_of_sql(choice.sql, whole), videos)
    elif choice.traces:
        for trace in choice.traces:
            yield from _among(evidence(whole, read_trace(trace), str(trace)), videos)
    elif choice.search is not None:
        yield from _search(library, choice)
    elif choice.rows is None and videos is not None and _is_range(choice):
        yield from (Moment(each, each.start_s, each.end_s, choice.label) for each in videos)
    else:
        for video in library.videos() if videos is None else videos:
            yield from ROWS[choice.rows or usual_rows or "videos"](library, video)


def _among(moments: Sequence[Moment], videos: Sequence[VideoRow] | None) -> list[Moment]:
    ids = None if videos is None else {video.video_id for video in videos}
    return [moment for moment in moments if ids is None or moment.video.video_id in ids]


def _search(library: Library, choice: MomentChoice) -> Iterator[Moment]:
    words, ids = choice.search or "", library.ids_named(choice.videos)
    vector = load_text_tower(library, None).embed_text([words])[0]
    scope = Scope(ids, choice.start_s, choice.end_s)
    meaning = library.sentences.meaning(words)
    for hit in library.search.hybrid(words, vector, scope, k=choice.hits, meaning=meaning):
        score = hit.bm25 if hit.cosine is None else hit.cosine  # what both are fused into means nothing elsewhere
        yield Moment(library.video(hit.video_id), hit.time_s, hit.end_s, hit.text or words, score, hit.found_in)


def evidence(library: Library, records: Sequence[dict[str, Any]], name: str) -> list[Moment]:
    """The evidence of the answer that ends a trace, labelled with the question; raises UsageError if there is none."""
    answer = records[-1].get("answer") if records[-1].get("event") == "Finished" else None
    if answer is None:
        raise UsageError(f"{name} has no answer yet: its run did not end; give the trace of one that did")
    question = records[0]["question"]["text"]
    found = [_evidence_moment(library, each, question, name) for each in answer["evidence"]]
    if not found:
        raise UsageError(f"the answer of {name} names no evidence; export moments of a search instead")
    return found


def _evidence_moment(library: Library, row: Any, question: str, name: str) -> Moment:
    try:
        video_id, start_s, end_s = str(row["video_id"]), float(row["start_s"]), float(row["end_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name} has evidence without video_id, start_s and end_s; record it again") from error
    if not 0 <= start_s <= end_s < math.inf:
        raise UsageError(f"{name} has evidence from {start_s:g} to {end_s:g} s, which is no range; record it again")
    return Moment(library.video(video_id), start_s, end_s, question, None, "evidence")


# A moment: a range of a video, with what is to be said of it.

SHOT = "shot"


@dataclass(frozen=True, slots=True)
class Moment:
    """The range `[start_s, end_s)` of a video, in the times that a player shows."""

    video: VideoRow
    start_s: float
    end_s: float
    label: str = ""
    score: float | None = None
    source: str = "range"
    """The place it comes from: "range" (given), "evidence", "shot", "video", or the source of a hit or of rows."""
    speaker: str | None = None
    basis: Basis = "ranking"
    probability: float | None = None
    present: bool | None = None
    reason: str = ""
    """These four as a `Hit` has them."""

    @property
    def presentation_start_s(self) -> float:
        """Beginning by the timestamps of the file."""
        return presentation_s(self.video, self.start_s)

    @property
    def presentation_end_s(self) -> float:
        """End by the timestamps of the file."""
        return presentation_s(self.video, self.end_s)

    def within(self, start_s: float | None, end_s: float | None) -> Moment | None:
        """Cut to `[start_s, end_s)` (None: no bound) and to the video; None if nothing is left.

        What is said may begin before the first picture and end after the last.
        """
        is_said, video = self.source == "speech", self.video
        first_s = max(self.start_s, -math.inf if is_said else video.start_s, -math.inf if start_s is None else start_s)
        last_s = min(self.end_s, math.inf if is_said else video.end_s, math.inf if end_s is None else end_s)
        if first_s > last_s or (first_s == last_s and self.start_s < self.end_s):
            return None
        return replace(self, start_s=first_s, end_s=last_s)


# From what was found to what is watched: one rule for exports, groundings, and the player of the page.

PAD_S = 2.0
"""Seconds before and after a hit or evidence, which may be one frame or one word: somebody has to see what it is."""
SNAP_S = 1.5
"""A cut that lies so little outside a moment is its end."""
INSIDE_S = 1e-6


@dataclass(frozen=True, slots=True)
class MomentRule:
    """Rule by which moments become ranges to watch: padded within their video, ended at cuts, and joined.

    `snap`: the padding ends at the first cut on its way, and an end that lies less than `SNAP_S` inside its shot moves
    to the cut. `join_s`: moments of one video at most so many seconds apart become one; below 0, or None, none do.
    """

    pad_s: float = 0.0
    join_s: float | None = None
    snap: bool = False


AS_FOUND, PLAYED = MomentRule(), MomentRule(PAD_S, 0.0)
SegmentsOf = Callable[[str], Sequence[SegmentRow]]


def arranged(moments: Sequence[Moment], rule: MomentRule, segments_of: SegmentsOf) -> list[Moment]:
    """Arrange moments by a rule, in their order; one that others are joined to keeps the place of their first."""
    cuts_s = lru_cache(maxsize=None)(lambda video_id: cut_times(segments_of(video_id)))
    widened = []
    for each in moments:
        cuts = cuts_s(each.video.video_id) if rule.snap else ()
        start_s, end_s = watched(each.video, each.start_s, each.end_s, rule.pad_s, cuts)
        widened.append(replace(each, start_s=start_s, end_s=end_s))
    return widened if rule.join_s is None or rule.join_s < 0 else _joined(widened, rule.join_s)


def watched(
    video: VideoRow, start_s: float, end_s: float, pad_s: float = PAD_S, cuts_s: Sequence[float] = ()
) -> tuple[float, float]:
    """The range `[start_s, end_s)` padded within its video, and ended at these cuts (see `MomentRule.snap`)."""
    first_s, last_s = max(start_s - pad_s, min(video.start_s, start_s)), min(end_s + pad_s, max(video.end_s, end_s))
    before_s = max((each for each in cuts_s if each <= start_s + INSIDE_S), default=-math.inf)
    after_s = min((each for each in cuts_s if each >= end_s - INSIDE_S and each > start_s + INSIDE_S), default=math.inf)
    return before_s if before_s >= first_s - SNAP_S else first_s, after_s if after_s <= last_s + SNAP_S else last_s


def cut_times(segments: Sequence[SegmentRow]) -> list[float]:
    """Times at which shots begin, and the video's begin and end; two windows side by side have no cut between them."""
    inner = [after.start_s for before, after in pairwise(segments) if SHOT in (before.kind, after.kind)]
    return [segments[0].start_s, *inner, segments[-1].end_s] if segments else []


def _joined(moments: Sequence[Moment], join_s: float) -> list[Moment]:
    places = {id(each): place for place, each in enumerate(moments)}
    groups: list[list[Moment]] = []
    for of_video in by_video(moments).values():
        until_s = -math.inf
        for each in in_time_order(of_video):
            if each.start_s - until_s > join_s:
                groups.append([])
            groups[-1].append(each)
            until_s = max(until_s, each.end_s) if len(groups[-1]) > 1 else each.end_s
    groups.sort(key=lambda group: min(places[id(each)] for each in group))
    return [group[0] if len(group) == 1 else _as_one(group) for group in groups]


def _as_one(moments: Sequence[Moment]) -> Moment:
    """Moments of one video, in time order, as one: all that they are labelled with, and the best score."""
    labels = " / ".join(dict.fromkeys(each.label for each in moments if each.label))
    scores = [each.score for each in moments if each.score is not None]
    sources, speakers = {each.source for each in moments}, {each.speaker for each in moments}
    end_s = max(each.end_s for each in moments)
    return Moment(
        moments[0].video,
        moments[0].start_s,
        end_s,
        labels,
        max(scores, default=None),
        sources.pop() if len(sources) == 1 else "both",
        speakers.pop() if len(speakers) == 1 else None,
    )


def by_video(moments: Iterable[Moment]) -> dict[str, list[Moment]]:
    """Group moments by the ids of their videos, both in the order in which they come."""
    groups: dict[str, list[Moment]] = {}
    for moment in moments:
        groups.setdefault(moment.video.video_id, []).append(moment)
    return groups


def in_time_order(moments: Iterable[Moment]) -> list[Moment]:
    """Sort moments by their times."""
    return sorted(moments, key=lambda each: (each.start_s, each.end_s))


SAID = ("label", "score", "source", "speaker")


def moment_facts(moments: Sequence[Moment]) -> dict[str, str]:
    """Digests, by name, of all that an export says of moments: an unfinished one goes on if they are the same."""
    facts: dict[str, Any] = {f"{name}s": [getattr(each, name) for each in moments] for name in SAID}
    facts["ranges"] = [(each.video.video_id, each.start_s, each.end_s) for each in moments]
    facts["videos"] = {each.video.video_id: asdict(each.video) for each in moments}
    return {name: digest(values) for name, values in facts.items()}


def digest(facts: Any) -> str:
    """Digest of facts as JSON holds them, of others by their texts."""
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


# Ranges of videos from a file: CSV with a heading, or JSON lines, such as `kinodex export csv` and `jsonl` write.

NAMES = {
    "video": ("video_id", "video", "title", "uri", "file"),
    "start_s": ("start_s", "start", "from"),
    "end_s": ("end_s", "end", "to"),
    "label": ("label", "text"),
    "score": ("score",),
    "source": ("source",),
}
"""Columns, and the names under which they are read, the first that a row has; other columns are left out."""
FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""Beginnings of a text that a spreadsheet would compute, or that already stands behind an apostrophe for that."""


def read_ranges(path: Path, library: LibraryReader) -> list[Moment]:
    """Read the ranges of a .csv, or else of JSON lines, in the order of the file.

    Times are those that a player shows: seconds, or clocks such as 1:02:03.5. Raises UsageError with the line.
    """
    moments = list(_of_rows(_rows(path), lambda line: f"{path}, line {line}", library))
    if not moments:
        raise UsageError(f"got {path}, which holds no range; give rows with the columns video, start_s and end_s")
    return moments


def _of_sql(sql: str, library: LibraryReader) -> list[Moment]:
    """The moments that the rows of a SELECT name, in their order."""
    from kinodex.index.sql import query

    rows = query(library, sql).to_arrow_table().to_pylist()
    return list(_of_rows(enumerate(rows, start=1), lambda row: f"row {row} of --from-sql", library))


def _of_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], place: Callable[[int], str], library: LibraryReader
) -> Iterator[Moment]:
    """Make moments of rows with columns of `NAMES`; raises UsageError with the place of a row that names none."""
    find = lru_cache(maxsize=None)(partial(library.video, whole_name=True))
    for number, row in rows:
        try:
            values = {
                key: next((row[it] for it in names if row.get(it) not in (None, "")), None)
                for key, names in NAMES.items()
            }
            if values["video"] is None:
                raise ValueError("it names no video; give a column video, with an id, a title or a file name")
            start_s, end_s = _time_s(values["start_s"], "start_s"), _time_s(values["end_s"], "end_s")
            if end_s < start_s:
                raise ValueError(f"it ends at {end_s:g} s, before it begins at {start_s:g} s")
            score = None if values["score"] is None else float(values["score"])
            str(values["label"] or "").encode()  # half a surrogate pair, which JSON can hold, is no text
            yield Moment(find(str(values["video"])), start_s, end_s, str(values["label"] or ""), score)
        except (ValueError, UnknownVideo) as error:
            raise UsageError(f"{place(number)}: {error}") from error


def plain_cell(value: object) -> object:
    """A value as a cell of CSV: a text that a spreadsheet would take for a formula stands behind an apostrophe."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def _own_text(value: object) -> object:
    """The text of a cell that `plain_cell` wrote."""
    return value[1:] if isinstance(value, str) and value[:1] == "'" and FORMULA.match(value[1:]) else value


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows with the numbers of their lines."""
    try:
        with io.TextIOWrapper(open_named(path), encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                reader = csv.DictReader(file)
                for row in reader:
                    yield reader.line_num, {(key or "").strip().lower(): _own_text(value) for key, value in row.items()}
                return
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _object(line, path, number)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read the ranges in {path}: {error}; give a .csv or .jsonl file in UTF-8") from error


def _object(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        value = parse_json(line)
    except ValueError as error:
        raise UsageError(
            f"{path}, line {number}: is no JSON ({error}); give an object a line, or a .csv file"
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"{path}, line {number}: is no object; give video, start_s and end_s")
    return value


def _time_s(value: object, name: str) -> float:
    """Read a time of a row."""
    if value is None:
        raise ValueError(f"it has no {name}")
    try:
        return parse_time(str(value))
    except QueryError as error:
        raise ValueError(f"{name}: {error}") from None


# Moments from what a library holds of a video: its shots, scenes and chapters, words, detections, or all as one.

MomentsOf = Callable[[LibraryReader, VideoRow], Iterator[Moment]]


def _shots(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for row in library.segments(video.video_id):
        name = f"{row.kind} {row.segment_no + 1}"
        yield Moment(video, row.start_s, row.end_s, row.caption or name, row.caption_confidence, "shot")


def _lines(kind: KindName, library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    for line in library.lines.rows(video.video_id, [kind]):
        yield Moment(video, line.start_s, line.end_s, line.text, line.confidence, kind, line.speaker)


def _detections(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    """Each detection, for as long as its frame stands for the video: until the next sample."""
    for row in library.detections(video.video_id):
        end_s = min(row.time_s + 1 / video.sample_fps, video.end_s) if video.sample_fps else video.end_s
        yield Moment(video, row.time_s, end_s, row.label, row.score, "detections")


def _parts(level: Literal["scene", "chapter"], library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    """The titles of chapters or scenes, a line each as players list them; a number in the place of a missing one."""
    for row in library.chapters.rows(video.video_id, level):
        title = " ".join(row.title.split()) or f"{level} {row.number + 1}"
        yield Moment(video, row.start_s, row.end_s, title, None, level)


def _whole(library: LibraryReader, video: VideoRow) -> Iterator[Moment]:
    yield Moment(video, video.start_s, video.end_s, video.title, None, "video")


ROWS: dict[str, MomentsOf] = {
    "shots": _shots,
    "scenes": partial(_parts, "scene"),
    "chapters": partial(_parts, "chapter"),
    **{kind: partial(_lines, kind) for kind in LINE_KINDS},
    "detections": _detections,
    "videos": _whole,
}
"""Names of what can be taken of whole videos, and how."""


# Folder that an export writes: new or empty at first, continued after a kill, and whole once its work is moved in.
#
# All is written under `.unfinished/` beside a note of the export's settings and parts, moved to its place when every
# part is there, and the note goes last. So who opens the folder too early finds nothing in it.

UNFINISHED = ".unfinished"
NOTE, LOCK = "export.json", "lock"


@dataclass(frozen=True, slots=True)
class Target:
    """A folder that is being written, by this process alone."""

    folder: Path
    plan: Mapping[str, Any]
    """Parts of the export, as JSON holds them: those that its first run planned."""

    @property
    def work(self) -> Path:
        """The folder for what is not finished."""
        return self.folder / UNFINISHED

    def write(self, name: str, fill: Callable[[Path], object]) -> None:
        """Write one file of the work by a function that gets a path, so that it is there whole or not at all."""
        self.work.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        partial = self.work / "partial"
        fill(partial)
        _move(partial, self.work / name)

    def write_bytes(self, name: str, content: bytes | str) -> None:
        """Write one file of the work with this content, of a text in UTF-8 with its line ends as they are."""
        data = content.encode() if isinstance(content, str) else content
        self.write(name, lambda path: path.write_bytes(data))

    def has(self, name: str) -> bool:
        """True if this file of the work was written, by an earlier run too."""
        return (self.work / name).exists() or (self.folder / name).exists()

    def finish(self, *names: str) -> None:
        """Move files and folders of the work to their place, in this order, and delete the rest of it."""
        for name in names:
            if (self.work / name).exists():
                _move(self.work / name, self.folder / name)
        (self.work / NOTE).unlink()
        shutil.rmtree(self.work)


@contextmanager
def target_folder(folder: Path, settings: Mapping[str, Any], plan: Callable[[], Mapping[str, Any]]) -> Iterator[Target]:
    """Begin an export into a folder that is new or empty, by a `plan`, or go on with one of the same settings.

    Raises UsageError for a folder that holds anything else, and while another process writes it.
    """
    import fcntl

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"got {folder}, which is a file; give a folder that is new or empty")
    work = folder / UNFINISHED
    held = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    if not (work / NOTE).exists() and [name for name in held if name != UNFINISHED]:
        raise UsageError(f"got {folder}, which is not empty ({held[0]}); give a folder that is new or empty")
    work.mkdir(parents=True, exist_ok=True)
    with (work / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            what = "which another export writes at this moment; give another folder"
            raise UsageError(f"got {folder}, {what}") from error
        if (work / NOTE).exists():
            known = json.loads((work / NOTE).read_text(encoding="utf-8"))
            before = known["settings"]
            changed = sorted(name for name in {*before, *settings} if before.get(name) != settings.get(name))
            if changed:
                raise UsageError(
                    f"got {folder}, an unfinished export with another {' and '.join(changed)}; give what it was begun "
                    "with, or delete the folder"
                )
            yield Target(folder, known["plan"])
            return
        target = Target(folder, dict(plan()))
        target.write_bytes(NOTE, json.dumps({"settings": dict(settings), "plan": target.plan}))
        yield target


def _move(source: Path, target: Path) -> None:
    """Move a file or folder once its bytes are on the disk: after a power cut it is whole or not there."""
    files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    for path in files:
        with path.open("rb") as written:
            os.fsync(written.fileno())
    source.rename(target)
