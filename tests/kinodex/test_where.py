"""`--where` on every command that takes it, and the same condition by Python, MCP and HTTP: one film of three is seen.

What a search finds is held by the contract of `test_contract.py`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client

import kinodex as package
from kinodex.index.library import Library
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.mcp_client import call, use_tools
from tests.support.servers.serve_server import serving

FRONT = "camera = 'front' AND order < 2"
QUESTION = {"question": "Which of these is shown?", "options": ["a boat", "a car"], "answer": "a boat"}


@pytest.fixture
def cameras(filmed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filmed, tmp_path / "library")


@pytest.mark.slow
def test_commands_work_on_the_videos_of_a_condition_alone(filmed: Path, tmp_path: Path, kinodex: Kinodex) -> None:
    where = "--where", FRONT
    told = json_of(kinodex, "info", filmed, *where)
    assert ([row["title"] for row in told["videos"]], told["frames"] > 0) == (["film-01"], True)
    assert told["added"] == [] != json_of(kinodex, "info", filmed, "--where", "order = 2")["added"]
    assert {facet["name"]: facet["values"] for facet in told["facets"]}["camera"] == [["front", 1]]
    assert "camera (string): front 1\n" in kinodex("info", filmed, *where).out

    found = json_of(kinodex, "ground", filmed, "a walrus plays chess", *where)
    assert {each["title"] for each in (*found["ranges"], *found["weaker"])} == {"film-01"}

    trace = tmp_path / "trace.jsonl"
    asked = kinodex(
        "ask", filmed, QUESTION["question"], "--option", "a boat", "--option", "a car", "--trace", trace, *where
    )
    assert asked.code == 0, asked
    assert [each["title"] for each in json.loads(trace.read_text().splitlines()[0])["videos"]] == ["film-01"]

    ranges = tmp_path / "ranges.csv"
    ranges.write_text("video,start_s,end_s\nfilm-01,1,2\nfilm-02,1,2\n")
    for command in (
        ("csv", "--ranges", ranges),
        ("csv", "--of", "shots"),
        ("jsonl", "--of", "videos"),
        ("csv", "--search", "a walrus plays chess"),
    ):
        written = kinodex("export", command[0], filmed, *command[1:], *where)
        assert written.code == 0 and "film-01" in written.out and "film-02" not in written.out, written
    hf = json_of(kinodex, "export", "hf", filmed, tmp_path / "hf", *where)
    assert (hf["videos"], hf["frames"]) == (1, told["frames"])

    questions, searches = tmp_path / "questions.jsonl", tmp_path / "searches.jsonl"
    films = ["film-01", "film-02"]
    questions.write_text("".join(json.dumps(QUESTION | {"id": name, "video": name}) + "\n" for name in films))
    searches.write_text(
        "".join(json.dumps({"id": n, "text": "a boat", "relevant": [[n, 0.0, 9.0]]}) + "\n" for n in films)
    )
    run = "eval", "own", filmed, "--annotations", questions, "--agent", "uniform", "--no-controls", "--no-page"
    ended = kinodex(*run, "--out", tmp_path / "run", *where)
    assert ended.code == 0, ended
    answered = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text().splitlines()]
    assert [each["item_id"] for each in answered] == ["film-01"]
    scored = json_of(kinodex, "eval", "search", "own", searches, "--library", filmed, "--contender", "frames", *where)
    assert scored["searches"] == 1, scored
    elsewhere = "--where", "camera IS NULL"
    bad(kinodex, *run, "--out", tmp_path / "none", *elsewhere, code=2, says="asks about no video for which camera IS")


@pytest.mark.slow
def test_an_addition_to_the_videos_of_a_condition_leaves_what_the_others_have(cameras: Path, kinodex: Kinodex) -> None:
    opened = Library.open(str(cameras))
    before = {(each.stage, each.model): each.videos for each in opened.info().added}
    added = json_of(kinodex, "add", "shots", cameras, "--where", FRONT)
    assert [each["title"] for each in added["outcomes"]] == ["film-01"], added
    rest = json_of(kinodex, "add", "shots", cameras)
    assert sorted(each["title"] for each in rest["outcomes"]) == ["film-02", "film-03"]
    after = {(each.stage, each.model): each.videos for each in opened.info().added}
    assert before.items() <= after.items()
    table = cameras.parent / "night.csv"
    table.write_text("name,night\nfilm-01,true\nfilm-02,true\n")
    kinodex("set", "metadata", cameras, table, "--where", FRONT)
    assert opened.metadata.matching("night") == opened.where(FRONT).video_ids()


def test_python_reads_the_videos_of_a_condition_alone(filmed: Path) -> None:
    opened = package.open(filmed).where(FRONT)
    assert repr(opened) == f"kinodex.open({str(filmed)!r}).where({FRONT!r})"
    assert (
        [row.title for row in opened.videos()] == [video.title for video in opened.environment().videos] == ["film-01"]
    )
    frames = opened.info().frames
    assert opened.to_arrow(["title", "vector"]).read_all()["title"].to_pylist() == ["film-01"] * frames
    assert len(opened.to_torch(["time_s"]).plan.pieces) >= 1 and opened.vectors_table().num_rows == frames
    assert {facet.name for facet in opened.facets()} == {"camera", "recorded_at", "order", "duration_s"}
    ranges = opened.ground("a walrus plays chess", k=3)
    assert {each.video.title for each in ranges.candidates} == {"film-01"}
    assert opened.ask("Is there a boat?", agent="uniform").status


def test_mcp_lists_columns_and_takes_a_condition(filmed: Path) -> None:
    async def use(client: Client) -> None:
        listed = await call(client, "videos", where=FRONT)
        assert [each["title"] for each in listed["videos"]] == ["film-01"]
        assert {each["name"]: each["values"] for each in listed["columns"]}["camera"] == {"front": 1}
        shown = await call(client, "overview", video="film-01")
        assert shown["columns"] == {"camera": "front", "recorded_at": "2026-03-01T07:00:00+00:00", "order": "1"}
        found = await call(client, "ground", text="a walrus plays chess", where=FRONT)
        assert {each["title"] for each in found["ranges"]} == {"film-01"}
        answer = await call(client, "ask", question="Is there a boat?", agent="uniform", where=FRONT)
        assert {each["title"] for each in answer["evidence"]} <= {"film-01"}

    use_tools(Library.open(str(filmed)), use)


def test_the_page_and_its_programs_get_columns_and_videos_of_a_condition(filmed: Path, tmp_path: Path) -> None:
    place, where = "/data/libraries/0", f"where={quote(FRONT)}"
    with serving([filmed], tmp_path) as client:
        found = client.get(f"{place}/facets").json
        facets: dict[str, Any] = {each["name"]: each for each in found["facets"]}
        assert found["videos"] == 3 and [*facets] == ["camera", "recorded_at", "order", "größe", "duration_s"]
        assert facets["camera"]["values"] == [{"text": "back's", "videos": 1}, {"text": "front", "videos": 1}]
        assert (facets["recorded_at"]["kind"], facets["order"]["kind"], facets["camera"]["kind"]) == (
            "time",
            "number",
            "text",
        )
        assert (facets["order"]["least"], facets["order"]["most"], facets["camera"]["missing"]) == ("1", "2", 1)
        assert client.get(f"{place}/facets?{where}").json["videos"] == 1
        assert [row["title"] for row in client.get(f"{place}/videos?{where}").json["rows"]] == ["film-01"]
        moments = client.get(f"{place}/moments?text=a+walrus+plays+chess&{where}").json
        assert {each["title"] for each in moments["videos"].values()} == {"film-01"}
        key = client.ask("Is there a boat?", agent="uniform", where=FRONT)
        listed = next(row for row in client.get("/data/questions").json["rows"] if row["key"] == key)
        assert listed["videos"] == ["film-01"]
        refused = client.post(f"{place}/questions", {"question": "Is it?", "where": "order > 7"})
        assert refused.status == 400 and "0 of 3 videos match" in refused.json["error"]
