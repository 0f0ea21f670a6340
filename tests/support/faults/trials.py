"""One trial: an operation whose n-th call fails, what it says, and the library after it and after a second run.

Each trial is a fork of a process that has imported all and begun no thread, so that it takes tenths of a second.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kinodex.errors import KinodexError
from kinodex.index.errors import LibraryDamaged
from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from kinodex.index.store.digests import row_hashes
from kinodex.index.sweep import audit
from kinodex.jobs.errors import lacks_memory
from tests.support.faults.disk import FAULTS, KILL, MEMORY, NONE, Struck, faults_at
from tests.support.faults.operations import BASES, UNREADABLE, Given, Operation

PATIENCE_S = 60
NOT_COMPARED = ("runs", "leases")
"""Tables that say when something was done, and by which process."""


@dataclass
class Trial:
    """Outcome of one trial; `wrong` says what does not hold."""

    nth: int
    struck: int = 0
    first: str = ""
    outcome: str = ""
    message: str = ""
    wrong: list[str] = field(default_factory=list)


def rows_of(uri: str) -> dict[str, list[int]]:
    """The rows of each table of a library, as hashes, without times of writing."""
    tables, found = Tables(uri), {}
    for name in tables.names():
        if name in NOT_COMPARED or not tables.has(name):
            continue
        rows = tables.rows(name)
        kept = [each.name for each in rows.schema if not pa.types.is_timestamp(each.type)]
        if name == "additions":  # an endpoint of the trial's own
            at = rows.schema.get_field_index("settings")
            settings = pc.replace_substring_regex(rows["settings"], r"127\.0\.0\.1:\d+", "")
            rows = rows.set_column(at, "settings", settings)
        if hashes := sorted(row_hashes(rows.select(kept))):
            found[name] = hashes
    return found


def in_fork(work: Callable[[], Any]) -> Any:
    """Return what `work` does in a fork of this process, through JSON; a text where the fork ends otherwise."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        os.close(reading)
        code = 1
        try:
            os.write(writing, json.dumps(work()).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return f"hung for {PATIENCE_S} s"
    return json.loads(said) if code == 0 else f"ended with {code}"


class Layer(Protocol):
    """A place for libraries of which calls can be made to fail."""

    def place(self, base: str | None) -> str:
        """Make a new place, with a copy of this library."""

    def faults(self, uri: str, fault: str | None, nth: int) -> AbstractContextManager[Struck]:
        """Let the n-th call fail within a block; without a fault and 0: none does, all are counted."""

    def kills(self, fault: str) -> bool:
        """True for a fault that ends the process."""


class Disk:
    """Libraries in folders of this machine, each trial's a copy of one that is made once."""

    def __init__(self, folder: Path, given: Given) -> None:
        self._folder, self._given = folder, given

    def place(self, base: str | None) -> str:
        """A new place, with a copy of this library."""
        place = self._folder / "trial"
        shutil.rmtree(place, ignore_errors=True)
        if base is not None:
            made = self._folder / "bases" / base
            if not made.exists():
                made.parent.mkdir(exist_ok=True)
                assert in_fork(lambda: BASES[base](self._given, made)) is None, f"the library {base} cannot be made"
            shutil.copytree(made, place)
        return str(place)

    @contextmanager
    def faults(self, uri: str, fault: str | None, nth: int) -> Iterator[Struck]:
        with faults_at(Path(uri), FAULTS[fault] if fault else NONE, nth) as struck:
            yield struck

    def kills(self, fault: str) -> bool:
        return FAULTS[fault].how in (KILL, MEMORY)


def undisturbed(layer: Layer, given: Given, operation: Operation) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Run an operation without a fault; returns the calls at which each could strike, and the rows after it."""
    uri = layer.place(operation.base)

    def work() -> tuple[dict[str, int], dict[str, list[int]]]:
        with layer.faults(uri, None, 0) as struck:
            assert not operation.run(given, uri)
        operation.run(given, uri)
        return struck.counted, rows_of(uri)

    found = in_fork(work)
    assert isinstance(found, list), found
    return found[0], found[1]


def attempt(
    layer: Layer, given: Given, operation: Operation, fault: str, nth: int, rows: dict[str, list[int]]
) -> Trial:
    """Run an operation whose n-th call fails, look at what is left, run it again, and compare its rows."""
    uri = layer.place(operation.base)
    trial = Trial(nth)
    if layer.kills(fault):  # the process that is killed is another than the one that goes on
        died = in_fork(lambda: asdict(disturbed(layer, given, operation, fault, Trial(nth), uri)))
        ended = "killed" if str(died).startswith("ended") else "hung"  # as Lance may for want of memory
        trial = Trial(**died) if isinstance(died, dict) else Trial(nth, struck=1, outcome=ended)

    def work() -> dict[str, Any]:
        if not layer.kills(fault):
            disturbed(layer, given, operation, fault, trial, uri)
        if operation.base not in UNREADABLE:
            look(trial, uri, "after it", whole=False)
        try:
            if failed := operation.run(given, uri):
                trial.wrong.append(f"the second run: {failed} failed")
        except Exception as error:
            trial.wrong.append(f"the second run: {_said(error)}")
        look(trial, uri, "after the second run", whole=True)
        try:
            held = rows_of(uri)
            trial.wrong += [f"other rows: {name}" for name in {*rows, *held} if rows.get(name) != held.get(name)]
        except KinodexError as error:
            trial.wrong.append(f"the rows: {_said(error)}")
        return asdict(trial)

    found = in_fork(work)
    if isinstance(found, dict):
        return Trial(**found)
    return Trial(nth, struck=1, outcome=trial.outcome or "?", wrong=[found])


def disturbed(layer: Layer, given: Given, operation: Operation, fault: str, trial: Trial, uri: str) -> Trial:
    """Run an operation with its fault, and note how it ends."""
    with layer.faults(uri, fault, trial.nth) as struck:
        try:
            trial.outcome = "some failed" if operation.run(given, uri) else "went through"
        except KinodexError as error:
            trial.outcome, trial.message = type(error).__name__, str(error)
            if isinstance(error, LibraryDamaged) and operation.base not in UNREADABLE:
                trial.wrong.append("it is called damaged, and is not")
        except BaseException as error:  # a panic of Lance is none of Exception
            trial.outcome, trial.message = type(error).__name__, str(error)
            if lacks_memory(error):  # the command line makes one line of it
                trial.outcome = "no memory"
            else:
                trial.wrong.append(f"no clear error: {_said(error)}")
    trial.struck, trial.first = struck.times, struck.first
    if not struck.times and trial.outcome == "went through":  # calls of threads come in another number each time
        trial.outcome = "not reached"
    return trial


def look(trial: Trial, uri: str, when: str, *, whole: bool) -> None:
    """Open a library and check every row; before `whole` there may be rows that no video or addition claims."""
    try:
        if not whole and not Library.exists(uri):
            return
        found = audit(Library.open(uri), deep=True)
    except Exception as error:
        trial.wrong.append(f"{when}: {_said(error)}")
        return
    left = len(found.orphans) + sum(len(each.video_ids) for each in found.added.leftovers)
    problems = found.problems
    if whole or left != len(problems):
        trial.wrong += [f"{when}: {problem}" for problem in problems]


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
