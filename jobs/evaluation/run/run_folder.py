"""The folder of a run: what was planned, which questions, the records of their answers, what a judge said of them.

A run's records are one JSON line each, appended whole by the one process that holds the folder. So a run that is killed
loses what was not answered yet and nothing else: a last line that was torn is not read, and is cut off by the next run.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from agent.core.budget import Budget
from jobs.benchmarks.sample import Missing, Problem, Sample, Scoring
from jobs.benchmarks.subset import WHOLE
from jobs.errors import UsageError
from jobs.evaluation.run.results import Judgement, SampleResult
from jobs.evaluation.run.systems import System

PLAN, ITEMS, ANSWERS, JUDGED, TRACES = "run.json", "items.jsonl", "answers.jsonl", "judged.jsonl", "traces"
REPORT, PAGE, FIGURES = "report.json", "report.html", "figures"
SLUG_CHARACTERS = 60

T = TypeVar("T")
Line = SampleResult | Judgement


@dataclass(frozen=True, slots=True)
class IndexCost:
    """What indexing the asked-about videos took, to be amortised: `frames` embedded, `captions` kept, in `videos`."""

    videos: int
    hours: float
    frames: int
    captions: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions, contenders and models of a run; two runs of equal plans ask the same.

    `items` maps ids to the library's videos that each is asked about, and `space` is the one of the library's that is
    searched. `questions` is how many the benchmark has, before `part`, `limit` and missing videos; `part` says in words
    which of them are meant. `models` says by role who answers (with endpoint, without any key). With `keep_captions`
    what agents have captioned is kept for later questions, so that what those cost hangs on the order.
    """

    benchmark: str
    title: str
    annotations: str
    annotations_sha256: str
    scoring: Scoring
    library: str
    space: str
    contenders: tuple[System, ...]
    models: Mapping[str, str]
    budget: Budget
    subtitles: bool
    keep_captions: bool
    limit: int | None
    seed: int
    questions: int
    items: Mapping[str, tuple[str, ...]]
    missing: tuple[Missing, ...]
    problems: tuple[Problem, ...]
    index_cost: IndexCost
    version: str
    part: str = WHOLE


@dataclass(frozen=True, slots=True)
class Run:
    """All that a run's folder holds of it, but for its traces."""

    folder: Path
    plan: Plan
    items: tuple[Sample, ...]
    records: tuple[SampleResult, ...]
    judgements: tuple[Judgement, ...]

    @property
    def judge(self) -> str | None:
        """The judge whose scores count: the last to begin."""
        return self.judgements[-1].judge if self.judgements else None


def read_run(folder: Path) -> Run:
    """A run from its folder, finished or not; raises `UsageError` if it holds none, or one that cannot be read."""
    return Run(folder, read_plan(folder), read_items(folder), read_records(folder), read_judgements(folder))


def read_plan(run: Path) -> Plan:
    """The plan of a run; raises `UsageError` if the folder holds none."""
    try:
        return TypeAdapter(Plan).validate_json(_read(run / PLAN))
    except ValidationError as error:
        raise _unreadable(run / PLAN, error) from error


def plan_or_none(run: Path) -> Plan | None:
    """The plan of a run; None if none was begun in the folder."""
    return read_plan(run) if (run / PLAN).exists() else None


def read_items(run: Path) -> tuple[Sample, ...]:
    """The questions of a run with what is true of them, in the order of the benchmark."""
    return _lines(run / ITEMS, Sample)


def read_records(run: Path) -> tuple[SampleResult, ...]:
    """The records of a run in the order in which they came; of one asked again the last counts."""
    lines = _lines(run / ANSWERS, SampleResult) if (run / ANSWERS).exists() else ()
    return tuple({(each.contender, each.item_id): each for each in lines}.values())


def read_judgements(run: Path) -> tuple[Judgement, ...]:
    """What judges said of a run's answers; of an answer judged again by the same judge the last counts."""
    lines = _lines(run / JUDGED, Judgement) if (run / JUDGED).exists() else ()
    return tuple({(each.contender, each.item_id, each.judge): each for each in lines}.values())


def begin_run(run: Path, plan: Plan, items: Sequence[Sample]) -> None:
    """Write down what a run asks. The plan is written last: where it is, the questions are too."""
    adapter = TypeAdapter(Sample)
    write_whole(run / ITEMS, b"".join(adapter.dump_json(item) + b"\n" for item in items))
    write_whole(run / PLAN, TypeAdapter(Plan).dump_json(plan, indent=2) + b"\n")


@contextmanager
def appending(path: Path) -> Iterator[Callable[[Line], None]]:
    """Give a function that appends records or judgements to a file of a run, which this process alone may write.

    Its folder is made. Raises `UsageError` if another process writes it, or it cannot be written.
    """
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
        adapter: TypeAdapter[Line] = TypeAdapter(Line)
        file.truncate(len(_whole_lines(path.read_bytes())))

        def append(line: Line) -> None:
            file.write(adapter.dump_json(line) + b"\n")
            file.flush()

        yield append


def trace_file(run: Path, contender: str, item_id: str) -> Path:
    """Where the trace of a question put to a contender is: JSON lines, compressed."""
    return run / TRACES / slug(contender) / f"{slug(item_id)}.jsonl.gz"


def slug(name: str) -> str:
    """A file name for any name; names that differ have file names that differ."""
    short = re.sub(r"[^A-Za-z0-9_.=-]+", "-", name).strip("-.")[:SLUG_CHARACTERS]
    return short if short == name else f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _read(path: Path) -> bytes:
    """The content of a file of a run; raises `UsageError` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; give the folder that `kinodex eval` wrote with --out"
        ) from error


def _lines(path: Path, kind: type[T]) -> tuple[T, ...]:
    adapter, rows = TypeAdapter(kind), []
    for number, line in enumerate(_whole_lines(_read(path)).splitlines(), start=1):
        try:
            rows.append(adapter.validate_json(line))
        except ValidationError as error:
            raise _unreadable(Path(f"{path}, line {number}"), error) from error
    return tuple(rows)


def _whole_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


def _unreadable(path: Path, error: ValidationError) -> UsageError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return UsageError(
        f"cannot read {path}: {where}: {first['msg']}; it was changed, or another version of kinodex wrote it: "
        "run the evaluation again with another --out"
    )
