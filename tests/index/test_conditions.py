"""A condition calls functions of a list, and is neither long nor deep: whoever may ask a server may write one."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from kinodex.index.conditions import FUNCTIONS, LONGEST, MOST_DEPTH, MOST_STEPS, TYPES, compiled
from kinodex.index.errors import QueryError
from kinodex.index.library import Library
from kinodex.index.store.quiet_lance import lance
from tests.support.command import bad, runner
from tests.support.libraries.random_library import made, write
from tests.support.servers.serve_server import serving

COLUMNS = {
    "title": pa.string(),
    "takes": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "tags": pa.list_(pa.string()),
    "night": pa.bool_(),
}
CALLS = {
    "lower": "lower(title) = 'a-b'",
    "upper": "upper(title) = 'A-B'",
    "left": "left(title, 1) = 'A'",
    "right": "right(title, 1) = 'b'",
    "split_part": "split_part(title, '-', 2) = 'b'",
    "strpos": "strpos(title, 'b') = 3",
    "starts_with": "starts_with(title, 'A')",
    "ends_with": "ends_with(title, 'b')",
    "contains": "contains(title, '-')",
    "concat": "concat(title, 'c') = 'A-bc'",
    "regexp_like": "regexp_like(title, '^a', 'i')",
    "regexp_match": "regexp_match(title, 'b') IS NOT NULL",
    "coalesce": "coalesce(title, 'x') = 'A-b'",
    "nullif": "nullif(title, 'A-b') IS NULL",
    "abs": "abs(takes) = 3",
    "round": "round(takes) = 3",
    "trunc": "trunc(3.5) = takes",
    "date_part": "date_part('year', at) = 2026",
    "date_trunc": "date_trunc('day', at) < at",
    "to_timestamp": "to_timestamp('2026-01-01') < at",
    "now": "now() > to_timestamp('2026-01-01')",
    "current_date": "current_date() > cast('2026-01-01' AS date)",
    "today": "today() > cast('2026-01-01' AS date)",
    "make_array": "array_has_any(tags, make_array('rain', 'fog'))",
    "array_has": "array_has(tags, 'rain')",
    "array_has_all": "array_has_all(tags, make_array('rain'))",
    "array_has_any": "array_has_any(tags, ['rain'])",
    "array_contains": "array_contains(tags, 'rain')",
    "array_length": "array_length(tags) = 1",
    "cardinality": "cardinality(tags) = 1",
}
LENGTHS = {name: f"{name}(title) = 3" for name in ("length", "char_length", "character_length")}
TRIMS = {name: f"{name}(title) = 'A-b'" for name in ("btrim", "ltrim", "rtrim")}
CASTS = {name: f"cast(takes AS {name}) IS NOT NULL" for name in TYPES - {"date", "timestamp", "decimal"}}
CASTS |= {name: f"cast(at AS {name}) IS NOT NULL" for name in ("date", "timestamp")}
CASTS["decimal"] = "cast(takes AS decimal(10, 2)) = 3"


def found(condition: str) -> int:
    """The number of rows, of one, that a condition holds for."""
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    row = {"title": "A-b", "takes": 3, "at": at, "tags": ["rain"], "night": True}
    table = lance.write_dataset(pa.Table.from_pylist([row], pa.schema(COLUMNS)), "memory://")
    return int(table.to_table(filter=compiled(condition, COLUMNS)).num_rows)


def test_every_function_and_type_of_the_list_is_one(tmp_path: Path) -> None:
    calls = CALLS | LENGTHS | TRIMS
    assert calls.keys() == FUNCTIONS
    assert CASTS.keys() == TYPES
    for condition in (*calls.values(), *CASTS.values()):
        assert found(condition) == 1, condition


REFUSED = [
    ("repeat('x', 900000000) = title", "repeat is no function of conditions, which are abs, array_contains"),
    ("lpad('x', 900000000) = title", "lpad is no function"),
    ("REPEAT ('x', 900000000) = title", "REPEAT is no function"),
    ("\"repeat\"('x', 900000000) = title", '"repeat" is no function'),
    ("`title`('x') = title", "`title` is no function"),
    ("replace(title, 'a', 'aaaa') = title", "replace is no function"),
    ("array_repeat(title, 900000000) IS NULL", "array_repeat is no function"),
    ("lower(rpad(title, 900000000)) = 'x'", "rpad is no function"),
    ("random() > 0.5", "random is no function"),
    ("cast(title AS bytea) IS NULL", "bytea is no type of conditions"),
    ("title::bytea IS NULL", "bytea is no type of conditions"),
    (f"title = '{'x' * LONGEST}'", "letters; give one of 10,000 at most"),
    (f"{'(' * (MOST_DEPTH + 1)}night{')' * (MOST_DEPTH + 1)}", "brackets are within each other"),
    (f"{'cast(' * 100}takes{' AS int)' * 100} = 1", "brackets are within each other"),
    (f"takes{' + 1' * (MOST_STEPS + 1)} > 0", "it has more than 100 signs of arithmetic"),
    (f"title{' || title' * (MOST_STEPS + 1)} = 'x'", "it has more than 100 signs of arithmetic"),
]


@pytest.mark.parametrize("condition, says", REFUSED, ids=[each[:24] for each, _ in REFUSED])
def test_what_makes_much_of_little_is_refused(condition: str, says: str) -> None:
    with pytest.raises(QueryError) as caught:
        compiled(condition, COLUMNS)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 2_000


LARGEST = [
    f"{'(' * MOST_DEPTH}night{')' * MOST_DEPTH}",
    f"{'cast(' * MOST_DEPTH}takes{' AS int)' * MOST_DEPTH} = 3",
    f"takes{' + 1' * MOST_STEPS} > 0",
    " OR ".join(["night"] * ((LONGEST + 4) // 9)),
    f"takes IN ({', '.join(['3'] * (LONGEST // 3 - 10))})",
]
IN_A_SMALL_THREAD = """
import sys, threading
from tests.index.test_conditions import LARGEST, found
threading.stack_size(512 * 1024)  # as macOS gives
for condition in LARGEST:
    thread = threading.Thread(target=lambda: print(found(condition), flush=True))
    thread.start()
    thread.join()
