"""A library against a plain model of it, in any order, with faults on the disk: a machine of hypothesis.

`python -m tests.support.faults.machine` tries the same each time, with `KINODEX_EXAMPLES=200` that many new. A process
of its own, since the faults come from a layer that is loaded before it (`disk`). An operation that fails may have done
a part: each fact of each film is then that of before or of after, and never another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kinodex.errors import KinodexError
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.maintain import maintain
from kinodex.index.remove import remove_added, remove_videos
from kinodex.index.sweep import audit
from kinodex.jobs.addresses.relocation import relocate
from kinodex.jobs.metadata.input import read_metadata
from kinodex.jobs.metadata.update import set_metadata
from kinodex.jobs.text_import.addition import Kind
from kinodex.jobs.text_import.captions import read_captions
from kinodex.jobs.text_import.run import import_text
from kinodex.jobs.text_import.videos import text_id
from tests.support.faults.crew import Film, ingest, new_library
from tests.support.faults.disk import FAULTS, LASTING, ONCE, faults_at, reloaded

EXAMPLES, STEPS = int(os.environ.get("KINODEX_EXAMPLES", "1")), 12
FILMS = {film.name: film for film in (Film("kite", 2), Film("boat", 3), Film("lamp", 5))}
PLACES = ("/films", "/elsewhere/films")
WRITER = "somebody"
YEARS = (2024, 2025, 2026)


@dataclass(frozen=True)
class Facts:
    """Facts of a video; None where it is not there."""

    frames: int = 0
    uri: str | None = None
    line: str | None = None
    caption: str | None = None
    speech: str | None = None
    year: int | None = None


Model = dict[str, Facts]
"""Facts of videos by title; `GONE` of one that is not there."""
GONE = Facts()
CALLS = [name for name, fault in FAULTS.items() if fault.how in (ONCE, LASTING)]
CRASH = st.none() | st.tuples(st.sampled_from(CALLS), st.integers(1, 90))
TITLES = (*FILMS, "text alone")


def seen(library: Library) -> Model:
    """Read the facts of each video as a reader sees them; a video is whole."""
    found = dict.fromkeys(TITLES, GONE)
    rows = library.videos()
    years = library.metadata.of([row.video_id for row in rows])
    for row in rows:
        numbers = library.vectors(row.video_id).frame_no.tolist() if row.frames else []
        assert numbers == list(range(row.frames)), row
        assert len(library.frames(row.video_id, numbers)) == row.frames if row.frames else True
        lines = {line.source: line.text for line in library.speech(row.video_id)}
        captions = [caption.text for caption in library.captions(row.video_id, WRITER)]
        year = years.get(row.video_id, {}).get("year")
        caption = captions[0] if captions else None
        uri = row.uri if row.frames else "imported"
        found[row.title] = Facts(row.frames, uri, lines.get("sidecar"), caption, lines.get("imported"), year)
    return found


class Libraries(RuleBasedStateMachine):
    """`model` is what the library holds."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._files = Path(self._folder.name)
        self.library = new_library(self._files / "library")
        self.model: Model = dict.fromkeys(TITLES, GONE)

    def teardown(self) -> None:
        """Without faults: a maintenance, and all is as the model has it."""
        self.library = Library.open(self.library.uri)
        assert maintain(self.library, keep_s=0, purge=True).after.problems == ()
        self.as_the_model_has_it()
        self._folder.cleanup()

    def _does(self, crash: tuple[str, int] | None, work: Callable[[], object], **after: Facts) -> None:
        """Do something that leaves these facts, or with a fault on the disk each of them or that of before."""
        after = {**self.model, **after}
        if crash is None:
            work()
            self.model = after
            return
        with faults_at(self._files / "library", FAULTS[crash[0]], crash[1]):
            try:
                work()
                whole = True
            except KinodexError:
                whole = False
        found = seen(Library.open(self.library.uri))
        if whole:
            assert found == after, crash
        for title, facts in found.items():
            for name, value in vars(facts).items():
                before, then = (getattr(each[title], name) for each in (self.model, after))
                assert value in (before, then) or (value is None and then is not None and before is None), (
                    title, name, value, before, then, crash,
                )  # fmt: skip
        self.model = found

    @invariant()
    def as_the_model_has_it(self) -> None:
        for library in (self.library, Library.open(self.library.uri)):  # one that was open all the time, and a new one
            assert seen(library) == self.model
        found = audit(self.library, deep=True)
        wrong = (found.doubled, found.broken, found.damaged, found.altered, found.added.broken)
        assert wrong == ((), (), (), (), ()), found

    @rule(names=st.sets(st.sampled_from(sorted(FILMS)), min_size=1), crash=CRASH)
    def ingest(self, names: set[str], crash: tuple[str, int] | None) -> None:
        places = {name: self.model[name].uri or f"{PLACES[0]}/{name}.mp4" for name in names}
        films = {places[name]: FILMS[name] for name in names}
        after = {
            name: replace(self.model[name], frames=FILMS[name].frames, uri=uri, line=FILMS[name].line)
            for name, uri in places.items()
        }
        self._does(crash, lambda: ingest(self.library, films), **after)

    @rule(
        kind=st.sampled_from(("captions", "speech")), titles=st.sets(st.sampled_from(TITLES), min_size=1), crash=CRASH
    )
    def add_by_file(self, kind: Kind, titles: set[str], crash: tuple[str, int] | None) -> None:
        """Lines and captions; of a title that the library lacks this makes a video that has only them."""
        name = "caption" if kind == "captions" else "speech"
        chosen = {title for title in titles if title not in FILMS or self.model[title] != GONE}
        if not chosen:
            return
        source = self._files / "lines.jsonl"
        rows = [{"video": title, "start_s": 0.0, "end_s": 1.0, "text": f"{name} of {title}"} for title in chosen]
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        after = {}
        for title in chosen:
            facts = self.model[title] if self.model[title] != GONE else Facts(uri="imported")
            said = f"{name} of {title}"
            after[title] = replace(facts, caption=said) if kind == "captions" else replace(facts, speech=said)
        read = read_captions(source, 1.0)
        self._does(crash, lambda: import_text(self.library, kind, WRITER, str(source), read, {}), **after)

    @rule(title=st.sampled_from(TITLES), crash=CRASH)
    def remove(self, title: str, crash: tuple[str, int] | None) -> None:
        self._does(crash, lambda: remove_videos(self.library, _id(title)), **{title: GONE})

    @rule(title=st.sampled_from(TITLES), crash=CRASH)
    def remove_captions(self, title: str, crash: tuple[str, int] | None) -> None:
        after = replace(self.model[title], caption=None)
        self._does(crash, lambda: remove_added(self.library, "captions", WRITER, _id(title)), **{title: after})

    @rule(there=st.booleans(), crash=CRASH)
    def relocate(self, there: bool, crash: tuple[str, int] | None) -> None:
        old, new = PLACES if there else PLACES[::-1]
        moved = {
            title: replace(facts, uri=facts.uri.replace(old, new, 1))
            for title, facts in self.model.items()
            if facts.uri and facts.uri.startswith(f"{old}/")
        }
        if moved:
            self._does(crash, lambda: relocate(self.library, old, new), **moved)

    @rule(years=st.dictionaries(st.sampled_from(TITLES), st.sampled_from(YEARS), min_size=1), crash=CRASH)
    def set_metadata(self, years: dict[str, int], crash: tuple[str, int] | None) -> None:
        there = {title: year for title, year in years.items() if self.model[title] != GONE}
        if not there:
            return
        table = self._files / "years.csv"
        table.write_text("video,year\n" + "".join(f"{_id(title)},{year}\n" for title, year in there.items()))
        after = {title: replace(self.model[title], year=year) for title, year in there.items()}
        self._does(crash, lambda: set_metadata(self.library, read_metadata([table])), **after)

    @rule(crash=CRASH, purge=st.booleans())
    def maintain(self, crash: tuple[str, int] | None, purge: bool) -> None:
        self._does(crash, lambda: maintain(self.library, keep_s=0, purge=purge))

    @rule(year=st.sampled_from(YEARS), word=st.sampled_from((*FILMS, "caption", "speech")))
    def find(self, year: int, word: str) -> None:
        """`where`, and words: as one finds them in the model."""
        known = {title: facts for title, facts in self.model.items() if facts != GONE}
        if any(facts.year is not None for facts in known.values()):
            wanted = {_id(title) for title, facts in known.items() if (facts.year or 0) >= year}
            with nullcontext() if wanted else _refused(QueryError):
                assert self.library.where(f"year >= {year}").video_ids() == wanted
        said = {title for title, facts in known.items() if word in f"{facts.line} {facts.speech}".split()}
        assert {hit.video_id for hit in self.library.search.lines("speech", word)} == {_id(title) for title in said}
        shown = {title for title, facts in known.items() if word in str(facts.caption).split()}
        assert {hit.video_id for hit in self.library.search.captions(word)} == set(map(_id, shown))


def _id(title: str) -> str:
    return FILMS[title].video_id if title in FILMS else text_id(title)


@contextmanager
def _refused(kind: type[KinodexError]) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")


def main() -> None:
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize="KINODEX_EXAMPLES" not in os.environ,
        database=None,
        phases=[Phase.generate],  # a dozen steps are short enough to read; to make them fewer takes minutes
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Libraries, settings=chosen)


if __name__ == "__main__":
    reloaded()
    main()
