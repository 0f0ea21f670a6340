"""Put each fault of `tests/data/seeded_faults.jsonl` into the product in turn, to see that a test fails.

    python -m tests.support.seeded_faults check
    python -m tests.support.seeded_faults run [ID ...] [--tests PATH ...]
    python -m tests.support.seeded_faults apply ID
    python -m tests.support.seeded_faults revert ID

A fault is found by its text and not by its file, so that it stays the same fault when modules move.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "data" / "seeded_faults.jsonl"
ROOMS = ("pipeline", "index", "agent", "jobs", "kinodex")
ALL_PASSED, SOME_FAILED = 0, 1
"""Exit codes of pytest; any other is no verdict."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/[^\s:]+::[^\s\[]+)", re.MULTILINE)
"""The failed test in what pytest prints, without its parameters."""


class NotOnce(Exception):
    """A text that no product file holds, or that is there several times."""


@dataclass(frozen=True)
class Fault:
    """A fault: the text `new` in the place of `old`; `file` is where it was, `caught_by` the test that failed then."""

    id: str
    room: str
    about: str
    file: str
    old: str
    new: str
    caught_by: str | None


def read_faults() -> list[Fault]:
    """Read the list."""
    return [Fault(**json.loads(line)) for line in LIST.read_text(encoding="utf-8").splitlines()]


def product_files() -> list[Path]:
    """List the Python files of all rooms, and the prompts."""
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return [*files, *sorted((ROOT / "agent" / "templates").glob("*.jinja"))]


def read_text(path: Path) -> str:
    """Read a file as it is, ends of lines included."""
    return path.read_bytes().decode("utf-8")


def find_once(text: str) -> Path:
    """Find the one product file that holds a text once; raises NotOnce."""
    counts = {path: count for path in product_files() if (count := read_text(path).count(text))}
    if list(counts.values()) != [1]:
        places = ", ".join(f"{path.relative_to(ROOT)} ({count})" for path, count in counts.items())
        raise NotOnce(f"{text!r} has to be there once; it is in {places or 'no product file'}")
    return next(iter(counts))


def replace_once(old: str, new: str) -> Path:
    """Replace a text where it is, and return the file; raises NotOnce."""
    path = find_once(old)
    path.write_bytes(read_text(path).replace(old, new).encode("utf-8"))
    return path


@contextmanager
def applied(fault: Fault) -> Iterator[Path]:
    """Hold a fault in the product for the block, and put the file back as it was however that ends."""
    path = find_once(fault.old)
    before = path.read_bytes()
    try:
        replace_once(fault.old, fault.new)
        yield path
    finally:
        path.write_bytes(before)


def verdict(fault: Fault, tests: Sequence[str]) -> tuple[str, str]:
    """Run tests with a fault: "caught" and the test that failed, "missed", or "error" and what pytest said."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    with applied(fault):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == SOME_FAILED:
        failed = FAILED.search(done.stdout)
        return "caught", failed[1] if failed else "?"
    return ("missed", "") if done.returncode == ALL_PASSED else ("error", done.stdout[-1000:] + done.stderr[-500:])


def run(faults: Sequence[Fault], tests: Sequence[str]) -> int:
    """Say of each fault if these tests, else the file of the test that caught it, catch it; 1 if any is not caught.

    A fault that no test is known to catch is passed over where no tests are given.
    """
    words: Counter[str] = Counter()
    for fault in faults:
        chosen = tests or ([fault.caught_by.partition("::")[0]] if fault.caught_by else [])
        word, what = verdict(fault, chosen) if chosen else ("passed over", "")
        words[word] += 1
        print(f"{fault.id} {word} {what}".rstrip(), flush=True)
    print(", ".join(f"{count} {word}" for word, count in words.items()))
    return 1 if words.keys() - {"caught", "passed over"} else 0


def check(faults: Sequence[Fault]) -> int:
    """Say which texts are not found once, or cannot be taken back; 1 if there are any."""
    texts = [read_text(path) for path in product_files()]
    wrong = []
    for fault in faults:
        old, new = (sum(text.count(each) for text in texts) for each in (fault.old, fault.new))
        if old != 1 or new:
            wrong.append(f"{fault.id} old {old} times, new {new} times")
        elif not is_test(fault.caught_by):
            wrong.append(f"{fault.id} there is no test {fault.caught_by}")
        elif fault.old in fault.new or fault.new in fault.old:
            wrong.append(f"{fault.id} one of its texts holds the other")
    if len({fault.id for fault in faults}) < len(faults):
        wrong.append("an id is there twice")
    print("\n".join([*wrong, f"{len(faults)} faults, {len(wrong)} wrong"]))
    return 1 if wrong else 0


def is_test(name: str | None) -> bool:
    """Return True for the name of a test that is there, and for None."""
    if name is None:
        return True
    file, _, function = name.partition("::")
    path = ROOT / file
    return path.is_file() and f"def {function.partition('[')[0]}(" in read_text(path)


def chosen_faults(ids: Sequence[str]) -> list[Fault]:
    """Choose the faults of these ids, or all; raises SystemExit for an id that is not there."""
    faults = {fault.id: fault for fault in read_faults()}
    unknown = [each for each in ids if each not in faults]
    if unknown:
        raise SystemExit(f"no fault has the id {', '.join(unknown)}")
    return [faults[each] for each in ids] if ids else list(faults.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.seeded_faults")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("apply", "revert"):
        commands.add_parser(name).add_argument("id")
    running = commands.add_parser("run")
    running.add_argument("ids", nargs="*")
    running.add_argument("--tests", nargs="+", default=[])
    commands.add_parser("check")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a fault is taken back then too
    if given.command == "check":
        return check(read_faults())
    if given.command == "run":
        return run(chosen_faults(given.ids), given.tests)
    (fault,) = chosen_faults([given.id])
    texts = (fault.old, fault.new) if given.command == "apply" else (fault.new, fault.old)
    try:
        print(replace_once(*texts).relative_to(ROOT))
    except NotOnce as error:
        raise SystemExit(f"{fault.id}: {error}") from error
    return 0


if __name__ == "__main__":
    sys.exit(main())
