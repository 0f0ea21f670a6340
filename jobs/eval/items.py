"""The items of benchmarks: their types, the rows of files that become items, and the items that a run asks.

An item is a question or a search and, apart from it, its target, which no agent may see. A defect of a row is noted,
not raised; a video that the library lacks is listed, never silently left out.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from kinodex.agent.errors import BadQuestion
from kinodex.agent.protocol.question import MAX_OPTIONS, Question
from kinodex.index.named_files import read_text
from kinodex.index.rows import VideoRow
from kinodex.index.text import composed
from kinodex.jobs.errors import UsageError
from kinodex.jobs.json_files import parse_json
from kinodex.pipeline.sources import VIDEO_SUFFIXES

Scoring = Literal["options", "judge"]
"""The way an answer is scored: 0 or 1 by the chosen option, or 0 to 3 by a judge model."""


@dataclass(frozen=True, slots=True)
class Target:
    """The true answer: the index of the right option, or a text where there are no options; None if not published.

    `evidence` are half-open ranges in seconds, in the time of `clip`, the one video of several that the benchmark
    names, else of the item's video.
    """

    option: int | None = None
    text: str | None = None
    evidence: tuple[tuple[float, float], ...] = ()
    clip: str | None = None

    @property
    def known(self) -> bool:
        """True if the benchmark publishes the answer."""
        return self.option is not None or self.text is not None


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a benchmark with its target. `video` is the benchmark's own name of a video, or of an episode.

    `groups` are the categories it counts in, by breakdown: {"question_type": ("summarization", "reasoning")}.
    """

    item_id: str
    video: str
    question: Question
    truth: Target
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    duration_s: float | None = None


Range = tuple[str, float, float]
"""A moment: the benchmark's name of its video, and a half-open range in the seconds that a player shows."""


@dataclass(frozen=True, slots=True)
class MomentQuery:
    """All of an item that a search may see: `text` may be empty where there is an `image`; no `video`: all videos."""

    text: str
    video: str | None
    image: Path | None


@dataclass(frozen=True, slots=True)
class SearchItem:
    """One text to search for and, apart from it, the true moments. Videos have the benchmark's own names.

    `relevant` is empty where the moments are not published, and where there are none: then `absent` is true.
    `grades` has the worth of each relevant moment, more than 0, None where all are worth the same.
    """

    item_id: str
    benchmark: str
    text: str
    video: str | None
    relevant: tuple[Range, ...]
    grades: tuple[float, ...] | None = None
    image: Path | None = None
    absent: bool = False
    category: str | None = None
    duration_s: float | None = None

    def __post_init__(self) -> None:
        if not self.text and self.image is None:
            raise BadRow("got neither words nor a picture to search for")

    @property
    def query(self) -> MomentQuery:
        """The part of the item that a search may see."""
        return MomentQuery(self.text, self.video, self.image)

    @property
    def known(self) -> bool:
        """True if the benchmark publishes the moments, or that there are none."""
        return self.absent or bool(self.relevant)

    @property
    def videos(self) -> tuple[str, ...]:
        """The names of all videos of the item: the searched one and those of the moments, each once."""
        names = (self.video, *(video for video, _, _ in self.relevant))
        return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, slots=True)
