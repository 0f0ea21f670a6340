"""Fixtures that every test may use: the project's root, the real media beside it, drawn films and their library."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.command import Kinodex, runner
from tests.support.house.once import made_once
from tests.support.house.process_state import changes, snapshot
from tests.support.house.schedule import shares, sharing_together
from tests.support.servers.ray_node import RayCluster, cluster
from tests.world.drawn_space import DRAWN

if TYPE_CHECKING:
    from tests.support.libraries.sketch_library import SketchLibrary
    from tests.support.pages import OpenPage

ROOT = Path(__file__).resolve().parent.parent
REAL_FILES = {"media", "benchmarks"}
"""Fixtures of files that lie beside the checkout of a developer."""
MEMORY, ROOM_BYTES = Path("/dev/shm"), 4_000_000_000
"""Where tests have their folders if there is so much room: on a disk, every commit of a table waits for it.

Measured: tests of tables (index/test_additions, test_repair, videos) take 21 and 25 s there, and 43 and 52 s on the
disk of two busy cores, with 12 instead of 15 CPU seconds.
"""


def pytest_configure() -> None:
    """Give torch and its like one thread a process, here and in children: else threads of all processes wait busily.

    Measured: the tests of Whisper take 9 CPU seconds so, and 54 with two threads on two busy cores. An ingest sets its
    threads by itself; where these wait without a processor, ten batches take 0.4 CPU seconds instead of 2.9.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    gc.disable()  # while tests are collected nothing is garbage


def has_room(folder: Path) -> bool:
    """True where all folders of a run find room, and programs in them run."""
    if not os.access(folder, os.W_OK):
        return False
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize > ROOM_BYTES and not state.f_flag & os.ST_NOEXEC


def pytest_collection_finish() -> None:
    """Keep the thousands of tests, and what their modules import, out of every look for garbage, and look seldom.

    Less often than after 700 objects: that took an eighth of the time of tests that only compute.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that read real media, and begin with what takes longest: files that share something, slow ones.

    So no process ends late.
    """
    for item in items:
        if REAL_FILES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.needs_media)
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("ray")}
    items.sort(key=lambda item: (shares(item.path) is None, shares(item.path) or "", item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give one process all files that share what takes long to start; without `loadfile`, as xdist does."""
    return sharing_together(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """Check after every test that the process is set as it was before: the environment, threads, signals, logging."""
    before = snapshot()
    yield
    assert changes(before, snapshot()) == {}, "the test, or what it calls, leaves the process changed: (before, after)"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def media() -> Path:
    """The folder of real videos that developers have beside the checkout; a user does not, and the test skips."""
    folder = ROOT.parent / "shared" / "media"
    if not folder.is_dir():
        pytest.skip("no ../shared/media beside this checkout")
    return folder


@pytest.fixture(scope="session")
def media_or_none() -> Path | None:
    """The same folder for tests that can also do without."""
    folder = ROOT.parent / "shared" / "media"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def benchmarks() -> Path:
    """The folder of real annotation files that developers have beside the checkout; without it the test skips."""
    folder = ROOT.parent / "shared" / "benchmarks"
    if not folder.is_dir():
        pytest.skip("no ../shared/benchmarks beside this checkout")
    return folder


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three drawn films of half a minute with `questions.jsonl`."""
    from tests.world.sketch.films import write_films

    return made_once(tmp_path_factory, "films", lambda folder: write_films(folder, hours=0.02, seed=3))


@pytest.fixture(scope="session")
def short_films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn films of four seconds, film-01.mp4 to film-03.mp4, for tests to which it is one what they show."""
    from tests.support.libraries.corpus import draw_film

    def draw(folder: Path) -> None:
        folder.mkdir()
        for number in range(1, 4):
            draw_film(folder / f"film-{number:02d}.mp4", 4.0, number)

    return made_once(tmp_path_factory, "short-films", draw)


@pytest.fixture(scope="session")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of these films in the drawn space, ingested once; tests that change one make their own."""
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources

    def ingest(place: Path) -> None:
        report = run_ingest(IngestConfig(space=DRAWN), list_sources([str(films)]), str(place))
        assert report.count("indexed") == 3

    made = made_once(tmp_path_factory, "library", ingest)
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("made") / "library"))  # agents keep captions in it


@pytest.fixture(scope="session")
def copy_sketches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], SketchLibrary]:
    """A function that copies a small library of sketch films, made once, into a folder, and opens the copy."""
    from tests.support.libraries.sketch_library import draw_films, index_films, open_sketches

    def copy(folder: Path) -> SketchLibrary:
        drawn = made_once(tmp_path_factory, "sketches", draw_films)
        made = made_once(tmp_path_factory, "sketch-library", lambda place: index_films(place, drawn))
        shutil.copytree(drawn, folder, dirs_exist_ok=True)
        shutil.copytree(made, folder / "library")
        return open_sketches(folder)

    return copy


@pytest.fixture
def kinodex(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Kinodex:
    """The command line in this process: `kinodex("info", library)`; its response cache is the test's own."""
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    return runner(monkeypatch, capsys)


@pytest.fixture
def quick_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an endpoint be tried again at once, where how often it is tried counts, and not how long it takes."""
    monkeypatch.setattr("kinodex.agent.models.retries.FIRST_WAIT_S", 0.01)
    monkeypatch.setattr("kinodex.agent.models.retries.JITTER_S", 0.01)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model of a real architecture, made when first needed: "llava", "rt_detr", "space", ..."""
    from tests.support.models.stage_models import MAKERS

    return lambda name: made_once(tmp_path_factory, f"model-{name}", MAKERS[name])


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    """A cluster of one node with 3 CPUs in processes of its own, for all tests that do not take it apart."""
    with pytest.MonkeyPatch.context() as patch, cluster(3) as running:
        patch.setenv("RAY_AUTH_MODE", "disabled")  # as its own processes have it
        yield running


@pytest.fixture
def opened(context: Any) -> Iterator[OpenPage]:
    """Opens pages in the `context` of a module, a browser's; see `tests.support.pages.pages`."""
    from tests.support.pages import pages

    with pages(context) as open_page:
        yield open_page
