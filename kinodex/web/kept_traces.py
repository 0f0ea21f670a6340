"""Traces of all questions that servers were asked, in a folder for each library, with a line of facts beside each.

Keys are numbers that no later server gives again, and a key is all of a name that ever comes from a browser.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from kinodex.agent.answer import Answer
from kinodex.agent.traces.trace import Record, read_trace
from kinodex.jobs.errors import UsageError
from kinodex.redaction import redact_uri
from kinodex.server.responses import NotGiven

KEY = re.compile(r"q(\d{1,9})")
CUT_SHORT = "the server ended before the answer came, or another server still answers it"
ASK_AGAIN = "Wait if another server answers it; else ask it again."


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """One question: what was asked, and once it is finished what came of it. `videos` are titles by id."""

    key: str
    library: str
    question: str
    options: tuple[str, ...]
    agent: str
    videos: Mapping[str, str]
    asked_at: datetime
    follow_up: str | None = None
    state: Literal["running", "stopping", "done", "failed"] = "running"
    error: str | None = None
    tried: str = ""
    remedy: str = ""
    text: str | None = None
    letter: str | None = None
    status: str | None = None
    cost: float = 0.0


FACTS = TypeAdapter(QuestionFacts)
ANSWER = TypeAdapter(Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(QuestionFacts):
    """A question that has ended, with the number of its library and its trace in a file."""

    number: int
    path: Path

    @property
    def records(self) -> list[Record]:
        """Read its trace; raises NotATrace if it ended before it began."""
        return read_trace(self.path)

    @property
    def answer(self) -> Answer | None:
        last = self.records[-1] if self.state == "done" else {}
        found: Answer | None = ANSWER.validate_python(last["answer"]) if "answer" in last else None
        return found


@dataclass(eq=False)
class KeptTraces:
    """The traces of these libraries below a folder, which is made; raises UsageError where it cannot be written."""

    root: Path
    uris: Sequence[str]
    _known: dict[str, QuestionFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            for number in range(len(self.uris)):
                self.folder(number).mkdir(parents=True, exist_ok=True)
            with self._lock_file().open("a"):
                pass
        except OSError as error:
            raise UsageError(
                f"cannot keep traces in {self.root}: {error.strerror}; give --traces a folder that you can write"
            ) from error

    def folder(self, number: int) -> Path:
        return self.root / library_digest(self.uris[number])

    def new_key(self) -> str:
        import fcntl  # only Unix has it

        with self._lock_file().open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            last = file.read().strip()
            number = 1 + (int(last) if last.isdecimal() else self._highest())
            file.seek(0)
            file.truncate()
            file.write(str(number))
        return f"q{number}"

    def path(self, number: int, key: str) -> Path:
        return self.folder(number) / f"{key}.jsonl"

    def save(self, number: int, facts: QuestionFacts) -> None:
        """Write the facts of a question, complete or not at all."""
        place = self.folder(number) / f"{facts.key}.json"
        part = place.with_suffix(".part")
        part.write_bytes(FACTS.dump_json(facts, indent=1))
        part.replace(place)

    def find(self, key: str) -> Kept:
        if KEY.fullmatch(key):
            for number in range(len(self.uris)):
                facts = self._facts(number, key)
                if facts is not None:
                    held = {each.name: getattr(facts, each.name) for each in fields(facts)}
                    return Kept(**held, number=number, path=self.path(number, key))
        raise NotGiven(f"got {key[:40]!r}, which is not the key of a question")

    def listing(self, number: int) -> list[Kept]:
        keys = [path.stem for path in self.folder(number).glob("q*.json") if KEY.fullmatch(path.stem)]
        return [self.find(key) for key in sorted(keys, key=lambda key: -int(key[1:]))]

    def _facts(self, number: int, key: str) -> QuestionFacts | None:
        place = self.folder(number) / f"{key}.json"
        found = self._known.get(str(place))
        if found is not None:
            return found
        try:
            facts: QuestionFacts = FACTS.validate_json(place.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise UsageError(f"cannot read {place}: {error.errors()[0]['msg']}; take the file away") from error
        if facts.state in ("done", "failed"):
            self._known[str(place)] = facts
            return facts
        return replace(facts, state="failed", error=CUT_SHORT, remedy=ASK_AGAIN)

    def _highest(self) -> int:
        numbers = [KEY.fullmatch(path.stem) for path in self.root.glob("*/q*.json")]
        return max((int(each[1]) for each in numbers if each), default=0)

    def _lock_file(self) -> Path:
        return self.root / "last_key"


def library_digest(uri: str) -> str:
    """Return the name of a library's folder: the same from any working directory, and however access is granted."""
    place = redact_uri(uri) if "://" in uri else str(Path(uri).resolve())
    return hashlib.sha256(place.encode()).hexdigest()[:16]


def traces_folder() -> Path:
    """Return the folder of traces where the user names none: in KINODEX_STATE, else in the user's state folder."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(os.environ.get("KINODEX_STATE") or f"{home}/kinodex").expanduser() / "traces"
