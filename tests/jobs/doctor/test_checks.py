"""Keys, a library, and what is needed of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.doctor.machine import CheckResult, check_keys, check_library, failed_needs
from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.runs.check_results import by_name

SECRET = "sk-this-must-not-be-seen"


def test_a_key_of_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    found = by_name(check_keys("MY_KEY"))
    assert found["MY_KEY"].said == "set, for the endpoint"
    assert found["AWS_SECRET_ACCESS_KEY"].state == "missing"
    assert SECRET not in repr(found)


def test_a_library_that_is_not_well(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 5, seed=1))
    [found] = check_library(library.uri)
    assert (found.state, found.said.startswith(f"{library.uri}: 1 videos, 5 frames")) == ("ok", True)
    write(library, made("left", 3, seed=2), complete=False)
    [found] = check_library(library.uri)
    assert (found.state, found.todo) == ("broken", f"kinodex maintain {library.uri}")
    assert "video left has rows but is not complete" in found.said
    [found] = check_library(str(tmp_path / "nothing"))
    assert (found.state, "there is no library" in found.said) == ("broken", True)


def test_what_is_needed() -> None:
    pyav = CheckResult("decoders", "pyav", "ok", "read 13 frames")
    nvdec = CheckResult("decoders", "nvdec", "missing", "no [NVIDIA] GPU", "PyAV reads everything")
    assert failed_needs([pyav, nvdec], ["pyav"]) == []
    assert failed_needs([pyav, nvdec], ["nvdec", "pyav"]) == [nvdec]
    with pytest.raises(UsageError, match=r"got --need nvenc; this page has lines for pyav, nvdec"):
        failed_needs([pyav, nvdec], ["nvenc"])
