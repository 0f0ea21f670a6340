"""Towers in an S3-compatible store, over real HTTP: kept, fetched once, checked, and fetched again if damaged."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kinodex.index.errors import StorageError, TowersDamaged
from kinodex.index.spaces.towers import TOWER_JSON, read_towers
from kinodex.index.store.carried_towers import find_tower, held_towers, keep_towers
from kinodex.index.store.database import open_files
from tests.support.libraries.made_towers import made_towers
from tests.support.libraries.random_library import fingerprint
from tests.support.servers.s3_server import environment, s3_server, send

pytestmark = pytest.mark.slow
DIGEST = fingerprint().digest


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


def overwrite(uri: str, name: str, file: Path, content: bytes) -> None:
    file.write_bytes(content)
    open_files(uri).upload_file(file, f"towers/{DIGEST}/{name}")


def test_a_tower_is_fetched_once(uri, tmp_path, monkeypatch):
    folder = found(uri)
    assert folder == tmp_path / "cache" / "kinodex" / "towers" / DIGEST / "text"
    assert (folder / "text.bin").read_bytes() == b"weightstext.bin"
    assert find_tower(uri, DIGEST, "image") is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # where nobody answers
    assert found(uri) == folder
    assert [each.name for each in folder.parent.iterdir()] == ["text"]


def test_other_spaces_and_libraries_have_none(uri):
    assert held_towers(uri, "0" * 12) is None
    assert find_tower("s3://films/elsewhere", DIGEST, "text") is None


def test_towers_come_beside_each_other_and_in_place_of_each_other(uri, tmp_path):
    keep_towers(uri, made_towers(tmp_path / "b", "image", content=b"new"))
    image = find_tower(uri, DIGEST, "image")
    assert image is not None
    assert sorted(each.name for each in image.iterdir()) == ["image.bin", TOWER_JSON]
    alone = read_towers(image)
    assert alone is not None
    assert alone.text is None
    both = held_towers(uri, DIGEST)
    assert both is not None
    assert sorted(both.files) == ["image.bin", "text.bin", "tokenizer.json"]


def test_what_is_damaged_here_is_fetched_again(uri):
    folder = found(uri)
    (folder / "text.bin").write_bytes(b"")
    assert (found(uri) / "text.bin").read_bytes() == b"weightstext.bin"
    (folder / TOWER_JSON).write_text("")
    assert (found(uri) / "text.bin").read_bytes() == b"weightstext.bin"
    assert [each.name for each in folder.parent.iterdir()] == ["text"]


def test_what_is_damaged_there_is_refused(uri, tmp_path):
    overwrite(uri, "text.bin", tmp_path / "other", b"Weightstext.bin")
    with pytest.raises(TowersDamaged) as caught:
        found(uri)
    said = str(caught.value)
    assert said.startswith(f"{uri}/towers/{DIGEST}/text.bin is not what was written: it has 15 bytes, sha256 ")
    assert said.endswith(f"; `kinodex add text-tower {uri} --again` writes towers again")
    assert not [*(tmp_path / "cache").rglob("text*")]
    open_files(uri).delete_file(f"towers/{DIGEST}/text.bin")
    with pytest.raises(StorageError, match=f"cannot use {uri}"):
        found(uri)
    overwrite(uri, TOWER_JSON, tmp_path / "other", b"{}")
    with pytest.raises(TowersDamaged, match="is no description of towers"):
        held_towers(uri, DIGEST)


def test_two_fetch_at_once(uri):
    with ThreadPoolExecutor(4) as pool:
        folders = {*pool.map(lambda _: found(uri), range(4))}
    (folder,) = folders
    assert [each.name for each in folder.parent.iterdir()] == ["text"]


def test_a_cache_that_cannot_be_written(uri, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(StorageError, match=r"^cannot keep a tower in .*; set XDG_CACHE_HOME to a folder"):
        found(uri)


def test_a_store_that_does_not_answer(uri, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StorageError, match=r"^cannot use s3://films/.*127\.0\.0\.1:9"):
        found(uri)
