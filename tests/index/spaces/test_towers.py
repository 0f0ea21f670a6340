"""The folder of exported towers: what is written is read, and damage is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces.towers import TOWER_JSON, cache_folder, check_content, check_sizes, read_towers
from tests.support.libraries.made_towers import made_towers
from tests.support.libraries.random_library import fingerprint


def test_towers_are_read_as_they_were_written(tmp_path):
    towers = read_towers(made_towers(tmp_path / "made", "text", image="no such layer"))
    assert towers is not None
    assert towers.space == fingerprint()
    assert towers.text is not None
    assert (towers.text.settings, towers.text.samples, towers.text.least_cosine) == ({"of": "text"}, 3, 0.99995)
    assert sorted(towers.files) == ["text.bin", "tokenizer.json"]
    assert towers.text.bytes == len(b"weightstext.bin") + len(b"weightstokenizer.json")
    assert (towers.image, towers.refusals) == (None, {"image": "no such layer"})
    assert towers.tower("text") is towers.text


def test_files_without_a_description_are_no_towers(tmp_path):
    folder = made_towers(tmp_path / "made", "text", "image")
    (folder / TOWER_JSON).unlink()
    assert read_towers(folder) is None
    assert read_towers(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda found: [], "is no description of towers"),
        (lambda found: found | {"version": 9}, "has format 9, and this kinodex reads 1: a later one wrote it"),
        (lambda found: found | {"space": {"name": "x"}}, "is no description of towers"),
        (lambda found: {"version": 1}, "is no description of towers"),
        (
            lambda found: found | {"text": found["text"] | {"files": {"../up": {"sha256": "0", "bytes": 1}}}},
            "names of files have no folders",
        ),
    ],
    ids=["a list", "a later format", "half a space", "nothing else", "a file elsewhere"],
)
def test_a_description_that_makes_no_sense(tmp_path, change, says):
    file = made_towers(tmp_path / "made", "text") / TOWER_JSON
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(TowersDamaged, match=says) as caught:
        read_towers(file.parent, "s3://films/towers")
    assert str(caught.value).startswith("s3://films/towers/tower.json ")


def test_a_description_that_is_cut_off_or_not_text(tmp_path):
    file = made_towers(tmp_path / "made", "text") / TOWER_JSON
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(TowersDamaged, match="is no description of towers"):
        read_towers(file.parent)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(TowersDamaged, match="cannot read"):
        read_towers(file.parent)


def test_sizes_and_hashes_are_held_against_the_description(tmp_path):
    folder = made_towers(tmp_path / "made", "text")
    towers = read_towers(folder)
    assert towers is not None
    check_sizes(folder, towers.files)
    check_content(folder, towers.files, "here")
    (folder / "text.bin").write_bytes(b"Weightstext.bin")
    check_sizes(folder, towers.files)
    with pytest.raises(TowersDamaged, match=r"^s3://films/text.bin is not what was written: it has 15 bytes, sha256 "):
        check_content(folder, towers.files, "s3://films")
    (folder / "text.bin").write_bytes(b"short")
    with pytest.raises(TowersDamaged, match=r"/text.bin has 5 bytes, and 15 were written$"):
        check_sizes(folder, towers.files)
    (folder / "text.bin").unlink()
    with pytest.raises(TowersDamaged, match=r"/text.bin is missing$"):
        check_sizes(folder, towers.files)


def test_the_cache_is_where_the_user_wants_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("abc") == tmp_path / "kinodex" / "towers" / "abc"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    assert cache_folder("abc") == Path.home() / ".cache" / "kinodex" / "towers" / "abc"