class Problem:
    """A defect of an annotation file: where ("row 17", "file"), and what it is."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class MissingVideo:
    """A video of a benchmark that the library lacks, the reason, and the number of its questions, all left out."""

    video: str
    why: str
    questions: int


# Rows of annotation files, and how they become items.

AS_PUBLISHED = ConfigDict(frozen=True, coerce_numbers_to_str=True, allow_inf_nan=False)
AddNote = Callable[[str], None]
"""Notes a defect of a row that is kept all the same."""
Raw = tuple[str, Any]
"""The place of a row, and its content: an object of JSON or CSV, or a `BadRow`."""


class Row(BaseModel):
    """A row of an annotation file: fields beyond the named ones are ignored, and an id may be a number."""

    model_config = AS_PUBLISHED


class BadRow(ValueError):
    """A row that cannot be a question. The reader of its file makes a `Problem` of it."""


class _HasId(Protocol):
    @property
    def item_id(self) -> str: ...


AnyItem = TypeVar("AnyItem", bound=_HasId)
ItemOf = TypeVar("ItemOf", bound=_HasId, covariant=True)


class RowOf(Protocol[ItemOf]):
    """A class of rows, made of pydantic, that become items of one kind."""

    @classmethod
    def model_validate(cls, obj: Any) -> Self: ...

    def item(self, note: AddNote) -> ItemOf:
        """Make the item of this row; raise `BadRow` if there can be none."""
        ...


@dataclass(frozen=True, slots=True)
class Benchmark(Generic[AnyItem]):
    """A benchmark: its items in the file's order, and the defects of the file, of rows left out and of rows kept.

    `episodes`: the video of a question may be several videos of a library, whose names begin with it.
    """

    name: str
    title: str
    items: tuple[AnyItem, ...]
    problems: tuple[Problem, ...] = ()
    scoring: Scoring = "options"
    episodes: bool = False


MomentBenchmark = Benchmark[SearchItem]


def parse_rows(rows: Iterable[Raw], shape: type[RowOf[AnyItem]]) -> tuple[tuple[AnyItem, ...], tuple[Problem, ...]]:
    """Parse rows of the published shape into items, the first of each id, and note the problems of the others."""
    items: dict[str, AnyItem] = {}
    problems: list[Problem] = []
    for where, raw in rows:

        def note(what: str, where: str = where) -> None:
            problems.append(Problem(where, what))

        try:
            if isinstance(raw, BadRow):
                raise raw
            item = shape.model_validate(raw).item(note)
        except ValidationError as error:
            note("; ".join(map(_defect, error.errors())))
        except (BadRow, BadQuestion) as error:
            note(str(error))
        else:
            if item.item_id in items:
                note(f"the id {item.item_id} is there already; the first row of it counts")
            items.setdefault(item.item_id, item)
    return tuple(items.values()), tuple(problems)


def _defect(error: ErrorDetails) -> str:
    """Describe the error of a field in one line: its name, the defect, and the value."""
    field, kind = ".".join(map(str, error["loc"])) or "row", error["type"]
    says = "Input should be an object with fields" if kind == "model_type" else error["msg"]
    return f"{field}: {says}" + ("" if kind == "missing" else f", got {str(error['input'])[:60]!r}")


def make_question(text: str, options: Iterable[str], note: AddNote) -> Question:
    """Make the question that agents get. Options of equal text, which some published rows have, get their letters."""
    options = [option.strip() for option in options]
    often = Counter(option.casefold() for option in options)
    repeated = [often[option.casefold()] > 1 for option in options]
    if not any(repeated) or len(options) > MAX_OPTIONS:
        return Question(text.strip(), tuple(options))
    letters = string.ascii_uppercase[: len(options)]
    same = " and ".join(letter for letter, again in zip(letters, repeated, strict=True) if again)
    note(f"options {same} have the same text; the question is kept, and their letters are added to them")
    told_apart = zip(letters, options, repeated, strict=True)
    return Question(
        text.strip(),
        tuple(f"{each} (option {letter})" if again and each else each for letter, each, again in told_apart),
    )


def lettered_answer(field: str, letter: str, options: Sequence[str], what: str = "options") -> int:
    """Return the number, from 0, of the option that a capital letter names; raise `BadRow` if there is none."""
    answer = string.ascii_uppercase.index(letter)
    if answer >= len(options):
        raise BadRow(f"{field}: got {letter}; there are {len(options)} {what}")
    return answer


def is_there(picture: Path) -> bool:
    """True if the file of a picture is there; False too for a name that no file can have."""
    try:
        return picture.is_file()
    except (OSError, ValueError):  # too long, half a character
        return False


def check_range(field: str, start_s: float, end_s: float) -> tuple[float, float]:
    """Return the range; raise `BadRow` with the field's name unless it begins at 0 or later, and ends after that."""
    if not 0 <= start_s < end_s:
        raise BadRow(f"{field}: got {start_s:g} to {end_s:g}; it is a start from 0 on and a later end in seconds")
    return start_s, end_s


