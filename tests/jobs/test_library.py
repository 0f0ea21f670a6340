"""The bytes of a library's video, and the tokenizer of its space: fetched while they can be had."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import pytest

from kinodex.index.library import Library
from kinodex.index.repair import FileFacts
from kinodex.index.rows import SourceRow, VideoRow
from kinodex.index.spaces.export import export_to_cache
from kinodex.jobs.library import read_facts, source_of
from kinodex.pipeline.decoding.open import probe
from kinodex.pipeline.errors import SourceMissing
from kinodex.pipeline.fetch import identify
from kinodex.pipeline.source import Source
from tests.support.command import Kinodex
from tests.support.libraries.agent_library import make_library
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.models.tiny_models import TINY, write_model
from tests.support.servers.model_hub import COMMIT, hub_at, hub_of

BYTES, OTHERS = b"the bytes of a film", b"those of another"


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    return make_library(tmp_path_factory.mktemp("library"), {"film": ["a red kite"] * 4})


def video(path: Path, library: Library) -> VideoRow:
    """The row of a video whose source is this file, under the identity of `BYTES`."""
    path.write_bytes(BYTES)
    row = library.videos()[0]
    row_fields = {name: getattr(row, name) for name in row.__slots__}
    identity = identify(Source(str(path), "film"), path.parent).video_id
    return VideoRow(**(row_fields | {"video_id": identity, "uri": str(path)}))


def also_at(library: Library, path: Path, video_id: str) -> None:
    """Record that an ingest found the same video there."""
    library.ingest_log.add_sources([SourceRow(str(path), video_id, len(BYTES), "", datetime.now(UTC))])


def test_a_remote_source_is_in_a_folder_that_goes(library, tmp_path):
    row = video(tmp_path / "film.mp4", library)
    fields = {name: getattr(row, name) for name in row.__slots__}
    fsspec.filesystem("memory").pipe("/remote/film.mp4", BYTES)
    remote = VideoRow(**(fields | {"uri": "memory://remote/film.mp4"}))
    with source_of(library, remote) as found:
        fetched = Path(found.path)
        assert fetched.read_bytes() == BYTES and found.video_id == row.video_id
    assert not fetched.exists() and not fetched.parent.exists()


def test_another_source_of_the_same_bytes_stands_in_and_else_the_error_is_about_the_first(library, tmp_path):
    problems = {None: "film.mp4", OTHERS: "holds another video by now; put the old one back"}
    for now, problem in problems.items():
        row = video(tmp_path / "film.mp4", library)
        Path(row.uri).unlink()
        if now is not None:
            Path(row.uri).write_bytes(now)
        also_at(library, tmp_path / "other_film.mp4", "0" * 32)  # another video's source, which is there
        (tmp_path / "other_film.mp4").write_bytes(BYTES)
        copies = [tmp_path / name for name in ("a_changed.mp4", "b_gone.mp4", "c_copy.mp4")]
        for path, content in zip(copies, (OTHERS, None, BYTES), strict=True):
            also_at(library, path, row.video_id)
            if content is not None:
                path.write_bytes(content)
        with source_of(library, row) as found:
            assert (found.path, found.video_id) == (str(copies[2]), row.video_id)
        copies[2].unlink()
        with pytest.raises(SourceMissing, match=problem), source_of(library, row):
            raise AssertionError("nothing is to be found")


def test_facts_of_a_file_that_still_holds_the_video(tmp_path):
    film = tmp_path / "film#1.mp4"
    tiny_film(film, 3, 0)
    video_id = identify(Source(str(film), "film"), tmp_path).video_id
    known = probe(film)
    assert read_facts(str(film), video_id) == FileFacts(
        known.fps, known.width_px, known.height_px, known.codec, known.earliest_s
    )
    assert known.width_px > 0
    for uri, id_ in ((str(film), "other"), (f"{film}x", video_id), (f"file://{film}", video_id)):
        assert read_facts(uri, id_) is None


SPACE = "hf-hub:someone/tiny"


def go_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither this process nor its children ask the hub from now on."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_film(tmp_path_factory.mktemp("films") / "boat.mp4", 3, 0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models on the hub: one, and the tokenizer that it shares with others in a repository of its own."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    root = tmp_path_factory.mktemp("hub")
    text = TINY["text_cfg"] | {"hf_tokenizer_name": "someone/words"}
    write_model(root / "someone" / "tiny", TINY | {"text_cfg": text})
    words = {"<pad>": 0, "<eos>": 1, "red": 2, "boat": 3}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>")
    fast.save_pretrained(root / "someone" / "words")
    return root


@pytest.fixture(scope="module")
def hub(models: Path) -> Iterator[None]:
    """The hub is on loopback."""
    with hub_of(models) as address, hub_at(address):
        yield


@pytest.fixture
def cache(hub: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The hub's cache, empty, and that of exported towers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_after_an_ingest_and_after_vectors_are_added_words_are_searched_without_a_network(
    kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, film: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    other = library_of(tmp_path / "other", [film]).uri
    assert kinodex("add", "vectors", other, "--space", SPACE, "--no-text-tower").code == 0
    ran = kinodex("ingest", film, "--library", library, "--space", SPACE, "--no-text-tower")
    assert (ran.code, ran.err) == (0, "")
    go_offline(monkeypatch)
    ran = kinodex("search", library, "red boat", "-k", 1, "--in", "frames")
    assert ran.code == 0, ran.err
    assert "boat" in ran.out
    ran = kinodex("search", other, "red boat", "--space", SPACE, "--in", "frames")
    assert ran.code == 0, ran.err


@pytest.mark.slow
def test_what_is_missing_is_said_and_the_frames_are_embedded_all_the_same(
    kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, cache: Path, models: Path, film: Path, tmp_path: Path
) -> None:
    """A cache that holds the weights alone, on a machine that has no network by now."""
    kept = cache / "models--someone--tiny"
    shutil.copytree(models / "someone" / "tiny", kept / "snapshots" / COMMIT)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(COMMIT)
    go_offline(monkeypatch)
    list(export_to_cache(SPACE, ["image"]))  # what a child would import torch for
    note = f"note: the tokenizer of {SPACE} cannot be had: the hub does not answer and its cache here lacks it; "
    library = tmp_path / "library"
    ran = kinodex("ingest", film, "--library", library, "--space", SPACE)
    assert ran.code == 0
    assert [line.startswith(note) for line in ran.err.splitlines()] == [True]
    assert "1 indexed" in ran.out
    ran = kinodex("search", library, "a boat that is red", "--in", "frames")
    assert (ran.code, "the tokenizer of" in ran.error_line) == (2, True)
