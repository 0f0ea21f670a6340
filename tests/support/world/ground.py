"""Experiments on drawn story films with the ideal observer: `python -m tests.support.world.ground --help`.

A row of JSON for each question, agent and number of frames is appended to --rows as it goes; a second run does only
what is missing. A row counts for the code that made it: other agents or another observer are asked again. Films and
their library are kept in --cache. Curves and comparisons of the rows are printed at the end (`world.curves`).
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from kinodex.agent.answer import Answer
from kinodex.agent.answer_rules import AnswerRules
from kinodex.agent.ask import ask
from kinodex.agent.limits.budget import Budget
from kinodex.agent.protocol.exchange import Models
from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.question import Question
from kinodex.agent.protocol.videos import EXACT_S
from kinodex.agent.requests.answer import AnswerFrames
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Event, Exchanged
from kinodex.agent.variants.base import Variant
from kinodex.agent.variants.baselines.uniform import UniformParameters
from kinodex.agent.videos.environment import Environment
from kinodex.index.kinds import QUOTED_KINDS
from kinodex.index.library import Library
from kinodex.index.rows import StoredFrame, VideoRow
from kinodex.jobs.errors import UsageError
from tests.support.world import curves
from tests.support.world.inference import AFTER_S
from tests.support.world.observer import Eyes, InProcess, Observer
from tests.support.world.sights import ERRING, PERFECT, Errors, Stage
from tests.world.drawn_space import DRAWN
from tests.world.sample import sample
from tests.world.sketch.script import FPS

ROOT = Path(__file__).resolve().parents[3]
CODE = ("agent/**/*.py", "agent/**/*.jinja", "index/search/*.py", "tests/world/sketch/*.py", "tests/support/world/*.py")
EYES: Mapping[str, Errors] = {"perfect": PERFECT, "erring": ERRING}
SPOKEN = ("words", "both")
"""The needs of questions that a spoken line answers, alone or with pictures."""
Times = Sequence[float]


@dataclass(frozen=True)
class Films:
    """`count` story films of `minutes` minutes, drawn by `seed`."""

    count: int
    minutes: float
    seed: int

    @classmethod
    def named(cls, name: str) -> Films:
        """The films of a name: "8x15-301" are eight of 15 minutes."""
        found = re.fullmatch(r"(\d+)x([\d.]+)-(\d+)", name)
        if found is None:
            raise UsageError(f"got the films {name!r}; name them COUNTxMINUTES-SEED, as 8x15-301")
        return cls(int(found[1]), float(found[2]), int(found[3]))

    @property
    def name(self) -> str:
        """Their name in rows and of their folder."""
        return f"{self.count}x{self.minutes:g}-{self.seed}"

    def made(self, cache: Path) -> Path:
        """The folder of the films, their questions and their `library`; drawn and ingested if it is not there yet."""
        import kinodex

        folder = cache / f"films-{self.name}"
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # others may want the same films
            if not (folder / "questions.jsonl").exists():
                hours = self.count * self.minutes / 60
                sample(folder, hours, self.seed, form="story", minutes=self.minutes, every=FPS)  # those that are stored
            if not (folder / "whole").exists():
                kinodex.ingest(folder, library=folder / "library", space=DRAWN)
                (folder / "whole").touch()
        return folder


@dataclass(frozen=True)
class Trial:
    """One contender at one number of frames under one condition; `agent` is "NAME" or "NAME:SETTING=VALUE,..."."""

    films: str
    agent: str
    frames: int
    eyes: str
    speech: bool
    choice: bool = False
    """True if an option has to be chosen; else any agent may decline."""

    def key(self, question_id: str) -> tuple[object, ...]:
        """The values by which two rows of this trial are the same."""
        return (*asdict(self).values(), question_id, code_digest())


class InMemory(Library):
    """A library whose pictures are read once: hundreds of questions look at those of one film."""

    def frames(self, video_id: str, frame_nos: Sequence[int]) -> list[StoredFrame]:
        """Stored frames with their pictures, in the order of the numbers."""
        kept = self._of(video_id)
        return [kept[int(number)] for number in frame_nos]

    @cache  # noqa: B019  # as long as a film is asked about
    def _of(self, video_id: str) -> dict[int, StoredFrame]:
        frame_nos, _ = self.frame_times(video_id)
        return {frame.frame_no: frame for frame in super().frames(video_id, [int(number) for number in frame_nos])}


@cache
def code_digest() -> str:
    """A hash of the code that decides a row: agents, prompts, search, stories and this world."""
    paths = sorted(path for pattern in CODE for path in ROOT.glob(pattern) if path.name not in ("curves.py",))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:10]


@dataclass
class Shown:
    """The parts of a question's true ranges that its requests held: frames (or captions) and spoken lines."""

    ranges: Sequence[Sequence[float]]
    after_s: float
    frame: bool = False
    line: bool = False
    frame_last: bool = False
    line_last: bool = False

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Exchanged):
            return
        request: Any = event.request
        fields = ("notes", "subtitles", "known")
        notes = [note for name in fields for note in getattr(request, name, ()) if isinstance(note, Note)]
        if not request.frames and not notes:
            return
        said = [note for note in notes if note.source in QUOTED_KINDS]
        seen = [note for note in notes if note.source not in QUOTED_KINDS]
        times = [(frame.time_s, frame.time_s) for frame in request.frames]
        self.frame_last = any(self._holds(*each) for each in [*times, *((note.start_s, note.end_s) for note in seen)])
        self.line_last = any(self._holds(note.start_s, note.end_s + self.after_s) for note in said)
        self.frame, self.line = self.frame or self.frame_last, self.line or self.line_last

    def _holds(self, start_s: float, end_s: float) -> bool:
        return any(low <= end_s and start_s <= high for low, high in self.ranges)