# Files of rows, in the forms in which they are published.

GZIP = b"\x1f\x8b"


def json_file(path: Path) -> Any:
    """Parse a JSON file; raise `UsageError` if it holds something else."""
    try:
        return parse_json(_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}; give the file as it is published") from error


def json_rows(path: Path) -> Iterator[Raw]:
    """Read the objects of a JSON array, or of a file with one object a line; file names do not say which."""
    text = _text(path)
    if not text.lstrip().startswith("["):
        yield from json_lines(path)
        return
    for number, row in enumerate(json_file(path), start=1):
        yield f"row {number}", row


def json_lines(path: Path) -> Iterator[Raw]:
    """Read one object a line, by line number."""
    for number, line in text_lines(path):
        try:
            row = parse_json(line)
        except (ValueError, RecursionError) as error:
            row = BadRow(f"not JSON: {error}")
        yield f"line {number}", row


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read the lines that hold anything, by number. (`str.splitlines` also splits at U+2028, which texts may hold.)"""
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[Raw]:
    """Read objects of strings by the names in the first row, each with the number of its last line."""
    rows = _csv(path, delimiter)
    _, names = next(rows, (0, []))
    if isinstance(names, BadRow) or (repeated := [name for name, count in Counter(names).items() if count > 1]):
        problem = names if isinstance(names, BadRow) else f"two columns are called {repeated[0]!r}"
        raise UsageError(f"{path}: {problem}; give the file as it is published")
    for line, row in rows:
        # A comma too many or too few moves the fields after it, which may not show in any of them.
        if not isinstance(row, BadRow) and len(row) != len(names):
            row = BadRow(f"got {len(row)} fields; there are {len(names)}")
        yield f"line {line}", row if isinstance(row, BadRow) else dict(zip(names, row, strict=True))


def _csv(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str] | BadRow]]:
    """Read the rows of a CSV file that hold anything, each with the number of its last line.

    A row over several lines is read strictly too: a quotation mark that is not closed would swallow the rows between.
    """
    lines = re.findall(r"[^\n]*\n|[^\n]+", _text(path))  # `str.splitlines` also splits at U+2028
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        first = reader.line_num
        try:
            row = next(reader, None)
            if row is not None and reader.line_num > first + 1:
                list(csv.reader(lines[first : reader.line_num], delimiter=delimiter, strict=True))
        except csv.Error as error:
            place = f"lines {first + 1} to {reader.line_num}" if reader.line_num > first + 1 else "the line"
            yield reader.line_num, BadRow(f"{place} cannot be read ({error}); is a quotation mark not closed?")
            continue
        if row is None:
            return
        if row:
            yield reader.line_num, row


def tsv_rows(path: Path) -> Iterator[Raw]:
    """Read objects of strings as `csv_rows` does, from columns that tabs divide."""
    return csv_rows(path, "\t")


def parquet_rows(path: Path) -> Iterator[Raw]:
    """Read the rows of a parquet file, counted from 1."""
    import pyarrow.parquet as pq
    from pyarrow import ArrowException

    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, ArrowException, ValueError, OverflowError) as error:
        raise UsageError(
            f"{path} is not a parquet file: {error}; give the annotation file as it is published"
        ) from error
    for number, row in enumerate(rows, start=1):
        yield f"row {number}", row


def csv_table(path: Path) -> list[list[str]]:
    """Read all rows of a CSV file as they are; raise `UsageError` if one cannot be read."""
    found = []
    for line, row in _csv(path):
        if isinstance(row, BadRow):
            raise UsageError(f"{path}, line {line}: {row}")
        found.append(row)
    return found


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data.startswith(GZIP):
            raise UsageError(f"{path} is compressed; unpack it first: gunzip, or 7z x")
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; give the annotation file as it is published") from error


# The items that a run asks: of a part of the benchmark, with videos in the library, and drawn at random.

WHOLE = "all"
MOST_NAMED, OWN_NAMED = 12, 3
OWN = ("own", "own-open")
"""Benchmarks of a user's own file."""
URI_PARTS = 3


