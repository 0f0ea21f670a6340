"""The folder of a run: its plan, contenders and items, their results, and the judgements of a judge model.

A result is one JSON line, appended whole by the one process that holds the folder. So a run that is killed loses the
items in progress and nothing else: a torn last line is not read, and the next run cuts it off.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from kinodex.agent.answer_rules import USUAL, AnswerRules
from kinodex.agent.limits.budget import Budget
from kinodex.index.kinds import KindName
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.item_choice import WHOLE
from kinodex.jobs.eval.items import Item, Problem, Scoring
from kinodex.jobs.eval.results import ItemResult, Judgement
from kinodex.jobs.eval.video_names import MissingVideo
from kinodex.jobs.json_files import first_defect, write_whole

PLAN, ITEMS, ANSWERS, JUDGED, TRACES = "run.json", "items.jsonl", "answers.jsonl", "judged.jsonl", "traces"
IMPORTED = "imported"
REPORT, PAGE, FIGURES = "report.json", "report.html", "figures"
SLUG_CHARACTERS = 60

T = TypeVar("T")
Line = ItemResult | Judgement


@dataclass(frozen=True, slots=True)
class IndexCost:
    """Cost of indexing the videos of a run, to be amortised: `frames` embedded, `captions` kept, in `videos`."""

    videos: int
    hours: float
    frames: int
    captions: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The items, contenders and models of a run; two runs of equal plans ask the same.

    `items` maps the ids of items to their videos in the library. `questions` is the size of the benchmark, before
    `part` (the subset in words), `limit` and missing videos. `models` are by role, with endpoint, without any key. With
    `keep_captions` captions that agents make are kept for later items, so that their cost depends on the order.
    `at_once` is the number of requests of a role under way together. `states` tell of each video what the library held
    of it, and `contents` what the files held that answer.
    """

    benchmark: str
    title: str
    annotations: str
    annotations_sha256: str
    scoring: Scoring
    library: str
    space: str
    contenders: tuple[Contender, ...]
    models: Mapping[str, str]
    budget: Budget
    hide: tuple[KindName, ...]
    keep_captions: bool
    limit: int | None
    seed: int
    questions: int
    items: Mapping[str, tuple[str, ...]]
    missing: tuple[MissingVideo, ...]
    problems: tuple[Problem, ...]
    index_cost: IndexCost
    version: str
    part: str = WHOLE
    rules: AnswerRules = USUAL
    at_once: int | None = None
    prices: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedContender:
    """A contender whose answers were given elsewhere: the file that they are from, and what is to be said of it."""

    system: Contender
    source: str
    sha256: str
    notes: tuple[str, ...]
    results: tuple[ItemResult, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The content of a run's folder, except its traces; contenders and records are the run's, then `imported` ones."""

    folder: Path
    plan: RunPlan
    items: tuple[Item, ...]
    records: tuple[ItemResult, ...]
    judgements: tuple[Judgement, ...]
    imported: tuple[ImportedContender, ...] = ()

    @property
    def judge(self) -> str | None:
        """The judge whose scores count: the last one that judged."""
        return self.judgements[-1].judge if self.judgements else None


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Make the reader and writer of a type's JSON, once: that takes 2 ms, where reading a line takes 20 µs."""
    return TypeAdapter(kind)


def read_run(folder: Path) -> Run:
    """Read a run, finished or not; raise `UsageError` if the folder holds none, or one that cannot be read."""
    plan, imported = read_plan(folder), read_imported(folder)
    plan = replace(plan, contenders=(*plan.contenders, *(each.system for each in imported)))
    results = (*read_results(folder), *(result for each in imported for result in each.results))
    return Run(folder, plan, read_items(folder), results, read_judgements(folder), imported)


def read_plan(run: Path) -> RunPlan:
    """Read the plan of a run; raise `UsageError` if the folder holds none."""
    plan: RunPlan = _parsed(RunPlan, _read(run / PLAN), run / PLAN)
    return plan


def read_items(run: Path) -> tuple[Item, ...]:
    """Read the items of a run with their targets, in the order of the benchmark."""
    return _lines(run / ITEMS, Item)


def read_results(run: Path) -> tuple[ItemResult, ...]:
    """Read the results of a run in the order of their writing; of an item solved again the last one counts."""
    lines = _lines(run / ANSWERS, ItemResult) if (run / ANSWERS).exists() else ()
    return tuple({(each.contender, each.item_id): each for each in lines}.values())


def read_judgements(run: Path) -> tuple[Judgement, ...]:
    """Read the judgements of a run, the newest last; of those of an answer by one judge the last one counts."""
    lines = _lines(run / JUDGED, Judgement) if (run / JUDGED).exists() else ()
    newest: dict[tuple[str, str, str], Judgement] = {}
    for each in reversed(lines):
        newest.setdefault((each.contender, each.item_id, each.judge), each)
    return tuple(reversed(newest.values()))


def read_imported(run: Path) -> tuple[ImportedContender, ...]:
    paths = sorted((run / IMPORTED).glob("*.json"))
    found: list[ImportedContender] = [_parsed(ImportedContender, _read(path), path) for path in paths]
    return tuple(sorted(found, key=lambda each: each.system.name))


def write_imported(run: Path, imported: ImportedContender) -> None:
    """Write an imported contender into a run's folder, in the place of one of its name."""
    path = run / IMPORTED / f"{slug(imported.system.name)}.json"
    write_whole(path, adapter_of(ImportedContender).dump_json(imported, indent=1) + b"\n")


def begin_run(run: Path, plan: RunPlan, items: Sequence[Item]) -> None:
    """Write the items and the plan of a new run. The plan is written last: where it is, the items are too."""
    adapter = adapter_of(Item)
    write_whole(run / ITEMS, b"".join(adapter.dump_json(each) + b"\n" for each in items))
    write_whole(run / PLAN, adapter_of(RunPlan).dump_json(plan, indent=2) + b"\n")


@contextmanager
def open_for_append(path: Path) -> Iterator[Callable[[Line], None]]:
    """Give a function that appends results or judgements to a file of a run, which this process alone may write."""
    import fcntl  # here, so that runs can be looked at where there is none

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = path.open("ab")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; give another folder") from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another process is writing {path}; wait for it, or give another folder") from error
        adapter = adapter_of(Line)
        file.truncate(len(_whole_lines(path.read_bytes())))

        def append(line: Line) -> None:
            file.write(adapter.dump_json(line) + b"\n")
            file.flush()

        yield append


