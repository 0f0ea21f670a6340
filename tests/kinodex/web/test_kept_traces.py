"""Traces and money kept in a folder: keys that are never given twice, facts that survive, names that are no paths."""

from __future__ import annotations

import fcntl
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.server.responses import NotGiven
from kinodex.web.daily_costs import spend, spent_today, until_tomorrow_s
from kinodex.web.kept_traces import KeptTraces, QuestionFacts, library_digest, traces_folder

EVENING = datetime(2026, 11, 23, 23, 59, 30, tzinfo=UTC)
MORNING = datetime(2026, 11, 24, 0, 0, 30, tzinfo=UTC)


def facts(key, **more):
    return QuestionFacts(key, "mine", "What?", (), "eea", {"a" * 32: "film"}, EVENING, **more)


def test_keys_are_given_once_by_all_servers_of_a_folder(tmp_path):
    keys: list[str] = []
    shelves = [KeptTraces(tmp_path, ["one"]), KeptTraces(tmp_path, ["one", "two"])]
    threads = [
        threading.Thread(target=lambda kept: keys.extend(kept.new_key() for _ in range(20)), args=(shelves[at % 2],))
        for at in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(keys, key=lambda key: int(key[1:])) == [f"q{number}" for number in range(1, 81)]
    with (tmp_path / "last_key").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: keys.append(shelves[0].new_key()))
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive(), "another server is between reading the last key and writing the next"
    waiting.join()
    assert keys[-1] == "q81"
    shelves[0].save(0, facts("q141", state="done"))
    (tmp_path / "last_key").write_text("")
    assert shelves[0].new_key() == "q142", "they go on where the count is lost"


def test_facts_are_found_again_newest_first_also_of_a_server_that_is_gone(tmp_path):
    kept = KeptTraces(tmp_path, ["one", "two"])
    for key, library in (("q2", 0), ("q10", 0), ("q3", 1)):
        kept.save(library, facts(key, state="done", text=f"answer {key}"))
    again = KeptTraces(tmp_path, ["two", "one"])
    assert [each.key for each in again.listing(1)] == ["q10", "q2"]
    assert (again.find("q3").number, again.find("q3").text) == (0, "answer q3")
    alone = KeptTraces(tmp_path, ["one"])
    for key in ("q3", "", "q", "q-1", "../q1", "q1/../q1", "q2.json", "Q2", "q2\n", "q1234567890", "q２"):
        with pytest.raises(NotGiven, match="not the key of a question"):
            alone.find(key)  # q3 is of a library that this server does not have
    kept.save(0, facts("q1"))
    found = kept.find("q1")
    assert (found.state, found.answer) == ("failed", None) and "server ended" in (found.error or "")
    (kept.folder(0) / "q7.json").write_text("{")
    with pytest.raises(UsageError, match=r"q7\.json.*take the file away"):
        kept.find("q7")


def test_a_folder_is_the_same_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert library_digest("mine") == library_digest(str(tmp_path / "mine")) == library_digest("./mine")
    signed = "s3://bucket/library?X-Amz-Signature=abc&X-Amz-Date=1"
    assert library_digest(signed) == library_digest("s3://bucket/library") != library_digest("mine")
    monkeypatch.setenv("KINODEX_STATE", "/state")
    assert traces_folder() == Path("/state/traces")
    monkeypatch.delenv("KINODEX_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert traces_folder() == Path("/xdg/kinodex/traces")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert traces_folder() == Path.home() / ".local/state/kinodex/traces"


def test_each_day_has_its_own_money_and_a_line_that_a_crash_cut_does_not_count(tmp_path):
    assert spent_today(tmp_path, EVENING) == 0
    for amount in (0.1, 0.2, 1e-7):
        spend(tmp_path, amount, EVENING)
    spend(tmp_path, 5.0, MORNING)
    assert spent_today(tmp_path, EVENING) == 0.1 + 0.2 + 1e-7
    assert (spent_today(tmp_path, MORNING), until_tomorrow_s(EVENING)) == (5.0, 30)
    for cut in (0, 1, 3, 4):
        folder = tmp_path / str(cut)
        spend(folder, 1.0, EVENING)
        (file,) = (folder / "spent").iterdir()
        file.write_text(file.read_text() + "0.00"[:cut])
        assert spent_today(folder, EVENING) == 1.0
        spend(folder, 0.25, EVENING)
        assert spent_today(folder, EVENING) == 1.25, cut
    file.write_text("0.00.25\n")
    with pytest.raises(UsageError, match=r"0\.00\.25"):
        spent_today(folder, EVENING)
