"""A command ends in one line and with exit code 4, or says it, whatever JSON, columns and numbers a library holds."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kinodex.index.errors import LibraryDamaged, TowersDamaged
from kinodex.index.library import Library
from kinodex.index.nesting import MOST_DEPTH
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.store.carried_towers import held_towers
from kinodex.index.store.database import Tables
from kinodex.index.stored_json import facts_of, read_json, read_object
from tests.support.command import bad, runner

NEWEST = "format-1"
DEEP = "[" * 100_000 + "]" * 100_000
DEEP_OBJECT = '{"a":' * 100_000 + "1" + "}" * 100_000


@pytest.fixture(scope="module")
def unpacked(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with rows in every table."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(root / "tests" / "data" / "libraries" / f"{NEWEST}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "library"


@pytest.fixture
def frozen(unpacked: Path, tmp_path: Path) -> str:
    """A copy of it to damage."""
    return str(shutil.copytree(unpacked, tmp_path / "library"))


def note(uri: str, name: str, key: str, text: str) -> None:
    Tables(uri).commit(name, lambda newest: newest.update_schema_metadata({key: text}))


def held(uri: str, key: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(Tables(uri).schema("videos").metadata[key.encode()])
    return values


def put(uri: str, name: str, column: str, value: Any) -> None:
    """Put a value into the first row, as no writer of the library does."""

    def changed(rows: pa.Table) -> pa.Table:
        field = rows.schema.field(column)
        values = [value, *rows[column].to_pylist()[1:]]
        return rows.set_column(rows.schema.get_field_index(column), field, pa.array(values, field.type))

    Tables(uri).rewrite(name, changed)


def titles_as_numbers(uri: str) -> None:
    def changed(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("title")
        return rows.set_column(place, "title", pa.array(range(rows.num_rows), pa.int64()))

    Tables(uri).rewrite("videos", changed)


Damage = Callable[[str], object]


def noted(key: str, text: str) -> Damage:
    return lambda uri: note(uri, "videos", key, text)


def with_field(key: str, field: str, value: Any) -> Damage:
    return lambda uri: note(uri, "videos", key, json.dumps(held(uri, key) | {field: value}))


def with_value(name: str, column: str, value: Any) -> Damage:
    return lambda uri: put(uri, name, column, value)


NO_SETTINGS = ("[]", DEEP, DEEP_OBJECT, "null", "5", '"x"', "{", '{"a": "\\ud800"}')
NO_SPACES = ("[]", DEEP, DEEP_OBJECT, "null", "{}", '{"name": 1}')
NO_COLUMNS = ("[]", DEEP, "5", "[1, 2]", '["video_id"]')
NO_RATES = ("x", [1], None, -1, 0, True, float("nan"), float("inf"), 10**400)
NO_DIMENSIONS = ("x", [1], None, -1, 0, True, 1.5, 10**30)
WHOLE: list[tuple[str, Damage]] = [
    *((f"settings {text[:9]}", noted("kinodex.settings", text)) for text in NO_SETTINGS),
    *((f"space {text[:9]}", noted("kinodex.space", text)) for text in NO_SPACES),
    *((f"columns {text[:9]}", noted("kinodex.columns", text)) for text in NO_COLUMNS),
    *((f"fps {value!r:.9}", with_field("kinodex.settings", "fps", value)) for value in NO_RATES),
    *((f"dim {value!r:.9}", with_field("kinodex.space", "dim", value)) for value in NO_DIMENSIONS),
    ("titles", titles_as_numbers),
    ("duration", with_value("videos", "duration_s", float("nan"))),
    ("start", with_value("videos", "start_s", float("inf"))),
    ("late start", with_value("videos", "start_s", 1e300)),
    ("ingested_at", with_value("videos", "ingested_at", 2**62)),
]


@pytest.mark.parametrize("damage", [damage for _, damage in WHOLE], ids=[name for name, _ in WHOLE])
def test_a_library_of_which_nothing_can_be_read(
    frozen: str, damage: Damage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(frozen)
    kinodex = runner(monkeypatch, capsys)
    bad(kinodex, "info", frozen, code=4, says="it is not what was written")
    bad(kinodex, "sql", frozen, "SELECT * FROM videos", code=4, says="it is not what was written")


def extract_noted(text: str) -> Damage:
    """A table of an extract whose definition is this text."""
    columns = pa.schema([pa.field("video_id", pa.string())]).with_metadata({"kinodex.extract": text})
    return lambda uri: Tables(uri).create("extracts_things_12", columns)


REPORTS = (DEEP, DEEP_OBJECT, "[]", "5", "x")
EXTRACTS = (DEEP, "{}", "[]", '{"name": 1}')
PARTS: list[tuple[str, Damage, tuple[str, ...]]] = [
    *((f"report {text[:9]}", with_value("runs", "report", text), ("info", "{}", "--runs")) for text in REPORTS),
    *((f"extract {text[:9]}", extract_noted(text), ("sql", "{}", "SELECT 1")) for text in EXTRACTS),
    (
        "captions",
        with_value("captions", "start_s", float("nan")),
        ("export", "vtt", "{}", "{}.vtt", "--of", "captions"),
    ),
    ("seen_at", with_value("sources", "seen_at", 2**62), ("info", "{}")),
    ("added_at", with_value("additions", "added_at", -(2**62)), ("maintain", "{}", "--check")),
]


@pytest.mark.parametrize("name", [name for name, *_ in PARTS])
def test_a_part_that_cannot_be_read(
    frozen: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, command = next((damage, command) for each, damage, command in PARTS if each == name)
    damage(frozen)
    kinodex = runner(monkeypatch, capsys)
    bad(kinodex, *(each.format(frozen) for each in command), code=4, says="it is not what was written")


@pytest.mark.parametrize(
    "name, column, value",
    [
        ("videos", "duration_s", float("nan")),
        ("videos", "digests", DEEP),
        ("frames", "frame_no", -(2**31)),
        ("sources", "seen_at", 2**62),
        ("additions", "settings", DEEP),
        ("captions", "start_s", float("nan")),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_check_names_what_is_altered(
    frozen: str,
    name: str,
    column: str,
    value: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(frozen, name, column, value)
    kinodex = runner(monkeypatch, capsys)
    checked = kinodex("maintain", frozen, "--check", "--deep")
    assert (checked.code, "1 wrong" in checked.out) == (3, True), checked
    mended = kinodex("maintain", frozen, "--deep", "--discard-broken")
    assert mended.code == 0, mended
    assert kinodex("info", frozen).code == 0


def test_settings_of_an_addition_and_the_likeness_of_sentences(frozen: str) -> None:
    library = Library.open(frozen)
    stage, model = next((each.stage, each.model) for each in library.info().added if each.stage == "captions")
    Tables(frozen).rewrite(
        "additions", lambda rows: rows.set_column(4, rows.schema.field(4), pa.array([DEEP] * len(rows)))
    )
    assert Tables(frozen).schema("additions").names[4] == "settings"
    with pytest.raises(LibraryDamaged, match="the settings of captions"):
        Library.open(frozen).additions.settings(stage, model)
    sentences = next(name for name in library.tables.names() if name.startswith("sentences_"))
    for text in (DEEP, "{}", '{"mean": "x", "deviation": 1}', '{"mean": 1e999, "deviation": 1}'):
        note(frozen, sentences, "kinodex.likeness", text)
        with pytest.raises(LibraryDamaged, match="the likeness of"):
            Library.open(frozen).sentences.least_cosine()


@pytest.mark.parametrize("text", [DEEP, DEEP_OBJECT, "[]", "5", "{}", '{"version": 2, "space": {"dim": "x"}}'])
def test_a_description_of_towers(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "towers" / "abc"
    folder.mkdir(parents=True)
    (folder / "tower.json").write_text(text)
    with pytest.raises(TowersDamaged, match="is no description of towers"):
        held_towers(str(tmp_path), "abc")


def test_json_within_its_bounds_is_read_as_it_is() -> None:
    nested = json.dumps({"a": [[[{"b": "[" * 500}]]], "c": "\u00e9", "d": 1.5, "e": None})
    assert read_json(nested, "x") == json.loads(nested)
    assert read_object('{"[": 1}', "x") == {"[": 1}
    many = json.dumps([{"n": number} for number in range(1000)])
    assert len(read_json(many.encode(), "x")) == 1000
    with pytest.raises(LibraryDamaged, match=r"cannot read x: .*nested more than"):
        read_json("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "x")
    assert read_json("[" * MOST_DEPTH + "]" * MOST_DEPTH, "x")
    with pytest.raises(LibraryDamaged, match="it has a field later"):
        facts_of(Fingerprint, {"later": 1}, "x")
