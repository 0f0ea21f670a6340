"""`kinodex extract` and `kinodex sql`: rows under a schema from each part of a film, asked once, found and exported."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, Field

import kinodex
from kinodex.agent.errors import BadSettings
from kinodex.agent.requests.row_schema import read_schema
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.sweep import audit
from kinodex.jobs.add.settings import read_settings
from kinodex.jobs.add.stages import Extracts
from kinodex.jobs.errors import UsageError
from kinodex.requests import Find
from kinodex.web.inputs import classify_inputs
from kinodex.web.search import LibrarySearch
from kinodex.web.viewer_api import ViewerApi
from tests.support.command import Kinodex, bad, json_of
from tests.support.scenes.chaptered_film import PLACES, add_film
from tests.support.servers.chat_server import ChatServer, failing


class Where(BaseModel):
    """The place where it plays."""

    place: str = Field(description="one word")
    shots: int = Field(ge=0, description="how many captions there are")
    words: list[str]
    dark: bool | None


WHERE = Where.model_json_schema()
SEVERAL = {"type": "array", "items": WHERE}


def told(body: dict) -> str:
    return str([message["content"] for message in body["messages"]])


def row_of(body: dict) -> dict[str, Any]:
    """A row as an honest model fills it in: from the lines it was given, with the numbers of some as evidence."""
    place = next(place for place in PLACES if place in told(body))
    captions = re.findall(r"(\d+)\. [\d.]+ s to [\d.]+ s \(caption\)", told(body))
    return {"place": place, "shots": len(captions), "words": ["We", "are"], "dark": None, "evidence": captions[:2]}


def rows_of(body: dict) -> dict[str, Any]:
    """Two rows a scene, and none of the kitchen."""
    row = row_of(body)
    return {"rows": [] if row["place"] == "kitchen" else [row, row | {"place": f"{row['place']} again"}]}


@pytest.fixture
def library(places: Path, tmp_path: Path) -> Library:
    return Library.open(str(shutil.copytree(places, tmp_path / "library")))


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    file = tmp_path / "where.json"
    file.write_text(json.dumps(WHERE))
    return file


def command(library: Library, schema: Path, server: ChatServer, *more: object) -> tuple[object, ...]:
    options = ("--schema", schema, "--into", "places", "--model", "tester", "--base-url", server.base_url)
    return ("extract", library.uri, *options, "--input-price", 2.0, *more)


def test_a_scene_is_a_row_that_is_asked_for_once_and_found_in_sql_by_words_and_as_a_clip(
    kinodex: Kinodex, library: Library, schema: Path
) -> None:
    with ChatServer(row_of) as server:
        dry = kinodex(*command(library, schema, server, "--dry-run"))
        assert dry.code == 0 and server.seen == [] and re.search(r"extracts \| 8 \| 8 \|", dry.out)
        first = json_of(kinodex, *command(library, schema, server, "--video", "film aa"))
        both = json_of(kinodex, *command(library, schema, server))
        again = kinodex(*command(library, schema, server))
    assert server.problems == [] and "nothing to do" in again.out
    assert (first["added"], first["rows"], both["added"], both["rows"]) == (1, 4, 1, 4)
    assert len(server.seen) == 8 and server.seen[0].schema == "Where" and len(server.seen[0].frames) == 8
    properties = server.seen[0].body["response_format"]["json_schema"]["schema"]["properties"]
    assert list(properties) == ["place", "shots", "words", "dark", "evidence"]

    rows = library.extracts.rows("places")
    assert [(row["place"], row["start_s"], row["end_s"]) for row in rows.to_pylist()] == [
        (place, 60.0 * number, 60.0 * (number + 1)) for _ in "ab" for number, place in enumerate(PLACES)
    ]
    kinds = {name: rows.schema.field(name).type for name in WHERE["properties"]}
    assert kinds == {"place": pa.string(), "shots": pa.int64(), "words": pa.list_(pa.string()), "dark": pa.bool_()}
    kitchen = rows.to_pylist()[1]
    assert (kitchen["evidence_start_s"], kitchen["evidence_end_s"], kitchen["shots"]) == (60.0, 70.0, 12)
    assert sum(rows["cost"].to_pylist()) == pytest.approx(first["usage"]["cost"] + both["usage"]["cost"])
    assert set(rows["model"].to_pylist()) == {"tester"} and audit(library, deep=True).problems == ()

    select = (
        "SELECT video_id, start_s, end_s, place AS label FROM places WHERE shots > 3 AND place LIKE 'k%' ORDER BY 1"
    )
    found = json_of(kinodex, "sql", library.uri, select)
    assert [(each["video_id"], each["label"]) for each in found] == [("aa", "kitchen"), ("bb", "kitchen")]
    lines = kinodex("export", "csv", library.uri, "--from-sql", select).out
    assert lines.count("kitchen") == 2 and "60" in lines
    hits = json_of(kinodex, "search", library.uri, "kitchen", "--in", "places")
    assert {(hit["video_id"], hit["time_s"], hit["found_in"]) for hit in hits} == {
        ("aa", 60.0, "extracts"),
        ("bb", 60.0, "extracts"),
    }
    asked = Find(query="kitchen", in_="places")
    (moment,) = LibrarySearch(library, library.fingerprint).search(asked)["groups"][0]["hits"]
    assert (moment["frame_no"], moment["end_s"]) == (65, 70.0), "the page shows a picture of the evidence"
    page = ViewerApi(classify_inputs([library.uri]))
    shown = page.extract(0, "places", 0, "place = 'kitchen' AND shots > 3")
    assert (shown["count"], shown["columns"]) == (2, ["place", "shots", "words", "dark"])
    assert [(row["video_id"], row["frame_no"], row["start_s"]) for row in shown["rows"]] == [
        ("aa", 60, 60.0),
        ("bb", 60, 60.0),
    ]
    assert shown["rows"][0]["values"] == ["kitchen", "12", "We, are", None]
    assert shown["facets"][0]["values"] == [{"text": place, "videos": 2} for place in sorted(PLACES)]
    with pytest.raises(QueryError, match="no column plase; did you mean place"):
        page.extract(0, "places", 0, "plase = 'x'")


def test_several_rows_a_part_from_python_and_a_changed_schema_beside_it(library: Library) -> None:
    opened = kinodex.open(library.uri)
    with ChatServer(rows_of) as server:
        asked: dict[str, Any] = {"into": "places", "model": "tester", "base_url": server.base_url}
        rows = opened.extract(list[Where], **asked)
        window = opened.extract(list[Where], **asked, each="window:100", videos="film aa")
    twice = [name for place in PLACES if place != "kitchen" for name in (place, f"{place} again")]
    assert rows["place"].to_pylist() == 2 * twice
    assert rows["row_no"].to_pylist() == 2 * [0, 1, 0, 1, 0, 1]
    assert sorted({row["end_s"] for row in window.to_pylist()}) == [
        100.0,
        240.0,
    ]  # the second has a line of the kitchen
    older, newer = library.extracts.versions("places")
    assert opened.sql("SELECT count(*) FROM places").fetchall() == [(window.num_rows,)]
    assert opened.sql(f'SELECT count(*) FROM "{older.key}"').fetchall() == [(12,)]
    assert older.definition["part"] == "scene" and newer.definition["part"] == "window:100"


def test_evidence_beside_what_was_shown_is_left_out_and_one_of_nothing_else_is_refused(library: Library) -> None:
    """A small model counts on past the last line."""
    with ChatServer(lambda body: row_of(body) | {"evidence": [9, 10, 99]}) as server:
        asked: dict[str, Any] = {"into": "places", "model": "tester", "base_url": server.base_url, "videos": "film aa"}
        rows = kinodex.open(library.uri).extract(Where, **asked).to_pylist()
        assert [(row["evidence_start_s"], row["evidence_end_s"]) for row in rows][1] == (60.0, 70.0)
        server.reply = lambda body: row_of(body) | {"evidence": [99]}
        other = kinodex.open(library.uri).where("title = 'film bb'")
        rows = other.extract(Where, **(asked | {"videos": ()}), each="scene").to_pylist()
        assert all(row["fault"] for row in rows) and "the evidence 99 is no frame and no line" in server.seen[-1].text


@pytest.mark.slow
def test_a_part_without_a_reply_says_so_and_is_asked_about_again_alone(
    kinodex: Kinodex, library: Library, schema: Path
) -> None:
    unusable = failing(400, "no such scene")
    with ChatServer(lambda body: unusable if "kitchen" in told(body) else row_of(body)) as server:
        ran = kinodex(*command(library, schema, server, "--video", "film aa"))
        assert ran.code == 3 and "1 of 4 parts got no reply that could be used" in ran.out
        assert "added 3 extracts to 1 video" in ran.out and "1 video in part: run the same command with" in ran.out
        fault = library.extracts.rows("places").to_pylist()[1]
        assert fault["place"] is None and "no such scene" in fault["fault"]
        assert json_of(kinodex, "sql", library.uri, "SELECT count(*) AS n FROM places") == [{"n": 3}]
        server.reply, before = row_of, len(server.seen)
        retried = json_of(kinodex, *command(library, schema, server, "--video", "film aa", "--retry-failed"))
    assert (retried["added"], retried["rows"], len(server.seen)) == (1, 4, before + 1)
    assert library.extracts.rows("places")["place"].to_pylist() == list(PLACES)
    assert library.ingest_log.failures() == [] and audit(library, deep=True).problems == ()


@pytest.mark.slow
def test_what_was_wrong_with_an_unusable_reply_is_told_to_the_user_and_not_counted_as_an_ingests_failure(
    kinodex: Kinodex, library: Library, schema: Path
) -> None:
    with ChatServer(lambda body: row_of(body) | {"evidence": [57]}) as server:
        ran = kinodex(*command(library, schema, server, "--video", "film aa"))
        made = json_of(kinodex, *command(library, schema, server, "--video", "film bb"), code=3)
        assert ran.code == 3 and "added 0 extracts to 1 video" in ran.out
        assert re.search(r"the last reply could not be used: .*57", ran.out), ran.out
        assert (made["rows"], made["incomplete"], made["failed"]) == (0, 1, 0)
        assert all("57" in row["fault"] for row in library.extracts.rows("places").to_pylist())
        server.reply = row_of
        assert json_of(kinodex, *command(library, schema, server, "--retry-failed"))["rows"] == 8
        server.reply = lambda body: row_of(body) | {"evidence": [57]}
        failed = kinodex(*command(library, schema, server, "--lines-a-part", 7))
    assert failed.code == 3 and {row.stage for row in library.ingest_log.failures()} == {"extracts"}
    assert "--retry-failed" not in kinodex("ingest", "--library", library.uri, "--retry-failed").out


def test_a_part_of_which_nothing_is_known_is_named_and_not_asked_about(
    kinodex: Kinodex, library: Library, schema: Path
) -> None:
    add_film(library, "cc", 3, described=False, places=1)
    with ChatServer(row_of) as server:
        ran = kinodex(*command(library, schema, server, "--video", "film cc", "--frames-a-part", 0))
    assert (ran.code, server.seen) == (3, [])
    assert "got no reply that could be used; no frame and no line is known of 1" in ran.out


def test_a_run_ends_at_its_cost_and_goes_on_with_what_was_paid(
    kinodex: Kinodex, library: Library, schema: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "cache"))
    with ChatServer(row_of) as server:
        price = ("--input-price", 10**6, "--batch", 1, "--stop-at-cost", 1)
        ran = kinodex(*command(library, schema, server, *price))
        assert ran.code == 5 and "run again to go on" in ran.error_line
        paid = len(server.seen)
        assert 0 < paid < 8
        assert json_of(kinodex, *command(library, schema, server))["rows"] == 8
    assert len(server.seen) == 8


YES = {"type": "boolean"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "give a JSON schema of an object"),
        ({"type": "string"}, "whose properties are the columns"),
        ({"type": "object", "properties": {}}, "has no properties"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "x+"}}}, "the property a has 'pattern'"),
        ({"type": "object", "properties": {"a": {}}}, "the property a has no type"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}, "several types"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "not among $defs"),
        ({"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {}}}}, "has no properties"),
        ({"type": "object", "properties": {"start_s": {"type": "number"}}}, "a column that every extract has"),
        ({"type": "object", "properties": {"a b": {"type": "string"}}}, "a letter first"),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "A": {"type": "integer"}}}, "more than capitals"),
        ({"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}, "the property a has 'enum'"),
        ({"type": "object", "properties": {"a": {"type": "string", "enum": ["\ud800"]}}}, "half of a character"),
        ({"type": "object", "properties": {"a": {"type": "integer", "minimum": math.inf}}}, "give a number"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": YES, "minItems": 9**9}}}, "up to 1000"),
        ({"type": "object", "properties": {f"a{n}": {"type": "string"} for n in range(101)}}, "servers take 100"),
    ],
)  # fmt: skip
def test_a_schema_that_a_server_or_a_column_cannot_hold_is_refused_before_anything_is_asked(
    given: object, says: str
) -> None:
    asked = {"into": "places", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    with pytest.raises(BadSettings, match=re.escape(says)):
        read_settings(Extracts, "extracts", {"row": given, **asked})


class Part(BaseModel):
    parts: list[Part]


def test_other_refusals(kinodex: Kinodex, library: Library, schema: Path) -> None:
    with pytest.raises(BadSettings, match="Part within Part"):
        read_schema(Part.model_json_schema())
    for settings, says in (
        ({"into": "videos"}, "got the name 'videos'"),
        ({"into": "A"}, "give small letters"),
        ({"each": "minute"}, "video, chapter, scene, shot, window:SECONDS"),
        ({"each": "shot", "search": "a boat"}, "got --each and --search"),
        ({"search": " "}, "got an empty --search"),
        ({"base_url": None, "model": "a/b"}, "without --base-url"),
    ):
        given: Any = {"into": "places", "model": "m", "base_url": "http://127.0.0.1:1/v1", **settings}
        with pytest.raises(UsageError, match=re.escape(says)):
            Extracts(row=WHERE, **given)
    with ChatServer(row_of) as server:
        bad(kinodex, *command(library, schema, server, "--stop-at-cost", 1, "--ray"), code=2, says="leave one out")
        bad(kinodex, *command(library, schema, server, "--where", "camera = 1"), code=2, says="no column camera")
        assert server.seen == []
    bad(kinodex, "search", library.uri, "boat", "--in", "goals", code=2, says="it is one of all, frames")


NO_SQL = (
    ("DROP TABLE videos", "got DROP as SQL"),
    ("SELECT 1; SELECT 2", "got SELECT, SELECT as SQL"),
    ("SELECT * FROM read_csv('/etc/passwd')", "SQL reads only the library"),
    ("SELECT * FROM '/etc/passwd'", "there is no table /etc/passwd"),
    ("COPY (SELECT 1) TO '/tmp/kinodex-x.csv'", "got COPY as SQL"),
    ("SELECT * FROM video", "there is no table video; did you mean videos?"),
    ("SELECT nonsense FROM videos", "nonsense"),
    ("SELEC", "syntax error"),
)


def test_sql_reads_the_library_alone(places: Path) -> None:
    for select, says in NO_SQL:
        with pytest.raises(QueryError, match=re.escape(says)):
            kinodex.open(places).sql(select)


def test_sql_sees_what_readers_see(library: Library) -> None:
    library.writer.discard("bb")
    opened = kinodex.open(library.uri)
    videos = opened.sql("SELECT video_id, title, duration_s, end_s FROM videos").fetchall()
    assert videos == [("aa", "film aa", 240.0, 240.0)]
    counts = "SELECT (SELECT count(*) FROM frames), (SELECT count(*) FROM segments), (SELECT count(*) FROM detections)"
    assert opened.sql(counts).fetchall() == [(240, 48, 0)]
    sources = opened.sql("SELECT kind, count(*) FROM lines GROUP BY 1 ORDER BY 1").fetchall()
    assert sources == [("captions", 48), ("speech", 24)]
    within = "l.start_s >= s.start_s AND l.end_s <= s.end_s AND l.kind = 'speech'"
    spoken = f"SELECT l.text FROM lines l JOIN segments s USING (video_id) WHERE {within}"
    assert len(opened.sql(spoken).df()) == 24
    assert opened.sql("SELECT max(time_s) AS last FROM frames").to_arrow_table().to_pylist() == [{"last": 239.0}]


def test_removing_a_version_leaves_the_others(kinodex: Kinodex, library: Library, schema: Path) -> None:
    with ChatServer(row_of) as server:
        assert json_of(kinodex, *command(library, schema, server))["rows"] == 8
        assert json_of(kinodex, *command(library, schema, server, "--each", "video"))["rows"] == 2
    older, newer = library.extracts.versions("places")
    ran = kinodex("remove", "added", library.uri, "extracts", newer.key, "--yes")
    assert ran.code == 0 and "2 extracts removed" in ran.out
    assert [each.key for each in library.extracts.versions()] == [older.key]
    assert library.extracts.rows("places").num_rows == 8