@dataclass(frozen=True, slots=True)
class Subset:
    """Choice of questions: in one of the named groups of every breakdown of `only`, and among `ids` if not None."""

    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ids: frozenset[str] | None = None

    def __str__(self) -> str:
        """Describe the subset in words, equal for equal subsets; ids by their number and digest."""
        words = [f"{breakdown} = {' or '.join(sorted(names))}" for breakdown, names in sorted(self.only.items())]
        if self.ids is not None:
            digest = hashlib.sha256("\n".join(sorted(self.ids)).encode()).hexdigest()[:12]
            words.append(f"{len(self.ids):,} ids of sha256 {digest}")
        return "; ".join(words) or WHOLE


@dataclass(frozen=True, slots=True)
class VideoMatches:
    """The library's video ids by the benchmark's names, one or all of an episode, and the videos without a match.

    Names in `ambiguous` are among the missing, because several videos of the library have them.
    """

    videos: Mapping[str, tuple[str, ...]]
    missing: tuple[MissingVideo, ...]
    ambiguous: frozenset[str] = frozenset()


def parse_subset(only: Sequence[str], ids: Path | None) -> Subset:
    """Parse GROUP=VALUE options and a file with one id a line; raise `UsageError` for anything else."""
    groups: dict[str, frozenset[str]] = {}
    for word in only:
        breakdown, equals, name = word.partition("=")
        if not (equals and breakdown and name):
            raise UsageError(f"got --only {word!r}; give GROUP=VALUE, such as duration=long")
        groups[breakdown] = groups.get(breakdown, frozenset()) | {name}
    return Subset(groups, None if ids is None else _read_ids(ids))


def select_items(items: Sequence[Item], subset: Subset) -> tuple[Item, ...]:
    """Select the items of a subset, in the order given; raise `UsageError` for what no question has."""
    for breakdown, names in subset.only.items():
        known = {each: None for item in items for each in item.groups}
        if breakdown not in known:
            there = f"it is one of {some(known)}" if known else "these questions have no groups"
            raise UsageError(f"got --only {breakdown}=...; {there}")
        groups = sorted({each for item in items for each in item.groups.get(breakdown, ())})
        if lacking := sorted(names - set(groups)):
            raise UsageError(f"got --only {breakdown}={lacking[0]}; {breakdown} is one of {some(groups)}")
    unknown = sorted((subset.ids or frozenset()) - {item.item_id for item in items})
    if unknown:
        there = some([item.item_id for item in items])
        raise UsageError(f"--ids has {len(unknown):,} that no question has: {some(unknown)}; there are {there}")
    found = tuple(
        item
        for item in items
        if (subset.ids is None or item.item_id in subset.ids)
        and all(names & set(item.groups.get(breakdown, ())) for breakdown, names in subset.only.items())
    )
    if not found:
        raise UsageError(f"no question is in the part {subset}; give fewer of --only and --ids together")
    return found


def match_videos(
    items: Sequence[Item], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool
) -> VideoMatches:
    """Find each video of the items by its name in `id_map`, else by its own name; see `match_names`."""
    return match_names(Counter(each.video for each in items), videos, id_map, episodes)


