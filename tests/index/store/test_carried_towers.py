"""Towers kept with a library in a folder: in place, whole or not at all, and in nobody's way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kinodex.index.errors import StorageError, TowersDamaged
from kinodex.index.spaces.tower_cache import cached_place, is_whole
from kinodex.index.spaces.towers import SHIPPED, TOWER_JSON, read_towers
from kinodex.index.store.carried_towers import find_tower, held_towers, keep_towers, shipped_tower
from kinodex.index.store.places import open_files
from tests.support.libraries.made_towers import made_towers
from tests.support.libraries.random_library import fingerprint
from tests.support.servers.s3_server import environment, s3_server, send

DIGEST = fingerprint().digest


def test_a_library_carries_towers_beside_and_in_place_of_each_other(library, tmp_path):
    assert (held_towers(library.uri, DIGEST), find_tower(library.uri, DIGEST, "text")) == (None, None)
    refused = keep_towers(library.uri, made_towers(tmp_path / "refused", text="too odd"))
    assert held_towers(library.uri, DIGEST) == refused
    assert (refused.text, refused.refusals) == (None, {"text": "too odd"})
    assert find_tower(library.uri, DIGEST, "text") is None
    keep_towers(library.uri, made_towers(tmp_path / "a", "text", image="too odd"))
    folder = find_tower(library.uri, DIGEST, "text")
    assert folder is not None and str(folder) == f"{library.uri}/towers/{DIGEST}"
    assert (folder / "text.bin").read_bytes() == b"weightstext.bin"
    assert find_tower(library.uri, DIGEST, "image") is None
    assert find_tower(library.uri, fingerprint(weights="b" * 64).digest, "text") is None
    both = keep_towers(library.uri, made_towers(tmp_path / "b", "image"))
    assert (both.text is not None, both.image is not None, both.refusals) == (True, True, {})
    again = keep_towers(library.uri, made_towers(tmp_path / "c", "text", content=b"others"))
    assert (folder / "text.bin").read_bytes() == b"otherstext.bin"
    assert again.image == both.image
    refused = keep_towers(library.uri, made_towers(tmp_path / "d", text="it came to nothing"))
    assert (refused.text, refused.refusals) == (again.text, {})
    assert sorted(each.name for each in folder.iterdir()) == ["image.bin", "text.bin", "tokenizer.json", TOWER_JSON]
    with pytest.raises(ValueError, match=r"which holds no tower\.json"):
        keep_towers(library.uri, tmp_path)


def test_a_write_that_was_interrupted_leaves_no_tower(library, tmp_path):
    source = made_towers(tmp_path / "made", "text")
    keep_towers(library.uri, source)
    (source / "tokenizer.json").unlink()  # the copy of the second file fails
    with pytest.raises(StorageError, match=r"tokenizer\.json"):
        keep_towers(library.uri, source)
    assert held_towers(library.uri, DIGEST) is None
    assert find_tower(library.uri, DIGEST, "text") is None
    assert not [*(tmp_path / "library" / "towers" / DIGEST).glob(".*")]


def test_damage_is_said_with_its_remedy(library, tmp_path):
    keep_towers(library.uri, made_towers(tmp_path / "a", "text"))
    folder = tmp_path / "library" / "towers" / DIGEST
    (folder / "text.bin").write_bytes(b"cut")
    advice = f"; `kinodex add text-tower {library.uri} --again` writes towers again"
    with pytest.raises(TowersDamaged) as caught:
        find_tower(library.uri, DIGEST, "text")
    assert str(caught.value) == f"{folder}/text.bin has 3 bytes, and 15 were written{advice}"
    (folder / TOWER_JSON).write_text("{")
    with pytest.raises(TowersDamaged, match="is no description of towers"):
        held_towers(library.uri, DIGEST)
    keep_towers(library.uri, made_towers(tmp_path / "b", "text"))
    assert find_tower(library.uri, DIGEST, "text") == folder


def test_the_space_that_kinodex_brings_has_its_own():
    towers = read_towers(SHIPPED["photo"])
    assert towers is not None and towers.space.name == "photo"
    assert shipped_tower(towers.space.digest, "text") == SHIPPED["photo"]
    assert shipped_tower(DIGEST, "text") is None


# Towers in an S3-compatible store, over real HTTP: kept, fetched once, checked, and fetched again if damaged.


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        send(f"{address}/films", "PUT")
        yield address


@pytest.fixture
def uri(server, tmp_path, monkeypatch, request) -> str:
    """The place of a library that carries a text tower; the cache is empty."""
    for name, value in {**environment(server), "XDG_CACHE_HOME": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    place = f"s3://films/{request.node.name}"
    keep_towers(place, made_towers(tmp_path / "made", "text"))
    return place


def found(uri: str) -> Path:
    folder = find_tower(uri, DIGEST, "text")
    assert folder is not None
    return folder


@pytest.mark.slow
def test_a_tower_is_fetched_once(uri, tmp_path, monkeypatch):
    assert find_tower("s3://films/elsewhere", DIGEST, "text") is None
    with ThreadPoolExecutor(4) as pool:
        (folder,) = {*pool.map(lambda _: found(uri), range(4))}
    assert folder.parent == tmp_path / "cache" / "kinodex" / "towers" / "fetched"
    assert (folder / "text.bin").read_bytes() == b"weightstext.bin"
    assert (find_tower(uri, DIGEST, "image"), held_towers(uri, "0" * 12)) == (None, None)
    both = keep_towers(uri, made_towers(tmp_path / "b", "image", content=b"new"))
    assert held_towers(uri, DIGEST) == both and sorted(both.files) == ["image.bin", "text.bin", "tokenizer.json"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # where nobody answers
    assert found(uri) == folder
    assert [each for each in folder.parent.iterdir() if each.is_dir()] == [folder]


@pytest.mark.slow
def test_a_tower_serves_the_libraries_that_carry_its_bytes_and_no_other(uri, tmp_path):
    """The bytes alone count, and not the space that a library says its tower to be of."""
    other, same = f"{uri}-other", f"{uri}-same"
    keep_towers(other, made_towers(tmp_path / "other", "text", content=b"of somebody else"))
    keep_towers(same, made_towers(tmp_path / "same", "text"))
    assert (found(other) / "text.bin").read_bytes() == b"of somebody elsetext.bin"
    assert (found(uri) / "text.bin").read_bytes() == b"weightstext.bin"
    assert found(same) == found(uri) != found(other)
    assert not is_whole(cached_place(DIGEST, "text"), "text"), "what an ingest takes for exported here"


@pytest.mark.slow
def test_a_tower_of_another_space_is_no_tower_of_this_one(uri, library, tmp_path):
    claimed = fingerprint(weights="b" * 64).digest
    shutil.copytree(tmp_path / "made", Path(library.uri) / "towers" / claimed)
    with pytest.raises(TowersDamaged, match=DIGEST):
        find_tower(library.uri, claimed, "text")
    for name in ("tower.json", "text.bin", "tokenizer.json"):
        open_files(uri).upload_file(tmp_path / "made" / name, f"towers/{claimed}/{name}")
    with pytest.raises(TowersDamaged, match=DIGEST):
        find_tower(uri, claimed, "text")


@pytest.mark.slow
def test_what_is_damaged_here_is_fetched_again(uri):
    folder = found(uri)
    (folder / "text.bin").write_bytes(b"")
    assert (found(uri) / "text.bin").read_bytes() == b"weightstext.bin"
    (folder / TOWER_JSON).write_text("")
    assert (found(uri) / "text.bin").read_bytes() == b"weightstext.bin"
    assert [each for each in folder.parent.iterdir() if each.is_dir()] == [folder]
