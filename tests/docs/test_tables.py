"""docs/format.md says of every table what the code does; its script, and the examples of docs/tables.md, run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from mktestdocs import check_md_file

from kinodex.index.library import Library
from kinodex.index.rows import NoteRow
from kinodex.index.store.schema import (
    FORMAT_VERSION,
    LATE_TABLES,
    LINES,
    clips_schema,
    extracts_schema,
    sentences_schema,
    table_schemas,
    vectors_table,
)
from tests.support.libraries.random_library import (
    DIM,
    OTHER_DIM,
    SETTINGS,
    caption,
    detection,
    fingerprint,
    made,
    other_space,
    spoken,
    vectors_of,
    write,
)
from tests.world.drawn_space import DRAWN

TABLE = re.compile(r"^### `(?P<name>[^`]+)`\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
COLUMN = re.compile(r"^\| `(\w+)` \| ([^|]+) \|", re.MULTILINE)
KEY = re.compile(r"Key:\s([^.]+)\.")


@pytest.fixture
def page(root: Path) -> Path:
    return root / "docs" / "format.md"


def schemas() -> dict[str, pa.Schema]:
    known = {**table_schemas(SETTINGS, fingerprint()), **LATE_TABLES}
    known = {name: schema for name, schema in known.items() if schema is not LINES}
    known["<kind of lines>"] = LINES
    known["extracts_<name>_<digest>"] = extracts_schema(pa.schema([]))
    known["sentences_<model>"] = sentences_schema(fingerprint(), {})
    known["clips_<model>"] = clips_schema(fingerprint())
    known["vectors_<space>"] = known.pop(vectors_table(fingerprint()))
    return known


def spelled(field: pa.Field) -> str:
    kind, null = field.type, " or null" if field.nullable else ""
    if pa.types.is_fixed_size_list(kind):
        size = "dim" if kind.list_size == DIM else kind.list_size
        return f"{kind.value_type}[{size}]{null}"
    if pa.types.is_list(kind):
        parts = ", ".join(part.name for part in kind.value_type.fields)
        return f"list of {{{parts}}}{null.replace(' or', ', or')}"
    return f"{kind}{null}"


def keys(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if field.metadata]


def test_the_page_has_every_table_and_column(page: Path) -> None:
    told = {each["name"]: each["text"] for each in TABLE.finditer(page.read_text())}
    assert told.keys() == schemas().keys()
    for name, schema in schemas().items():
        assert COLUMN.findall(told[name]) == [(field.name, spelled(field)) for field in schema], name
        key = KEY.search(told[name])
        assert re.findall(r"`(\w+)`", key[1] if key else "") == keys(schema), name


def test_the_page_has_the_format(page: Path) -> None:
    assert f"`kinodex.format` (now {FORMAT_VERSION})" in page.read_text()


@pytest.mark.slow  # a process of its own
def test_a_strangers_script_reads_a_library_with_lance_and_numpy_alone(page: Path, library: Path, tmp_path) -> None:
    (script,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    imported = {line.split()[1] for line in script.splitlines() if line.startswith(("import ", "from "))}
    assert imported == {"lance", "numpy", "pathlib", "sys"}
    (tmp_path / "read.py").write_text(script)
    ran = subprocess.run([sys.executable, "read.py", library], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len([line for line in lines if line.endswith(f" s, space {DRAWN}")]) == 3
    found = re.findall(r"^(film-0\d) at (\d+\.\d\d) s, cosine (\d\.\d{3})$", ran.stdout, re.MULTILINE)
    assert len(found) == 3
    assert found[0][2] == "1.000", "the first frame is nearest to itself"
    opened = Library.open(str(library))
    frame = opened.frames_at(opened.video(found[0][0]).video_id, [float(found[0][1])], mode="nearest")[0]
    assert (tmp_path / "frame.jpg").read_bytes() == frame.jpeg


@pytest.mark.slow
def test_the_examples_count_what_is_complete(root: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Library.create("mine", SETTINGS, fingerprint()))
    check_md_file(root / "docs" / "tables.md", memory=True)
    out = capsys.readouterr().out
    for line in (
        "format 1",
        "2 videos, 4 additions",
        "2 lines of subtitles, 1 heard",
        "like the one before: [",
        "[('film bbbb', 1, 0.5), ('film aaaa', 1, 0.25)]",
    ):
        assert line in out
    assert re.search(r"film aaaa +kite +2\n", out)
    assert "boat" not in out
    assert Path("1.jpg").read_bytes() == b"jpeg aaaa 1"


def fill(library: Library) -> None:
    """Two complete videos with all that can be added, one of which half is written, and half an addition."""
    videos = [made("aaaa", 8, 1, lines=((0.0, 2.0, "a kite"),)), made("bbbb", 4, 2, lines=((1.0, 3.0, "a boat"),))]
    for video in videos:
        write(library, video)
    write(library, made("cccc", 4, 3, lines=((0.0, 1.0, "nobody sees this"),)), complete=False)
    library.additions.add_captions({"aaaa": [caption(0, "a kite", videos[0].vectors[0])]}, "captioner")
    library.additions.add_detections({"aaaa": [detection(2, "kite", 0.9), detection(3, "kite", 0.8)]}, "detector")
    library.additions.add_detections({"bbbb": [detection(1, "boat", 0.9)]}, "detector")
    library.additions.add_speech({"aaaa": [spoken(1, "look at it")]}, "whisper")
    library.additions.add_space(other_space())
    library.additions.add_vectors({"aaaa": vectors_of(8, 4, OTHER_DIM)}, other_space())
    done = {"captions": "captioner", "detections": "detector", "speech": "whisper", "vectors": other_space().digest}
    for stage, model in done.items():
        count = {"captions": 1, "detections": 2, "speech": 1, "vectors": 8}[stage]
        assert library.additions.complete(stage, model, {"aaaa": count}, {}) == ()
    library.notes.add([NoteRow("aaaa", "captioner", 0.0, 2.5, "a kite", None, 2)])