"""


@pytest.mark.slow
def test_the_largest_that_is_allowed_ends_no_process() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_SMALL_THREAD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "1", "1", "1", "1"]), done.stderr[-500:]


def test_every_reader_of_conditions_refuses_it(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(library, made("aaaa", 3, seed=1))
    library.additions.add_mapped({"aaaa": pa.table({"time_s": [0.0], "note": ["x"]})}, "notes")
    library.additions.complete("map", "notes", {"aaaa": 1}, {"function": "f", "source": "s"})
    for read in (
        library.where,
        library.metadata.matching,
        lambda condition: library.additions.mapped("notes", condition),
    ):
        with pytest.raises(QueryError, match="repeat is no function of conditions"):
            read("repeat('x', 900000000) IS NOT NULL")
    assert library.additions.mapped("notes", "note = 'x'").num_rows == 1
    with pytest.raises(QueryError, match="there is no column camra"):
        library.additions.mapped("notes", "camra = 'x'")
    kinodex = runner(monkeypatch, capsys)
    where = "repeat('x', 900000000) = title"
    bad(kinodex, "info", library.uri, "--where", where, code=2, says="repeat is no function of conditions")


@pytest.mark.slow
def test_a_server_refuses_it(library: Library, tmp_path: Path) -> None:
    write(library, made("aaaa", 3, seed=1))
    with serving([Path(library.uri)], tmp_path) as client:
        for condition in ("repeat('x', 900000000) = title", f"fps{' + 1' * 150} > 0"):
            refused = client.get(f"/data/libraries/0/videos?where={quote(condition)}")
            assert (refused.status, "got the condition" in refused.json["error"]) == (400, True)
        assert len(client.get("/data/libraries/0/videos?where=true").json["rows"]) == 1
