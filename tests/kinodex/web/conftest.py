"""Libraries and servers of the page, made once for all tests that only read them or ask."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinodex.agent.traces.trace import read_trace
from kinodex.cli.main import main
from kinodex.index.library import Library
from kinodex.jobs.models import ModelChoice
from kinodex.web.inputs import classify_inputs
from kinodex.web.trace_view import TraceView, trace_view
from kinodex.web.viewer_api import ViewerApi
from tests.support.house.once import made_once
from tests.support.libraries.play_library import KINDS, write_films
from tests.support.libraries.viewer_library import SEEN, Shown, library_of_titles, served
from tests.support.models.stage_models import library_in_two_spaces
from tests.support.runs.eval_runs import caption_library, write_questions
from tests.support.servers.chat_server import ChatServer
from tests.support.servers.looking_server import looking_server
from tests.support.servers.serve_server import Client, serving
from tests.world.benchmark import SKETCHES
from tests.world.drawn_space import DRAWN


@pytest.fixture(scope="session")
def client(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`kinodex serve` over drawn films with the built-in model."""
    with serving([library], tmp_path_factory.mktemp("traces"), at_once=50) as client:
        yield client


@pytest.fixture(scope="session")
def api(shown: Shown) -> ViewerApi:
    return ViewerApi(classify_inputs([*map(str, shown.traces), shown.library.uri]))


@pytest.fixture(scope="session")
def view(shown: Shown) -> TraceView:
    return trace_view(read_trace(shown.traces[0]))


@pytest.fixture(scope="session")
def address(shown: Shown) -> Iterator[str]:
    """Address of a server without questions, with both traces and their library."""
    with served(*shown.traces, shown.library.uri) as address:
        yield address


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run of `kinodex eval` over two videos, with traces."""
    folder = tmp_path_factory.mktemp("evaluated")
    library = caption_library(folder / "library", ("harbour", "orchard"))
    questions = write_questions(folder, ("harbour", "orchard"), 2)
    command = ["eval", SKETCHES, library.uri, "--annotations", str(questions), "--out", str(folder / "run")]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="0"):
        patch.setenv("KINODEX_CACHE", str(folder / "cache"))
        patch.setattr(sys, "argv", ["kinodex", *command, "--agent", "uniform", "--traces"])
        main()
    return folder / "run"


@pytest.fixture(scope="session")
def two_spaces(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """`harbour`, with a caption, in two spaces."""
    return library_in_two_spaces(tmp_path_factory.mktemp("spaces"), SEEN)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """More videos than a page has rows, each a title and nothing else."""
    return library_of_titles(tmp_path_factory.mktemp("many") / "library", 105)


@pytest.fixture(scope="session")
def play_films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film of each kind that plays in a way of its own."""
    return made_once(tmp_path_factory, "play_films", write_films)


@pytest.fixture(scope="session")
def play_library(play_films: Path, tmp_path_factory: pytest.TempPathFactory) -> Library:
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources

    def ingest(place: Path) -> None:
        report = run_ingest(IngestConfig(space=DRAWN), list_sources([str(play_films)]), str(place))
        assert report.count("indexed") == len(KINDS)

    made = made_once(tmp_path_factory, "play_library", ingest)
    return Library.open(str(shutil.copytree(made, tmp_path_factory.mktemp("playing") / "library")))


@pytest.fixture(scope="session")
def playing(play_library: Library, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving([play_library.uri], tmp_path_factory.mktemp("traces")) as client:
        yield client


@pytest.fixture(scope="session")
def ids(play_library: Library) -> dict[str, str]:
    """Ids of the films by their names without suffix."""
    return {row.title: row.video_id for row in play_library.videos()}


@pytest.fixture
def looking(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Client, ChatServer]]:
    """A server of films whose model sees, and the server of that model."""
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    place = shutil.copytree(library, tmp_path / "library")
    with looking_server(lambda number, line: number == 1) as server:
        choice = ModelChoice("tester", server.base_url, input_price=1000.0)
        with serving([place], tmp_path / "traces", choice, usd_a_day=0.5) as client:
            yield client, server