def trace_file(run: Path, system: str, item_id: str) -> Path:
    """Name the file of an item's trace by one contender: JSON lines, compressed."""
    return run / TRACES / slug(system) / f"{slug(item_id)}.jsonl.gz"


def comparable(plan: RunPlan, name: str) -> Any:
    """Return the value of a plan's field as two runs are compared by it: a library's folder counts by its real path."""
    value = getattr(plan, name)
    return str(Path(value).resolve()) if name == "library" and "://" not in value else value


def slug(name: str) -> str:
    """Make a file name of any name; different names get different file names."""
    short = re.sub(r"[^A-Za-z0-9_.=-]+", "-", name).strip("-.")[:SLUG_CHARACTERS]
    return short if short == name else f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _read(path: Path) -> bytes:
    """Read a file of a run; raise `UsageError` if that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; give the folder that `kinodex eval` wrote with --out"
        ) from error


def _lines(path: Path, kind: type[T]) -> tuple[T, ...]:
    lines = enumerate(_whole_lines(_read(path)).splitlines(), start=1)
    return tuple(_parsed(kind, line, f"{path}, line {number}") for number, line in lines)


def _parsed(kind: Any, content: bytes, place: object) -> Any:
    try:
        return adapter_of(kind).validate_json(content)
    except ValidationError as error:
        raise UsageError(
            f"cannot read {place}: {first_defect(error)}; it was changed, or another version of kinodex wrote it: "
            "run the evaluation again with another --out"
        ) from error


def _whole_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]
