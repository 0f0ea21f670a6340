"""No command prints what a library, a log or a file holds in a way that steers the terminal."""

from __future__ import annotations

import json
import logging
import re
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from kinodex.index.library import Library
from kinodex.index.store.database import Tables
from kinodex.output import notes_on_stderr, print_json, say, tell, tell_count
from tests.support.command import Kinodex

EVIL = "\x1b[31m\x9b5m\r\u202e\x07\u2028"
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
KEPT = {
    "additions": {"stage", "digest"},
    "captions": set[str](),
    "chapters": {"level"},
    "segments": {"kind"},
    "sentences": {"source"},
    "speech": {"source"},
    "videos": {"state", "digests"},
}
"""Columns of words that kinodex itself compares, by the beginning of a table's name; the others hold any text."""
DIGESTS = "stage IN ('vectors', 'sentences', 'clips')"


def poison(uri: str) -> int:
    """Append codes of terminals to every text of every table, ids of videos apart; return the number of columns."""
    tables, columns = Tables(uri), 0
    for name in tables.names():
        kept = next((kept for beginning, kept in KEPT.items() if name.startswith(beginning)), set())
        texts = [field.name for field in tables.schema(name) if field.type == pa.string()]
        for column in sorted({*texts} - kept - {"video_id", "settings", "report", "terms"}):
            where = f"NOT {DIGESTS}" if (name, column) == ("additions", "model") else None
            tables.to_write(name).update({column: f"{column} || '{EVIL}'"}, where)
            columns += 1
    told = json.dumps({"states": {f"indexed{EVIL}": 1}, "stopped": EVIL, "left_out": 0})
    tables.to_write("runs").update({"report": f"'{told}'"})
    return columns


COMMANDS = """
info LIBRARY
info LIBRARY --runs
info LIBRARY --json
maintain LIBRARY --check
maintain LIBRARY --check --deep
speakers LIBRARY
duplicates LIBRARY
search LIBRARY key
search LIBRARY key --in words
search LIBRARY key --in chapters
search LIBRARY key --json
ground LIBRARY key
ask LIBRARY what? -v
ask LIBRARY what? --json
sql LIBRARY SELECT\u00a0*\u00a0FROM\u00a0videos
sql LIBRARY SELECT\u00a0*\u00a0FROM\u00a0lines
sql LIBRARY SELECT\u00a0*\u00a0FROM\u00a0failures
export clips LIBRARY OUT
export csv LIBRARY OUT.csv
relocate LIBRARY /old /new
remove added LIBRARY captions nobody
remove videos LIBRARY nobody
add captions LIBRARY --model x/y --base-url http://127.0.0.1:9/v1 --dry-run
ingest --library LIBRARY --retry-failed
use-space LIBRARY nowhere
maintain LIBRARY
maintain LIBRARY --repair
remove videos LIBRARY film --yes
"""


@pytest.mark.slow
def test_no_command_prints_codes_that_a_library_holds(kinodex: Kinodex, root: Path, tmp_path: Path) -> None:
    with tarfile.open(root / "tests" / "data" / "libraries" / "format-1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    library = Library.open(str(tmp_path / "library"))
    with library.lease("ingest", f"owner{EVIL}"):
        pass
    assert poison(library.uri) > 40
    places = {"LIBRARY": library.uri, "OUT": str(tmp_path / "out"), "OUT.csv": str(tmp_path / "out.csv")}
    for line in COMMANDS.strip().splitlines():
        words = [places.get(word, word.replace("\u00a0", " ")) for word in line.split()]
        ran = kinodex(*words)
        assert not STEERS.search(ran.out + ran.err), (line, ran)
        assert ran.code != 1, (line, ran)
        if "--json" in words:
            json.loads(ran.out)


def test_everything_that_prints_spells_codes_out(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL)
    tell(EVIL)
    tell_count("3 of 4\x1b[2J")
    print_json({"title": EVIL})
    with notes_on_stderr():
        logging.getLogger("kinodex.some").warning("got %s", EVIL)
    out, err = capsys.readouterr()
    assert not STEERS.search(out) and not STEERS.search(err.replace("\r3 of 4", ""))
    assert "\\x1b[31m" in out and "got \\x1b[31m" in err
    assert json.loads(out.partition("\n")[2])["title"] == EVIL
