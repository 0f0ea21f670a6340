"""Agents never touch the source of a video; test_house.py keeps the code that plays or decodes it from them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.house.once import made_once
from tests.support.libraries.sketch_library import draw_films, index_films, open_sketches
from tests.support.servers.serve_server import serving

WATCHED = """
import asyncio, json, sys
opened = set()
sys.addaudithook(lambda event, arguments: opened.add(str(arguments[0])) if event in ("open", "os.open") else None)
from kinodex.agent.ask import ask
from kinodex.agent.environment import Environment
from kinodex.agent.models.rules import RuleBasedModel
environment = Environment.open(sys.argv[1])
answer = asyncio.run(ask("What appears in the film?", environment, RuleBasedModel(environment)))
rooms = sorted({name.partition(".")[0] for name in sys.modules} & {"pipeline", "jobs", "av", "ray", "torch"})
print(json.dumps({"status": answer.status, "opened": sorted(opened), "rooms": rooms}))
"""
"""Asks, and says which files were opened and which rooms were loaded meanwhile."""


@pytest.mark.slow
def test_a_question_opens_no_source_and_its_answer_needs_none(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shutil.copytree(made_once(tmp_path_factory, "sketches", draw_films), tmp_path, dirs_exist_ok=True)
    index_films(tmp_path / "library", tmp_path)
    sketches = open_sketches(tmp_path)
    uri, known = sketches.library.uri, sketches.known[0]
    sources = {str(Path(row.uri.removeprefix("file://")).resolve()) for row in Library.open(uri).videos()}
    assert all(Path(each).is_file() for each in sources)
    ran = subprocess.run([sys.executable, "-c", WATCHED, uri], capture_output=True, text=True, check=True)
    said = json.loads(ran.stdout)
    assert said["rooms"] == [] and said["status"]
    assert said["opened"], "the hook hears"
    assert not [each for each in said["opened"] if str(Path(each).resolve()) in sources]

    def ask(traces: Path) -> tuple[object, ...]:
        with serving([uri], traces) as client:
            key = client.ask(known.question.text, options=list(known.question.options), videos=[f"{known.film}"])
            row = client.wait(key)
            answer = client.get(f"/data/traces/{key}").json["trace"]["answer"]
            return row["state"], row["letter"], row["status"], answer["evidence"], answer["ledger"]["frames"]

    with_sources = ask(tmp_path / "before")
    shutil.rmtree(tmp_path / "films")
    assert ask(tmp_path / "after") == with_sources and with_sources[0] == "done"