def match_names(
    names: Mapping[str, int], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool = False
) -> VideoMatches:
    """Find the videos of these names, each with the number of questions about it, by `id_map` or by the name itself.

    The names of a library's video are its id, the first digits of it (at least 4), its title, and the last one to three
    parts of its URI, with and without the file ending. `episodes`: a name that no video has stands for all whose names
    begin with it, in order of title.
    """
    mapped = {composed(name): other for name, other in (id_map or {}).items()}
    by_name: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    by_prefix: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    for row in videos:
        places = [part for part in re.split(r"[/\\]", row.uri) if part]
        ends = ("/".join(places[-count:]) for count in range(1, URI_PARTS + 1))
        for name in {row.video_id, *(_bare(composed(name)) for name in (row.title, *ends))}:
            by_name[name][row.video_id] = row
            for mark in re.finditer(r"[\W_]", name) if episodes else ():  # s05e06, s05e06_seg02, ...
                by_prefix[name[: mark.start()]][row.video_id] = row
    found: dict[str, tuple[str, ...]] = {}
    missing: list[MissingVideo] = []
    ambiguous: set[str] = set()
    for video, questions in names.items():
        name = composed(mapped.get(composed(video), video))
        same = list(by_name.get(_bare(name), {}).values())
        if not same and len(name) >= 4 and set(name) <= set(string.hexdigits):
            same = [row for row in videos if row.video_id.startswith(name)]
        parts = sorted(by_prefix.get(name, {}).values(), key=lambda row: (by_number(row.title), row.video_id))
        if len(same) == 1 or (parts and not same):
            found[video] = tuple(row.video_id for row in same or parts)
        else:
            why = f"no video of the library has the name {name}"
            if same:
                uris = ", ".join(row.uri for row in same[:3])
                why = f"{len(same)} videos of the library have the name {name}: {uris}"
            missing.append(MissingVideo(video, why, questions))
            ambiguous |= {video} if same else set()
    return VideoMatches(found, tuple(missing), frozenset(ambiguous))


def with_nearest(missing: MissingVideo, videos: Sequence[VideoRow]) -> str:
    """The reason why a video is missing, and the titles that come nearest to its name."""
    name, titles = composed(missing.video), {row.title for row in videos}
    if _bare(name) in titles:  # of several videos
        return missing.why
    near = get_close_matches(_bare(name), titles, n=3, cutoff=0.4)
    return f"{missing.why}; the nearest are {', '.join(near)}" if near else missing.why


def check_own(names: VideoMatches, benchmark: str, videos: Sequence[VideoRow]) -> None:
    """Raise `UsageError` for a video that a user's own file names and the library lacks; others miss some for good."""
    if benchmark in OWN and names.missing:
        missing = "; ".join(f"{each.video}: {with_nearest(each, videos)}" for each in names.missing[:OWN_NAMED])
        more = f", and {len(names.missing) - OWN_NAMED:,} more" if len(names.missing) > OWN_NAMED else ""
        raise UsageError(f"{missing}{more}; write a video's title, file name or id, or ingest it")


