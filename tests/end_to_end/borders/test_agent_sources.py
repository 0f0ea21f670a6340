"""Agents never touch the source of a video; test_house.py keeps the code that plays or decodes it from them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.models.stage_models import library_of
from tests.support.servers.serve_server import serving

WATCHED = """
import asyncio, json, sys
opened = set()
sys.addaudithook(lambda event, arguments: opened.add(str(arguments[0])) if event in ("open", "os.open") else None)
from kinodex.agent.ask import ask
from kinodex.agent.videos.environment import Environment
from tests.world.rules.model import RuleBasedModel
environment = Environment.open(sys.argv[1])
answer = asyncio.run(ask("What appears in the film?", environment, RuleBasedModel(environment)))
rooms = sorted({name.partition(".")[0] for name in sys.modules} & {"pipeline", "jobs", "av", "ray", "torch"})
print(json.dumps({"status": answer.status, "opened": sorted(opened), "rooms": rooms}))
"""
"""Asks, and says which files were opened and which rooms were loaded meanwhile."""


@pytest.mark.slow
def test_a_question_opens_no_source_and_its_answer_needs_none(short_films: Path, tmp_path: Path) -> None:
    source = Path(shutil.copy(short_films / "film-01.mp4", tmp_path)).resolve()
    uri = library_of(tmp_path / "library", [source]).uri
    ran = subprocess.run([sys.executable, "-c", WATCHED, uri], capture_output=True, text=True, check=True)
    said = json.loads(ran.stdout)
    assert said["rooms"] == [] and said["status"]
    assert said["opened"], "the hook hears"
    assert str(source) not in {str(Path(each).resolve()) for each in said["opened"]}

    def ask(traces: Path) -> tuple[object, ...]:
        with serving([uri], traces) as client:
            key = client.ask("What is seen first?", options=["a boat", "a title card"])
            row = client.wait(key)
            answer = client.get(f"/data/traces/{key}").json["trace"]["answer"]
            return row["state"], row["letter"], row["status"], answer["evidence"], answer["ledger"]["frames"]

    with_source = ask(tmp_path / "before")
    source.unlink()
    assert ask(tmp_path / "after") == with_source and with_source[0] == "done" and with_source[-1]
