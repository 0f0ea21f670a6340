"""The tokenizer that a search by words needs is fetched with the frames, while a hub can be reached."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Kinodex
from tests.support.models.stage_models import library_of, tiny_film
from tests.support.models.tiny_models import TINY, write_model
from tests.support.servers.model_hub import COMMIT, hub_at, hub_of

SPACE = "hf-hub:someone/tiny"
OFFLINE = "huggingface_hub.constants.HF_HUB_OFFLINE"


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


@pytest.fixture(scope="module", autouse=True)
def hub(models: Path) -> Iterator[None]:
    """The hub is on loopback."""
    with hub_of(models) as address, hub_at(address):
        yield


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The hub's cache, empty."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_after_an_ingest_words_are_searched_without_a_network(
    kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, film: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    ran = kinodex("ingest", film, "--library", library, "--space", SPACE, "--no-text-tower")
    assert (ran.code, ran.err) == (0, "")
    monkeypatch.setattr(OFFLINE, True)
    ran = kinodex("search", library, "red boat", "-k", 1, "--only", "frames")
    assert ran.code == 0, ran.err
    assert "boat" in ran.out


def test_likewise_after_vectors_are_added(
    kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, film: Path, tmp_path: Path
) -> None:
    library = library_of(tmp_path / "library", [film]).uri
    assert kinodex("add", "vectors", library, "--space", SPACE, "--no-text-tower").code == 0
    monkeypatch.setattr(OFFLINE, True)
    ran = kinodex("search", library, "red boat", "--space", SPACE, "--only", "frames")
    assert ran.code == 0, ran.err


def test_what_is_missing_is_said_and_the_frames_are_embedded_all_the_same(
    kinodex: Kinodex, monkeypatch: pytest.MonkeyPatch, cache: Path, models: Path, film: Path, tmp_path: Path
) -> None:
    """A cache that holds the weights alone, on a machine that has no network by now."""
    kept = cache / "models--someone--tiny"
    shutil.copytree(models / "someone" / "tiny", kept / "snapshots" / COMMIT)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(OFFLINE, True)
    note = f"note: the tokenizer of {SPACE} cannot be had: the hub does not answer and its cache here lacks it; "
    library = tmp_path / "library"
    ran = kinodex("ingest", film, "--library", library, "--space", SPACE)
    assert ran.code == 0
    assert [line.startswith(note) for line in ran.err.splitlines()] == [True]
    assert "1 indexed" in ran.out
    ran = kinodex("search", library, "red boat", "--only", "frames")
    assert (ran.code, "the tokenizer of" in ran.error_line) == (2, True)

    own = library_of(tmp_path / "own", [film]).uri
    ran = kinodex("add", "vectors", own, "--space", SPACE)
    assert ran.code == 0
    assert note in ran.err