# Controls that an evaluation of a library does not have: frames by chance, and those of the true ranges.


def showing(name: str, pick: Callable[[Times], Times]) -> Variant:
    """A control that shows the frames that `pick` takes, with the lines at their times, in one call."""

    async def run(session: Session, parameters: UniformParameters) -> Answer:
        session.account.begin_round()
        environment = session.environment
        [video] = environment.videos
        times_s = pick([float(each) for each in environment.times(video.video_id)])
        frames = session.label(environment.frames(video.video_id, times_s))
        lines = [line for time_s in times_s for line in environment.quoted(video.video_id, time_s, time_s + EXACT_S)]
        notes = tuple(dict.fromkeys(lines))
        given: dict[str, Any] = {"videos": environment.videos, "frames": frames, "notes": notes}
        return await session.conclude(AnswerFrames(question=session.question, **given))

    return Variant(name, "control", run, lambda longest_s: UniformParameters(), roles=("vision", "policy"))


def true_frames(ranges: Sequence[Sequence[float]], count: int, times_s: Times) -> Times:
    """Up to three quarters of the frames from the true ranges, evenly, and the rest from right around them."""
    inside = [each for each in times_s if any(low <= each <= high for low, high in ranges)]
    most = max(1, count * 3 // 4)
    if len(inside) > most:
        inside = [inside[int(at)] for at in np.linspace(0, len(inside) - 1, most).round()]

    def far_s(time_s: float) -> float:
        return min(max(low - time_s, time_s - high, 0.0) for low, high in ranges)

    rest = sorted((each for each in times_s if each not in inside and far_s(each) > 0), key=far_s)
    ring = [each for each in rest if far_s(each) <= 2]
    ring += [each for each in rest if far_s(each) > 2 and int(far_s(each)) % 5 == 0]
    return sorted(inside + ring[: count - len(inside)])


def frames_by_chance(seed: str, count: int, times_s: Times) -> Times:
    """Some of the frames, all equally likely."""
    return sorted(Random(seed).sample(list(times_s), min(count, len(times_s))))


# A trial.


def contender(trial: Trial, row: Mapping[str, Any]) -> tuple[str | Variant, dict[str, str]]:
    """The agent of a trial, and its settings."""
    name, _, rest = trial.agent.partition(":")
    settings = dict(each.split("=", 1) for each in rest.split(",") if each)
    if name == "oracle":
        return showing(name, partial(true_frames, row["ranges"], trial.frames)), settings
    if name == "random-frames":
        return showing(name, partial(frames_by_chance, f"{row['question_id']}/{trial.frames}", trial.frames)), settings
    if name == "uniform":
        settings = {"frames": str(trial.frames), **settings}
    return name, settings


async def answer_one(trial: Trial, row: Mapping[str, Any], environment: Environment, models: Models) -> dict[str, Any]:
    """Ask one question; gives its row."""
    shown = Shown(row["ranges"], AFTER_S.get(row["kind"], 0.0))
    agent, settings = contender(trial, row)
    given: dict[str, Any] = {"parameters": settings or None, "budget": Budget(frames=trial.frames), "on_event": shown}
    given["rules"] = AnswerRules(force_choice=trial.choice)
    question = Question(row["question"], tuple(row["options"]))
    answer = await ask(question, environment.without_shared_captions(), models, agent=agent, **given)
    ledger = answer.ledger
    return {
        **asdict(trial),
        "code": code_digest(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "film": row["video"],
        **{name: row[name] for name in ("question_id", "kind", "needs")},
        "right": answer.option == row["answer"],
        "answered": answer.option is not None,
        "used": ledger.frames,
        "calls": ledger.calls,
        "invalid": ledger.invalid_replies,
        "tokens": ledger.tokens,
        **{name: getattr(shown, name) for name in ("frame", "line", "frame_last", "line_last")},
    }


def run_film(folder: Path, title: str, trials: Sequence[Trial], known: frozenset[tuple[object, ...]]) -> Iterator[Any]:
    """The rows of one film that are not known yet."""
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["video"] == f"{title}.mp4"]
    left = [(trial, row) for trial in trials for row in rows if trial.key(row["question_id"]) not in known]
    if not left:
        return
    library = InMemory.open(str(folder / "library"))
    video: list[VideoRow] = [row for row in library.videos() if row.title == title]
    embed_text = library.load_space(None, "text").embed_text
    eyes = Eyes.of(library, video, {title: Stage.of_script(folder / f"{title}.script.json")})
    heard = {
        speech: Environment.of(library, video, embed_text, hide=() if speech else ["speech"])
        for speech in (True, False)
    }
    for trial, row in left:
        models = InProcess(Observer(eyes, EYES[trial.eyes]))
        yield asyncio.run(answer_one(trial, row, heard[trial.speech], models))


def _append_film(
    folder: Path, path: Path, trials: Sequence[Trial], known: frozenset[tuple[object, ...]], title: str
) -> None:
    """Append the rows of one film that are not known yet, each at once."""
    with path.open("a", encoding="utf-8") as out:
        for row in run_film(folder, title, trials, known):
            out.write(json.dumps(row) + "\n")
            out.flush()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that this code made."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for line in lines if (row := json.loads(line))["code"] == code_digest()]


def run(folder: Path, trials: Sequence[Trial], path: Path, jobs: int = 1) -> None:
    """Run the trials on the films of a folder, and append what is missing to the rows."""
    known = frozenset(
        Trial(**{name: row[name] for name in Trial.__dataclass_fields__}).key(row["question_id"])
        for row in read_rows(path)
    )
    titles = sorted(each.name.removesuffix(".script.json") for each in folder.glob("*.script.json"))
    path.parent.mkdir(parents=True, exist_ok=True)
    each_film = partial(_append_film, folder, path, trials, known)
    if jobs == 1:
        for title in titles:
            each_film(title)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        list(pool.map(each_film, titles))


def agents_of(text: str) -> list[str]:
    """Agents in a list; a setting after a comma belongs to the agent before it."""
    return re.split(r",(?![a-z_]+=)", text)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ground", description=__doc__.partition("\n")[0])
    parser.add_argument("--agents", default="eea,vca,uniform,random-frames,oracle", help="NAME or NAME:SETTING=VALUE")
    parser.add_argument("--frames", default="8,16,32,64", help="budgets of frames")
    parser.add_argument("--films", default="8x15-301", help="COUNTxMINUTES-SEED of story films; several after commas")
    parser.add_argument("--eyes", default="perfect", help=f"of {', '.join(EYES)}; several after commas")
    parser.add_argument("--speech", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--force-choice", action="store_true", help="an option has to be chosen")
    parser.add_argument("--jobs", type=int, default=1, help="films at once, each in a process")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/ground"), help="where films and rows are kept")
    parser.add_argument("--rows", type=Path, help="file of rows; by default rows.jsonl in the cache")
    options = parser.parse_args(arguments)
    if unknown := set(options.eyes.split(",")) - set(EYES):
        raise UsageError(f"got the eyes {unknown.pop()!r}; they are {', '.join(EYES)}")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    path = options.rows or options.cache / "rows.jsonl"
    names, wanted = list(Trial.__dataclass_fields__), set()
    for films in map(Films.named, options.films.split(",")):
        trials = [
            Trial(films.name, agent, int(frames), eyes, options.speech, options.force_choice)
            for eyes in options.eyes.split(",")
            for agent in agents_of(options.agents)
            for frames in options.frames.split(",")
        ]
        run(films.made(options.cache), trials, path, options.jobs)
        wanted |= {json.dumps(asdict(trial)) for trial in trials}
    rows = [row for row in read_rows(path) if json.dumps({name: row[name] for name in names}) in wanted]
    if options.force_choice:
        print("An option has to be chosen.\n")
    print(curves.tables(rows))


if __name__ == "__main__":
    main()
