"""Samples of a benchmark, and their parsing: a defect of a row of an annotation file is noted, not raised.

A sample is a question and, apart from it, its target, which no agent may see.
"""

from __future__ import annotations

import csv
import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from agent.core.question import MAX_OPTIONS, Question
from agent.errors import BadQuestion
from jobs.errors import UsageError

Scoring = Literal["options", "judge"]
"""The way an answer is scored: 0 or 1 by the chosen option, or 0 to 3 by a judge model."""


@dataclass(frozen=True, slots=True)
class Target:
    """The true answer: the index of the right option, or a text where there are no options; None if not published.

    `evidence` are the half-open ranges in seconds that show it, in the time of `clip` where the benchmark names the one
    video of several that they lie in, else of the sample's video.
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
class Sample:
    """One question of a benchmark with its target. `video` is the benchmark's own name of a video, or of an episode.

    `groups` are the categories it counts in, by breakdown: {"question_type": ("summarization", "reasoning")}.
    `duration_s` is the video's length as the benchmark publishes it, None where it does not.
    """

    item_id: str
    video: str
    question: Question
    truth: Target
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    duration_s: float | None = None


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


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its samples in the file's order, and the defects of the file, by row.

    A row that cannot be asked is left out; one that can is kept and noted, such as one with two equal options.

    `episodes`: the video of a sample may be several videos of a library, whose names begin with it.
    """

    name: str
    title: str
    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()
    scoring: Scoring = "options"
    episodes: bool = False


GZIP = b"\x1f\x8b"
AS_PUBLISHED = ConfigDict(frozen=True, coerce_numbers_to_str=True, allow_inf_nan=False)
"""Settings of the check of rows: fields beyond the named ones are ignored, and an id may be a number."""

Row = TypeVar("Row", bound=BaseModel)
Item = TypeVar("Item")
AddNote = Callable[[str], None]
"""Notes a defect of a row that is kept all the same."""
Raw = tuple[str, Any]
"""The place of a row, and its content: an object of JSON or CSV, or a `BadRow`."""
ParsedRows = tuple[tuple[Sample, ...], tuple[Problem, ...]]


class BadRow(ValueError):
    """A row that cannot be a question. It becomes a `Problem` and never leaves this module."""


def parse_samples(rows: Iterable[Raw], shape: type[Row], to_item: Callable[[Row, AddNote], Sample]) -> ParsedRows:
    """Parse the rows of the published shape into samples, in their order, and note the problems of the others.

    A second row of an id is left out.
    """
    return parse_rows(rows, shape, to_item, lambda sample: sample.item_id)


def parse_rows(
    rows: Iterable[Raw], shape: type[Row], to_item: Callable[[Row, AddNote], Item], id_of: Callable[[Item], str]
) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """Parse rows into items of any kind, each of another id; see `parse_samples`."""
    items: dict[str, Item] = {}
    problems: list[Problem] = []
    for where, raw in rows:

        def note(what: str, where: str = where) -> None:
            problems.append(Problem(where, what))

        try:
            if isinstance(raw, BadRow):
                raise raw
            item = to_item(shape.model_validate(raw), note)
        except ValidationError as error:
            note(_fields(error))
        except (BadRow, BadQuestion) as error:
            note(str(error))
        else:
            if id_of(item) in items:
                note(f"the id {id_of(item)} is there already; the first row of it counts")
            items.setdefault(id_of(item), item)
    return tuple(items.values()), tuple(problems)


def make_question(text: str, options: Iterable[str], note: AddNote) -> Question:
    """Make the question that agents get. Options of equal text, which some published rows have, get their letters.

    So these rows stay in the count that others report, and are scored by the official letter.
    """
    options = [option.strip() for option in options]
    often = Counter(option.casefold() for option in options)
    repeated = [often[option.casefold()] > 1 for option in options]
    if not any(repeated) or len(options) > MAX_OPTIONS:
        return Question(text.strip(), tuple(options))
    lettered = list(zip(string.ascii_uppercase[: len(options)], options, repeated, strict=True))
    same = " and ".join(letter for letter, _, again in lettered if again)
    note(f"options {same} have the same text; the question is kept, and their letters are added to them")
    lettered_options = (
        f"{option} (option {letter})" if again and option else option for letter, option, again in lettered
    )
    return Question(text.strip(), tuple(lettered_options))


def lettered_answer(field: str, letter: str, options: Sequence[str], what: str = "options") -> int:
    """Return the number, from 0, of the option that a capital letter names; raise `BadRow` if there is none."""
    answer = string.ascii_uppercase.index(letter)
    if answer >= len(options):
        raise BadRow(f"{field}: got {letter}; there are {len(options)} {what}")
    return answer


def json_file(path: Path) -> Any:
    """Parse a JSON file; raise `UsageError` if it holds something else."""
    try:
        return parse_json(_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}; give the file as it is published") from error


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError too for an object with two values of one name, of which Python takes the last."""
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if found[name] != value:
                raise ValueError(f"{name!r} stands twice in an object, with different values")
    return found


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
        yield f"line {number}", _parsed(line)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read the lines that hold anything, by number. (`str.splitlines` also splits at U+2028, which texts may hold.)"""
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[Raw]:
    """Read objects of strings by the names in the first row, each with the number of its last line.

    Raises `UsageError` if two columns have one name.
    """
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

    A row over several lines must be written as the format has it: a quotation mark that is not closed, or closed by one
    of a later row, would swallow the rows between.
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


def composed(name: str) -> str:
    """A name as it is compared: a letter and its accent may be one character or two, by the system that wrote it."""
    return unicodedata.normalize("NFC", name)


def by_number(name: str) -> list[int | str]:
    """The key by which names with numbers are sorted: "part 9" before "part 10"."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d{1,18})", name))]


def _parsed(line: str) -> Any:
    try:
        return parse_json(line)
    except (ValueError, RecursionError) as error:
        return BadRow(f"not JSON: {error}")


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data.startswith(GZIP):
            raise UsageError(f"{path} is compressed; unpack it first: gunzip, or 7z x")
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; give the annotation file as it is published") from error


def _fields(error: ValidationError) -> str:
    """Describe the errors of a row in one line: each field, the defect, and the value."""
    return "; ".join(map(_field, error.errors()))


def _field(error: ErrorDetails) -> str:
    field, kind = ".".join(map(str, error["loc"])) or "row", error["type"]
    says = "Input should be an object with fields" if kind == "model_type" else error["msg"]
    return f"{field}: {says}" + ("" if kind == "missing" else f", got {str(error['input'])[:60]!r}")
