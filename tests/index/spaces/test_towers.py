"""The folder of exported towers: what is written is read, and damage is said."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from kinodex.index.errors import TowersDamaged
from kinodex.index.spaces.towers import TOWER_JSON, SpaceCard, check_content, check_sizes, read_towers
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


def test_a_description_that_makes_no_sense(tmp_path):
    file = made_towers(tmp_path / "made", "text") / TOWER_JSON
    whole = file.read_text()
    found = json.loads(whole)
    card = asdict(SpaceCard("small", "50 searches", 0.4, 0.8))
    elsewhere = found["text"] | {"files": {"../up": {"sha256": "0", "bytes": 1}}}
    for content, says in (
        ("[]", "is no description of towers"),
        (json.dumps(found | {"version": 9}), "has format 9, and this kinodex reads 2"),
        (json.dumps(found | {"space": {"name": "x"}}), "is no description of towers"),
        (json.dumps({"version": 2}), "is no description of towers"),
        (json.dumps(found | {"version": 1e999}), "is no description of towers"),
        (json.dumps(found | {"text": found["text"] | {"least_cosine": 10**400}}), "is no description of towers"),
        (json.dumps(found | {"sigmoid": {"scale": "36", "bias": 0}}), "sigmoid|scale"),
        (json.dumps(found | {"sigmoid": [1]}), "is no description of towers"),
        (json.dumps(found | {"card": card | {"recall_at_1": "0.4"}}), "recall_at_1"),
        (json.dumps(found | {"card": card | {"more": 1}}), "it has a field more"),
        (json.dumps(found | {"text": elsewhere}), "names of files have no folders"),
        (whole[:50], "is no description of towers"),
        ("\udcff\udcfe", "cannot read"),
    ):
        file.write_bytes(content.encode(errors="surrogateescape"))
        with pytest.raises(TowersDamaged, match=says) as caught:
            read_towers(file.parent, "s3://films/towers")
        if content.startswith("["):
            assert str(caught.value).startswith("s3://films/towers/tower.json ")
    file.unlink()
    assert read_towers(file.parent) is read_towers(tmp_path / "nowhere") is None


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
