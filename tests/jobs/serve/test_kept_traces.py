"""Traces kept in a folder: keys that are never given twice, facts that survive, names that are no paths."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kinodex.guards import NotGiven
from kinodex.jobs.errors import UsageError
from kinodex.web.kept import KeptTraces, QuestionFacts, library_digest, traces_folder


def facts(key: str, **more: Any) -> QuestionFacts:
    asked_at = datetime(2026, 11, 23, tzinfo=UTC)
    return QuestionFacts(key, "mine", "What?", (), "eea", {"a" * 32: "film"}, asked_at, **more)


def test_keys_are_given_once_by_all_servers_of_a_folder(tmp_path: Path) -> None:
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


def test_keys_go_on_where_the_count_is_lost(tmp_path: Path) -> None:
    kept = KeptTraces(tmp_path, ["one"])
    kept.save(0, facts("q41", state="done"))
    (tmp_path / "last_key").write_text("")
    assert kept.new_key() == "q42"


def test_facts_are_found_again_newest_first(tmp_path: Path) -> None:
    kept = KeptTraces(tmp_path, ["one", "two"])
    for key, library in (("q2", 0), ("q10", 0), ("q3", 1)):
        kept.save(library, facts(key, state="done", text=f"answer {key}"))
    again = KeptTraces(tmp_path, ["two", "one"])
    assert [each.key for each in again.listing(1)] == ["q10", "q2"]
    assert (again.find("q3").library, again.find("q3").facts.text) == (0, "answer q3")
    alone = KeptTraces(tmp_path, ["one"])
    with pytest.raises(NotGiven):
        alone.find("q3")  # of a library that this server does not have


@pytest.mark.parametrize("key", ["", "q", "q-1", "../q1", "q1/../q1", "q1.json", "Q1", "q1\n", "q1234567890", "q１"])
def test_what_is_no_key_is_no_path(tmp_path: Path, key: str) -> None:
    kept = KeptTraces(tmp_path, ["one"])
    kept.save(0, facts("q1", state="done"))
    with pytest.raises(NotGiven, match="not the key of a question"):
        kept.find(key)


def test_a_question_of_a_server_that_is_gone_has_failed(tmp_path: Path) -> None:
    kept = KeptTraces(tmp_path, ["one"])
    kept.save(0, facts("q1"))
    found = kept.find("q1")
    assert (found.state, found.answer) == ("failed", None) and "server ended" in (found.error or "")


def test_facts_that_cannot_be_read_name_their_file(tmp_path: Path) -> None:
    kept = KeptTraces(tmp_path, ["one"])
    (kept.folder(0) / "q7.json").write_text("{")
    with pytest.raises(UsageError, match=r"q7\.json.*take the file away"):
        kept.find("q7")


def test_a_folder_is_the_same_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert library_digest("mine") == library_digest(str(tmp_path / "mine")) == library_digest("./mine")
    signed = "s3://bucket/library?X-Amz-Signature=abc&X-Amz-Date=1"
    assert library_digest(signed) == library_digest("s3://bucket/library") != library_digest("mine")


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_STATE", "/state")
    assert traces_folder() == Path("/state/traces")
    monkeypatch.delenv("KINODEX_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert traces_folder() == Path("/xdg/kinodex/traces")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert traces_folder() == Path.home() / ".local/state/kinodex/traces"
