"""The commands and the Python of docs/extract.md run as they stand there, with a model behind the page's address."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.store.schema import extracts_schema
from tests.support.command import Kinodex
from tests.support.scenes.chaptered_film import PLACES, make_film
from tests.support.servers.chat_server import ChatServer

PLACE = "http://localhost:8000/v1"


def visit(body: dict) -> dict:
    said = str([message["content"] for message in body["messages"]])
    row = {"place": next(each for each in PLACES if each in said), "night": None, "people": ["a cook"], "evidence": [1]}
    asked = body["response_format"]["json_schema"]["schema"]["properties"]
    return {"rows": [row]} if "rows" in asked else row


def test_the_page(root: Path, tmp_path: Path, kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (root / "docs" / "extract.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    monkeypatch.chdir(tmp_path)
    make_film(tmp_path / "library", "aa")
    Path("visit.json").write_text(blocks["json"])
    with ChatServer(visit, models=["gpt-4o-mini"]) as server:
        printed = []
        for line in blocks["console"].splitlines():
            arguments = shlex.split(line.removeprefix("$ kinodex ").replace(PLACE, server.base_url))
            ran = kinodex(*arguments)
            assert ran.code == 0, ran
            printed.append(ran.out)
        names: dict = {}
        exec(blocks["python"].replace(PLACE, server.base_url), names)
    assert "| extracts | 4 | 4 |" in printed[0] and "added 4 extracts" in printed[1]
    assert "kitchen" in printed[2] and "kitchen" in printed[3]
    assert Path("visits.csv").read_text().count("\n") == 5
    assert names["visits"].num_rows == 48 and set(names["frame"]["place"]) == set(PLACES)
    columns = page.partition("| column |")[2].partition("\n\n")[0]
    assert all(f"`{name}`" in columns for name in extracts_schema(pa.schema([])).names if name != "fault")
