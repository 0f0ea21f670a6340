"""A folder that an export writes: vacant, continued or refused; whole once it is finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.export.moments import NOTE, UNFINISHED, target_folder

SETTINGS = {"size": 3}


def text(path: Path) -> None:
    path.write_text("text")


def plan() -> dict[str, int]:
    return {"parts": 2}


def test_files_appear_at_the_end_alone(tmp_path: Path) -> None:
    with target_folder(tmp_path / "out", SETTINGS, plan) as target:
        assert (target.plan, target.is_continued) == ({"parts": 2}, False)
        target.write("data/one", text)
        target.write("card", text)
        assert target.has("data/one") and not target.has("data/two")
        assert [entry.name for entry in (tmp_path / "out").iterdir()] == [UNFINISHED]
        target.finish("data", "card")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "out",
        "out/card",
        "out/data",
        "out/data/one",
    ]


def test_an_unfinished_one_keeps_its_plan_and_its_files(tmp_path: Path) -> None:
    with target_folder(tmp_path, SETTINGS, plan) as target:
        target.write("data/one", text)
    with target_folder(tmp_path, SETTINGS, lambda: {"parts": 9}) as target:
        assert (target.plan, target.is_continued, target.has("data/one")) == ({"parts": 2}, True, True)
        target.finish("data")


def test_one_that_died_while_it_finished_is_finished(tmp_path: Path) -> None:
    with target_folder(tmp_path, SETTINGS, plan) as target:
        target.write("data/one", text)
        target.write("card", text)
        (target.work / "data").rename(tmp_path / "data")
    with target_folder(tmp_path, SETTINGS, plan) as target:
        assert target.has("data/one")
        target.finish("data", "card")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["card", "data"]


def test_a_file_that_could_not_be_written_is_not_there(tmp_path: Path) -> None:
    def half(path: Path) -> None:
        path.write_text("te")
        raise OSError("no room")

    with target_folder(tmp_path, SETTINGS, plan) as target:
        with pytest.raises(OSError, match="no room"):
            target.write("one", half)
        assert not target.has("one")


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with (
        target_folder(tmp_path / "a", SETTINGS, plan),
        pytest.raises(UsageError, match="which another export writes at this moment"),
        target_folder(tmp_path / "a", SETTINGS, plan),
    ):
        pass
    with (
        pytest.raises(UsageError, match="an unfinished export with another size"),
        target_folder(tmp_path / "a", {"size": 4}, plan),
    ):
        pass
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").write_text("")
    with pytest.raises(UsageError, match=r"which is not empty \(mine\)"), target_folder(tmp_path / "b", SETTINGS, plan):
        pass
    with pytest.raises(UsageError, match="which is a file"), target_folder(tmp_path / "b" / "mine", SETTINGS, plan):
        pass
    (tmp_path / "c" / UNFINISHED).mkdir(parents=True)  # it was killed before it wrote its note
    with target_folder(tmp_path / "c", SETTINGS, plan) as target:
        assert (target.work / NOTE).is_file() and not target.is_continued