def by_number(name: str) -> list[int | str]:
    """The key by which names with numbers are sorted: "part 9" before "part 10"."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d{1,18})", name))]


def read_id_map(path: Path) -> dict[str, str]:
    """Read the library's names of videos: a JSON object, such as NExT-QA's `map_vid_vidorID.json`, or a CSV of two."""
    if path.suffix.lower() == ".json":
        names = json_file(path)
        pairs = [list(pair) for pair in names.items()] if isinstance(names, dict) else []
    else:
        pairs = csv_table(path)
    wrong = next((pair for pair in pairs if len(pair) != 2 or not isinstance(pair[1], str | int)), None)
    if wrong is not None or not pairs:
        raise UsageError(
            f"{path} maps no names: got {wrong or 'nothing'}; give a JSON object of the benchmark's video names to "
            "the library's, or a CSV of two such columns"
        )
    names = {str(name): str(other) for name, other in pairs}
    twice = next((name for name, other in pairs if names[str(name)] != str(other)), None)
    if twice is not None:
        raise UsageError(f"{path} maps {twice} to several names; leave one of them")
    return names


def draw_items(items: Sequence[Item], limit: int | None, seed: int) -> tuple[Item, ...]:
    """Draw at most `limit` items by the seed and the ids alone, and keep their order; None keeps all.

    The categories of the first breakdown keep their shares (Sainte-Lague). In each category the videos with the fewest
    drawn items come first.
    """
    if limit is None or limit >= len(items):
        return tuple(items)
    waiting: dict[tuple[str, ...], list[tuple[int, bytes, int]]] = defaultdict(list)
    for number, item in enumerate(items):
        drawn = hashlib.sha256(f"{seed} {item.item_id}".encode()).digest()
        heapq.heappush(waiting[next(iter(item.groups.values()), ())], (0, drawn, number))
    size = {category: len(held) for category, held in waiting.items()}
    taken = dict.fromkeys(waiting, 0)
    by_video: Counter[str] = Counter()
    numbers = []
    for _ in range(limit):
        category = min(filter(waiting.get, waiting), key=lambda each: ((2 * taken[each] + 1) / size[each], each))
        number = _next(waiting[category], items, by_video)
        taken[category] += 1
        by_video[items[number].video] += 1
        numbers.append(number)
    return tuple(items[number] for number in sorted(numbers))


def _read_ids(path: Path) -> frozenset[str]:
    try:
        lines = read_text(path, "utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; give a text file with a question's id on each line") from error
    ids = frozenset(filter(None, map(str.strip, lines)))
    if not ids:
        raise UsageError(f"{path} names no question; give a text file with a question's id on each line")
    return ids


def some(names: Collection[str], most: int = MOST_NAMED) -> str:
    """The first names of a list, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


def _next(waiting: list[tuple[int, bytes, int]], items: Sequence[Item], by_video: Counter[str]) -> int:
    """Pop the item whose video has the fewest drawn items; of several, the one with the lowest hash."""
    while True:
        count, drawn, number = waiting[0]
        # A count in the heap may be older than the last draws from this video; counts only grow.
        now = by_video[items[number].video]
        if now == count:
            heapq.heappop(waiting)
            return number
        heapq.heapreplace(waiting, (now, drawn, number))


def _bare(name: str) -> str:
    """Strip a video's file ending from a name."""
    stem, dot, ending = name.rpartition(".")
    return stem if f"{dot}{ending}".lower() in VIDEO_SUFFIXES else name


def complete_items(
    items: Sequence[Item],
    video_ids: Mapping[str, Sequence[str]],
    rows: Mapping[str, VideoRow],
    id_map: Mapping[str, str] | None,
) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """Complete items with the library's lengths and ids of clips, and note the evidence that lies outside of its video.

    `video_ids` are the library's videos of each item, `rows` all of its videos by id.
    """
    clips = [replace(each, video=each.truth.clip) for each in items if each.truth.clip is not None]
    found = match_videos(clips, list(rows.values()), id_map, episodes=False).videos
    ids = {name: matched[0] for name, matched in found.items()}
    completed: list[Item] = []
    problems: list[Problem] = []
    for item in items:
        videos = [rows[each] for each in video_ids[item.item_id]]
        truth = replace(item.truth, clip=ids.get(item.truth.clip or "", item.truth.clip))
        # The evidence is of the clip, or of the only video; else the benchmark does not tell, or the library lacks it.
        shown = [each for each in videos if each.video_id == truth.clip or (truth.clip is None and len(videos) == 1)]
        problems += [
            Problem(
                f"question {item.item_id}",
                f"evidence: got {start_s:g} s to {end_s:g} s, and {video.title} in the library lasts from "
                f"{video.start_s:g} s to {video.end_s:g} s as a player shows it; the question is kept",
            )
            for video in shown
            for start_s, end_s in truth.evidence
            if not (start_s < video.end_s and video.start_s < end_s)
        ]
        duration_s = item.duration_s or sum(each.duration_s for each in videos)
        completed.append(replace(item, duration_s=duration_s, truth=truth))
    return tuple(completed), tuple(problems)
