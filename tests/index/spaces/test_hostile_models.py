"""Models that would run code: of a folder that a library brings, or whose configuration asks for more than data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kinodex.index.errors import BadCheckpoint, ModelNotNamed, WeightsMissing
from kinodex.index.library import Library
from kinodex.index.spaces.space import load_space
from tests.support.models.text_tokenizers import write_tokenizer
from tests.support.models.tiny_models import TINY, write_model

Change = Callable[[dict[str, Any]], None]


def changed_model(folder: Path, change: Change = lambda config: None) -> str:
    """A model of a folder whose configuration is another, with a tokenizer that brings code along."""
    name = write_model(folder, TINY)
    write_tokenizer(folder, "wordpiece")
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["text_cfg"]["hf_tokenizer_name"] = "somebody/words"
    change(config["model_cfg"])
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    facts = json.loads((folder / "tokenizer_config.json").read_text())
    facts |= {"auto_map": {"AutoTokenizer": ["words.Words", "words.Words"]}, "tokenizer_class": "Words"}
    (folder / "words.py").write_text(
        f"from pathlib import Path\nPath({str(folder / 'ran')!r}).touch()\n"
        "from transformers import PreTrainedTokenizerFast\nclass Words(PreTrainedTokenizerFast):\n    pass\n"
    )
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    return name


def set_at(*path: str, value: Any) -> Change:
    def change(config: dict[str, Any]) -> None:
        for key in path[:-1]:
            config = config.setdefault(key, {})
        config[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (set_at("text_cfg", "tokenizer_kwargs", value={"trust_remote_code": True}), "trust_remote_code"),
        (set_at("text_cfg", "tokenizer_kwargs", value={"bpe_path": "/etc/passwd"}), "bpe_path"),
        (set_at("text_cfg", "hf_model_name", value="somebody/model"), "hf_model_name"),
        (set_at("text_cfg", "hf_model_name", value="/tmp"), "hf_model_name"),
        (set_at("vision_cfg", "timm_model_name", value="hf-hub:somebody/model"), "timm_model_name"),
        (set_at("text_cfg", "code", value="model.py"), "code"),
        (set_at("text_cfg", value=[]), "text_cfg"),
    ],
)
def test_a_configuration_that_asks_for_more_than_data_is_refused(change: Change, key: str, tmp_path: Path) -> None:
    name = changed_model(tmp_path / "model", change)
    with pytest.raises(BadCheckpoint, match=key) as caught:
        load_space(name, device="cpu")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model" / "ran").exists()


def test_the_code_beside_a_tokenizer_is_not_run(tmp_path: Path) -> None:
    changed_model(tmp_path / "model")
    facts = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    facts["tokenizer_class"] = "PreTrainedTokenizerFast"
    (tmp_path / "model" / "tokenizer_config.json").write_text(json.dumps(facts))
    space = load_space(f"local-dir:{tmp_path}/model", device="cpu")
    assert space.embed_text(["a red boat"]).shape == (1, 48)
    assert not (tmp_path / "model" / "ran").exists()


def test_weights_and_tokenizers_of_other_kinds_are_not_read(tmp_path: Path) -> None:
    name = changed_model(tmp_path / "model")
    (tmp_path / "model" / "tokenizer.json").rename(tmp_path / "model" / "spiece.model")
    with pytest.raises(WeightsMissing, match=r"no tokenizer\.json"):
        load_space(name, device="cpu")
    weights = tmp_path / "model" / "open_clip_model.safetensors"
    pickled = weights.rename(weights.with_name("open_clip_pytorch_model.bin"))
    with pytest.raises(WeightsMissing, match="holds no weights"):
        load_space(name, device="cpu")
    with pytest.raises(BadCheckpoint, match="may hold code"):
        load_space(f"ViT-B-32/{pickled}", device="cpu")


@pytest.mark.parametrize("kind", ["local-dir:{folder}", "hf-hub:somebody/model", "ViT-B-32/{folder}/w.safetensors"])
def test_a_model_that_only_a_library_names_is_not_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINODEX_STATE", str(tmp_path / "state"))
    folder = tmp_path / "library" / "model"
    name = write_model(folder, TINY)
    fingerprint = load_space(name, device="cpu", towers="text").fingerprint
    monkeypatch.setenv("KINODEX_STATE", str(tmp_path / "of another user"))
    named = kind.format(folder=folder)
    library = library_in(tmp_path / "library", named, fingerprint)
    for towers in ("text", "image", "both"):
        with pytest.raises(ModelNotNamed, match="KINODEX_MODELS=") as caught:
            library.load_space(None, towers)
        assert named in str(caught.value) and "\n" not in str(caught.value)
    if named == name:
        assert library.load_space(named, "text").fingerprint.digest == fingerprint.digest, "the call names it"
        assert library.load_space(None, "text").fingerprint.digest == fingerprint.digest, "and so is it later"
        monkeypatch.setenv("KINODEX_STATE", str(tmp_path / "of a third"))
        monkeypatch.setenv("KINODEX_MODELS", f"other, {name}")
        assert library.load_space(None, "text").fingerprint.digest == fingerprint.digest, "the environment names it"


def library_in(folder: Path, name: str, fingerprint: Any) -> Library:
    from dataclasses import replace

    from tests.support.libraries.random_library import SETTINGS, empty_library

    return empty_library(folder / "rows", SETTINGS, replace(fingerprint, name=name))
