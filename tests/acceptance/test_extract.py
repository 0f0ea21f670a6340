"""Extract and SQL: rows under a schema from each shot, asked for once, read by SQL, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

import kinodex as package
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.chat_server import ChatServer


class Scene(BaseModel):
    """The place and the things of a shot."""

    place: str = Field(description="one word")
    things: int = Field(ge=0)


ROW = {"place": "harbour", "things": 2, "evidence": []}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    file = tmp_path / "scene.json"
    file.write_text(json.dumps(Scene.model_json_schema()))
    return file


def test_rows_are_asked_for_once_and_read_by_sql(kinodex: Kinodex, own: Path, schema: Path) -> None:
    with ChatServer(lambda body: ROW) as server:
        model = ("--model", "tester", "--base-url", server.base_url)
        extract = ("extract", own, "--schema", schema, "--into", "scenes", "--each", "shot", *model)
        assert kinodex(*extract, "--dry-run").code == 0 and server.seen == []
        assert json_of(kinodex, *extract, "--video", "film-02")["rows"] == 7
        assert "nothing to do" in kinodex(*extract, "--video", "film-02").out
    assert len(server.seen) == 7 and server.problems == []
    select = "SELECT place, count(*) AS shots, max(things) AS things, max(end_s) AS end_s FROM scenes GROUP BY place"
    assert json_of(kinodex, "sql", own, select) == [{"place": "harbour", "shots": 7, "things": 2, "end_s": 30.0}]
    assert package.open(own).sql(select).fetchall() == [("harbour", 7, 2, 30.0)]


def test_python_extracts_by_a_model_of_pydantic(own: Path) -> None:
    with ChatServer(lambda body: ROW) as server:
        rows = package.open(own).extract(
            Scene, into="scenes", model="tester", base_url=server.base_url, each="video", videos="film-01"
        )
    assert [(row["place"], row["things"], row["end_s"]) for row in rows.to_pylist()] == [("harbour", 2, 30.0)]


def test_a_reply_outside_of_the_schema_is_a_fault_of_its_part(kinodex: Kinodex, own: Path, schema: Path) -> None:
    with ChatServer(lambda body: {"place": "harbour", "things": -1, "evidence": []}) as server:
        model = ("--model", "tester", "--base-url", server.base_url)
        ran = kinodex("extract", own, "--schema", schema, "--into", "scenes", "--each", "video", *model)
        assert ran.code == 3
        assert json_of(kinodex, "sql", own, "SELECT * FROM scenes") == []


def test_sql_reads_the_library_and_nothing_else(kinodex: Kinodex, shown: Path, tmp_path: Path) -> None:
    rows = json_of(kinodex, "sql", shown, "SELECT title, frames, camera FROM videos ORDER BY title LIMIT 2")
    assert [(row["title"], row["frames"], row["camera"]) for row in rows] == [
        ("film-01", 30, "front"),
        ("film-02", 30, "rear"),
    ]
    (total,) = json_of(kinodex, "sql", shown, "SELECT sum(frames) AS frames, avg(frames) AS mean FROM videos")
    assert isinstance(total["frames"], int) and isinstance(total["mean"], float), "numbers, not texts of numbers"
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for select in (f"SELECT * FROM '{secret}'", "DROP TABLE videos", "SELECT nothing FROM videos", "SELECT"):
        ran = kinodex("sql", shown, select)
        assert ran.code == 2 and ran.error_line, select


def test_what_extract_refuses(kinodex: Kinodex, shown: Path, schema: Path, tmp_path: Path) -> None:
    model = ("--model", "tester", "--base-url", "http://127.0.0.1:9/v1")
    (tmp_path / "bad.json").write_text("{")
    for arguments, code, says in (
        (("--schema", tmp_path / "none.json", "--into", "scenes", *model), 2, "none.json"),
        (("--schema", tmp_path / "bad.json", "--into", "scenes", *model), 2, "bad.json"),
        (("--schema", schema, "--into", "Sc enes", *model), 2, "Sc enes"),
        (("--schema", schema, "--into", "videos", *model), 2, "videos"),
        (("--schema", schema, "--into", "scenes", "--each", "week", *model), 2, "week"),
        (("--schema", schema, "--into", "scenes", "--each", "video", *model), 5, "nobody answers at"),
    ):
        bad(kinodex, "extract", shown, *arguments, code=code, says=says)
