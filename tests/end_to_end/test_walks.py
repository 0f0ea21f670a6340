"""The three walks of docs/architecture.md name just the files through which a frame, a question and an item go."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.house.walks import walk

pytestmark = pytest.mark.slow


MOST_FILES = {"A frame from file to row": 35, "A question through eea": 34, "An item of a benchmark": 45}
"""What a reader should have to open at most."""


def files_of(root: Path, title: str) -> set[str]:
    """The files that a section of the page names, in rows of a folder and its modules."""
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split(f"\n### {title}\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| `([\w/]+)` \| ([\w, ]+) \|", section, re.MULTILINE)
    files = {f"{folder}/{name}.py" for folder, names in rows for name in names.split(", ")}
    assert len(files) <= MOST_FILES[title]
    return files


def test_a_frame_from_file_to_row(root: Path, films: Path, tmp_path: Path) -> None:
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.run import run_ingest
    from kinodex.pipeline.sources import list_sources

    film = shutil.copy(films / "film-01.mp4", tmp_path)  # without the subtitles beside it
    sources = list_sources([str(film)])
    with walk(tmp_path) as recorder:
        report = run_ingest(IngestConfig(space="builtin", workers=1), sources, str(tmp_path / "library"))
    assert report.count("indexed") == 1
    assert recorder.files == files_of(root, "A frame from file to row")


def test_a_question_through_eea(root: Path, library: Path, tmp_path: Path) -> None:
    import asyncio

    from kinodex.agent.ask import ask
    from kinodex.agent.environment import Environment
    from kinodex.agent.models.openai_model import OpenAIModel
    from kinodex.agent.models.roles import Role

    async def answer(base_url: str) -> str | None:
        async with OpenAIModel(Role(model="rules", base_url=base_url, key_env=None)) as model:
            environment = Environment.open(str(library), "film-01")
            return (await ask("What colour is the bird at sea?", environment, model)).text

    # In a process of its own, for it answers with parts of the built-in model.
    command = [sys.executable, "-m", "tests.support.servers.rule_server", "--port", "0"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        base_url = server.stdout.readline().split()[-1]
        try:
            with walk(tmp_path) as recorder:
                assert asyncio.run(answer(base_url))
        finally:
            server.kill()
    assert recorder.files == files_of(root, "A question through eea")


def test_an_item_of_a_benchmark(root: Path, films: Path, library: Path, tmp_path: Path) -> None:
    from kinodex.jobs.eval.run import evaluate

    with walk(tmp_path) as recorder:
        report = evaluate(library, "sketch", films / "questions.jsonl", tmp_path / "run", limit=2, controls=False)
    assert report.asked == 2
    assert recorder.files == files_of(root, "An item of a benchmark")
