"""A library, traces, a run and their server, made once for all tests of the viewer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinodex.agent.trace import read_trace
from kinodex.cli.main import main
from kinodex.index.library import Library
from kinodex.web.inputs import ViewerApi, classify_inputs
from kinodex.web.trace_view import TraceView, trace_view
from tests.support.libraries.viewer_library import SEEN, Shown, served
from tests.support.models.stage_models import library_in_two_spaces
from tests.support.runs.eval_runs import caption_library, write_questions


@pytest.fixture(scope="session")
def api(shown: Shown) -> ViewerApi:
    return ViewerApi(classify_inputs([*map(str, shown.traces), shown.library.uri]))


@pytest.fixture(scope="session")
def view(shown: Shown) -> TraceView:
    return trace_view(read_trace(shown.traces[0]))


@pytest.fixture(scope="session")
def address(shown: Shown) -> Iterator[str]:
    """Address of a server with both traces and their library."""
    with served(*shown.traces, shown.library.uri) as address:
        yield address


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run of `kinodex eval` over two videos, with traces."""
    folder = tmp_path_factory.mktemp("evaluated")
    library = caption_library(folder / "library", ("harbour", "orchard"))
    questions = write_questions(folder, ("harbour", "orchard"), 2)
    command = ["eval", "sketch", library.uri, "--annotations", str(questions), "--out", str(folder / "run")]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="0"):
        patch.setenv("KINODEX_CACHE", str(folder / "cache"))
        patch.setattr(sys, "argv", ["kinodex", *command, "--agent", "uniform", "--traces"])
        main()
    return folder / "run"


@pytest.fixture(scope="session")
def two_spaces(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """`harbour`, with a caption, in two spaces."""
    return library_in_two_spaces(tmp_path_factory.mktemp("spaces"), SEEN)
