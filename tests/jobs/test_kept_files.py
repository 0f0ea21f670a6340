"""Files kept outside of libraries: within a size and an age, the oldest go first, and `kinodex clean` says it."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest

from kinodex.agent.models.response_cache import DAY_S, ResponseCache
from kinodex.index.spaces.tower_cache import cache_folder
from kinodex.jobs.errors import UsageError
from kinodex.jobs.kept_files import KeepLimits, keep_limits, keep_replies, keep_traces
from tests.support.command import Kinodex, bad, json_of
from tests.support.servers.serve_server import serving

NONE = KeepLimits(1e9, 1e6)


def replies(path: Path, days: dict[int, int]) -> None:
    """Write replies of 10 KB, this many of each day, which is counted back from today; the oldest day comes first."""
    with ResponseCache(path) as cache:
        for at, (ago, count) in enumerate(sorted(days.items(), reverse=True)):
            for number in range(count):
                cache.put(f"{ago}-{number}", {"text": "x" * 10_000})
            with sqlite3.connect(path) as database:
                last = "SELECT COALESCE(MAX(rowid), 0) + 1 FROM replies"
                database.execute("UPDATE days SET day = ? WHERE day = ?", (today() - ago, today()))
                if at + 1 < len(days):
                    database.execute(f"INSERT INTO days VALUES (?, ({last}))", (today(),))
            database.close()


def today() -> int:
    return int(time.time() // DAY_S)


def keys(path: Path) -> set[str]:
    database = sqlite3.connect(path)
    found = {key for (key,) in database.execute("SELECT key FROM replies")}
    database.close()
    return found


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (NONE, {"40-0", "40-1", "9-0", "0-0"}),
        (KeepLimits(1e9, 20), {"9-0", "0-0"}),
        (KeepLimits(1e9, 5), {"0-0"}),
        (KeepLimits(1e9, 0), set()),
        (KeepLimits(0, 1e6), set()),
    ],
)
def test_replies_go_by_age_and_by_size_also_after_the_file_was_made_smaller(
    tmp_path: Path, limits: KeepLimits, kept: set[str]
) -> None:
    path = tmp_path / "replies.sqlite"
    replies(path, {40: 2, 9: 1, 0: 1})
    seen = keep_replies(path, limits, free=False)
    assert (seen.count, seen.oldest_days, keys(path)) == (4, 40, {"40-0", "40-1", "9-0", "0-0"})
    size = path.stat().st_size
    found = keep_replies(path, limits)
    assert (4 - found.beyond, keys(path)) == (len(kept), kept)
    assert path.stat().st_size < size or not found.beyond
    again = keep_replies(path, KeepLimits(1e9, 5), free=False)
    assert again.beyond == len(kept - {"0-0"}), "ages are known after the file was made smaller"


def test_the_oldest_replies_make_room_and_a_cache_of_an_earlier_version_begins_today(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    replies(path, {0: 40})
    found = keep_replies(path, KeepLimits(200_000, 1e6))
    assert found.beyond > 20 and "0-39" in keys(path) and "0-0" not in keys(path)
    older = tmp_path / "older.sqlite"
    with sqlite3.connect(older) as database:
        database.execute("CREATE TABLE replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
        database.execute("INSERT INTO replies VALUES ('a', '{}')")
    database.close()
    assert keep_replies(older, keep_limits(days=1)).beyond == 0 and keys(older) == {"a"}


def test_old_traces_go_when_a_server_starts_and_all_that_is_kept_is_shown_and_freed(
    kinodex: Kinodex, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINODEX_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("KINODEX_KEEP_DAYS", "30")
    traces = tmp_path / "state" / "traces"
    with serving([library], traces) as client:
        asked = [client.ask("Which bird?") for _ in range(2)]
        for key in asked:
            client.wait(key)
    for path in traces.glob(f"*/{asked[0]}.json*"):
        os.utime(path, (time.time() - 31 * DAY_S,) * 2)
    tower = cache_folder("0" * 12) / "text"
    tower.mkdir(parents=True)
    (tower / "graph.onnx").write_bytes(b"x" * 1000)
    replies(tmp_path / "cache" / "replies.sqlite", {0: 1})

    shown = {each["kind"]: each for each in json_of(kinodex, "clean", "--dry-run")["kept"]}
    assert {kind: (each["count"], each["beyond"]) for kind, each in shown.items()} == {
        "replies": (1, 0),
        "towers": (1, 0),
        "traces": (2, 1),
    }
    assert shown["traces"]["bytes"] > shown["traces"]["beyond_bytes"] > 0
    with serving([library], traces) as client:
        assert [row["key"] for row in client.get("/data/questions?library=0").json["rows"]] == [asked[1]]
    assert list(traces.glob(f"*/{asked[0]}*")) == [] and len(list(traces.glob(f"*/{asked[1]}.json*"))) == 2
    assert "each kind may take 0 GB, and stays 30 days" in kinodex("clean", "--gb", "0").out
    assert not tower.exists() and not keys(tmp_path / "cache" / "replies.sqlite")
    assert keep_traces(traces, NONE).count == 0
    monkeypatch.setenv("KINODEX_KEEP_GB", "plenty")
    bad(kinodex, "clean", code=2, says="got KINODEX_KEEP_GB=plenty; give a number from 0 on, as 2")
    with pytest.raises(UsageError, match="KINODEX_KEEP_GB"):
        keep_limits(days=3)
