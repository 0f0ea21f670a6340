"""A watched place, where one round is one ingest; and the indexes that are kept in order meanwhile."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kinodex.index.errors import StorageError
from kinodex.index.library import Library
from kinodex.index.store.indexes import DURING_RUN, small_fragments
from kinodex.jobs.ingest.arrivals import Arrivals, watch_sources
from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.refresh import refreshing_indexes
from kinodex.jobs.ingest.reports import IngestReport
from kinodex.pipeline.errors import SourceUnreachable
from kinodex.pipeline.source import Source
from kinodex.pipeline.sources import list_sources
from tests.support.libraries.random_library import SETTINGS, fingerprint
from tests.support.servers import s3_server as s3_kit
from tests.world.drawn_space import DRAWN

QUIET_S = 30.0


CONFIG = IngestConfig(space=DRAWN, workers=1, text_tower=False)


Step = Callable[[], object]


def names(sources: Sequence[Source]) -> list[str]:
    return [Path(source.uri).name for source in sources]


def now_of(path: Path, later_s: float = 0.0) -> float:
    """So many seconds after a file's last change, and a millisecond, which a float of seconds may round away."""
    return path.stat().st_mtime + later_s + 0.001


def test_a_file_is_taken_once_it_stays_the_same_and_once(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(b"half")
    arrivals, sources = Arrivals(QUIET_S), list_sources([str(tmp_path)])
    assert arrivals.look(sources, now_of(film, 1.0)) == []
    film.write_bytes(b"half and half")
    assert arrivals.look(sources, now_of(film, 1.0)) == []
    film.write_bytes(b"other and all")  # as many bytes, at another time
    os.utime(film, ns=(0, film.stat().st_mtime_ns + 1_000_000))
    assert arrivals.look(sources, now_of(film)) == []
    assert names(arrivals.look(sources, now_of(film, 2.0))) == ["film.mp4"]

    quiet = Arrivals(QUIET_S)
    assert names(quiet.look(sources, now_of(film, QUIET_S))) == ["film.mp4"], "quiet for long, so at the first look"
    arrived = quiet.look(sources, now_of(film, QUIET_S))
    assert names(arrived) == ["film.mp4"], "it was offered, and not taken"
    quiet.take(arrived)
    assert quiet.look(sources, now_of(film, 2 * QUIET_S)) == []
    film.write_bytes(b"whole, and other bytes")
    now_s = now_of(film, QUIET_S)
    quiet.take(quiet.look(sources, now_s))
    assert quiet.look([], now_s) == [], "it went"
    assert names(quiet.look(sources, now_s)) == ["film.mp4"], "and came back"
    film.unlink()
    assert quiet.look(sources, now_s) == []


class Rounds:
    """Steps that happen in the pauses of a watch, one a pause; after the last one it ends."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.reports: list[IngestReport] = []
        self.reasons: list[str] = []

    def pause(self, seconds: float) -> bool:
        if not self._steps:
            return True
        self._steps.pop(0)()
        return False

    def run(self, list_now: Callable[[], list[Source]], library: Path, config: IngestConfig = CONFIG) -> bool:
        return watch_sources(
            config, list_now, str(library), QUIET_S, self.pause, self.reports.append, self.reasons.append
        )

    @property
    def states(self) -> list[dict[str, str]]:
        return [{Path(each.uri).name: each.state for each in report.outcomes} for report in self.reports]


def nothing() -> None:
    """A pause in which nothing happens."""


def finished(film: Path, copied: Path) -> None:
    """Copy a film as one that has been whole for long, so that it is taken at the first look."""
    away = copied.parent.parent / "away"
    shutil.copy(film, away)
    os.utime(away, (0, 0))
    away.rename(copied)


@pytest.mark.slow
def test_films_are_taken_as_they_arrive_and_only_when_they_are_whole(small_films: list[Path], tmp_path: Path) -> None:
    folder, library = tmp_path / "films", tmp_path / "library"
    folder.mkdir()
    one, two = (folder / film.name for film in small_films[:2])
    data = small_films[0].read_bytes()
    rounds = Rounds(
        lambda: one.write_bytes(data[: len(data) // 2]),
        lambda: one.write_bytes(data),
        nothing,
        lambda: finished(small_films[1], two),
        lambda: one.write_bytes(b"no film"),
        nothing,
        nothing,
    )
    assert not rounds.run(lambda: list_sources([str(folder)]), library), "one failed"
    assert rounds.states == [{one.name: "indexed"}, {two.name: "indexed"}, {one.name: "failed"}]
    assert [reason.partition(": ")[2][:22] for reason in rounds.reasons] == ["a folder without a vid"]
    runs = Library.open(str(library)).ingest_log.runs()
    assert [run.state for run in runs] == ["done"] * 3, "a look that takes nothing is no run"
    second = Rounds(nothing)
    second.run(lambda: list_sources([str(two)]), library)
    assert second.states == [], "a second watch takes nothing that the library knows"


@pytest.mark.slow
def test_a_library_that_another_run_holds_and_a_place_out_of_reach_are_waited_for(
    small_films: list[Path], tmp_path: Path
) -> None:
    folder, library, looks = tmp_path / "films", tmp_path / "library", iter(range(99))
    folder.mkdir()
    finished(small_films[0], folder / "first.mp4")
    assert Rounds().run(lambda: list_sources([str(folder / "first.mp4")]), library)
    finished(small_films[1], folder / "film.mp4")
    lease = Library.open(str(library)).lease("ingest", "another run")

    def list_now() -> list[Source]:
        if next(looks) == 0:
            raise SourceUnreachable("s3://shelf: cannot be read")
        return list_sources([str(folder / "film.mp4")])

    rounds = Rounds(lease.__enter__, nothing, lambda: lease.__exit__(None, None, None))
    assert rounds.run(list_now, library)
    assert rounds.states == [{"film.mp4": "indexed"}]
    assert len(rounds.reasons) == 2, "the second look at a library that is still busy says nothing new"
    assert rounds.reasons[0] == "s3://shelf: cannot be read" and "another run" in rounds.reasons[1]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty bucket on this machine."""
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()
    with s3_kit.s3_server() as address:
        for name, value in s3_kit.environment(address).items():
            monkeypatch.setenv(name, value)
        s3_kit.send(f"{address}/shelf", "PUT")
        yield "shelf"
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.slow
def test_objects_are_taken_as_they_arrive_under_a_prefix(bucket: str, small_films: list[Path], tmp_path: Path) -> None:
    client = pytest.importorskip("boto3").client("s3")

    def put(name: str, film: Path) -> Step:
        return lambda: client.put_object(Bucket=bucket, Key=f"films/{name}", Body=film.read_bytes())

    rounds = Rounds(put("a.mp4", small_films[0]), nothing, put("a.mp4", small_films[1]), nothing)
    assert rounds.run(lambda: list_sources([f"s3://{bucket}/films"]), tmp_path / "library")
    assert rounds.states == [{"a.mp4": "indexed"}, {"a.mp4": "indexed"}]
    assert len(Library.open(str(tmp_path / "library")).video_ids()) == 2


SOON_S = 0.01


def append_many(library: Library) -> None:
    """Append one more fragment than a table should have."""
    row = {"stage": "open", "error_class": "NotAVideo", "message": "", "attempts": 1, "failed_at": 0}
    for number in range(DURING_RUN.fragments + 1):
        library.tables.append("failures", [{"uri": str(number), **row}])


def wait_until_joined(library: Library) -> None:
    while small_fragments(library.tables, "failures") > DURING_RUN.fragments:
        time.sleep(SOON_S)


@pytest.mark.slow
def test_fragments_are_joined_beside_a_run_and_an_error_there_is_raised_at_its_end(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    with refreshing_indexes(library.uri, SOON_S):
        append_many(library)
        wait_until_joined(library)
    assert library.tables.count("failures") == DURING_RUN.fragments + 1

    went_on = False
    append_many(library)
    shutil.rmtree(Path(library.uri) / "runs.lance")  # the table that is looked at right after `failures`
    with pytest.raises(StorageError, match=r"runs\.lance"), refreshing_indexes(library.uri, SOON_S):
        wait_until_joined(library)
        went_on = True
    assert went_on
