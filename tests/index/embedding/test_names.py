"""Names of spaces are resolved, and unknown ones refused with the nearest names."""

from __future__ import annotations

import json

import pytest

from index.embedding.names import DEFAULT_SPACE, model_name
from index.embedding.space import import_open_clip, load_space
from index.errors import BadCheckpoint, UnknownModel, WeightsMissing
from tests.support.tiny_models import TINY, write_model

open_clip = import_open_clip()
SIGLIP_LIKE = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("tiny"), TINY)


def test_the_name_of_a_folder_means_the_same_from_everywhere(tmp_path, monkeypatch):
    name = write_model(tmp_path / "model", TINY)
    monkeypatch.chdir(tmp_path)
    assert load_space("local-dir:model", towers="image").name == name
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model_name(open_clip, "local-dir:~/model").given == name
    with pytest.raises(WeightsMissing, match="~nobody-is-called-this"):
        model_name(open_clip, "local-dir:~nobody-is-called-this/model")
    (tmp_path / "weights.pt").touch()
    assert model_name(open_clip, "ViT-B-32/weights.pt").given == f"ViT-B-32/{tmp_path}/weights.pt"


def test_a_bare_checkpoint_is_prepared_as_its_architecture_usually_is(tmp_path):
    path = tmp_path / "weights.pt"
    path.write_bytes(b"")
    siglip = model_name(open_clip, f"ViT-B-32-SigLIP2-256/{path}").preprocess
    assert siglip == SIGLIP_LIKE | {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    assert model_name(open_clip, f"ViT-L-14/{path}").preprocess == {}  # its tags differ


def test_the_default_and_other_names_are_known_to_open_clip():
    for name in (DEFAULT_SPACE, "ViT-B-32/laion2b_s34b_b79k", "MobileCLIP2-S0/dfndr2b"):
        found = model_name(open_clip, name)
        assert "/".join((found.model, found.pretrained or "")) == name
        assert found.asks_hub
    assert model_name(open_clip, "ViT-B-32/openai").quick_gelu
    assert not model_name(open_clip, "ViT-B-32/laion2b_s34b_b79k").quick_gelu


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("ViT-B32/laion2b", "ViT-B-32/laion2b_e16"),
        ("siglip2", "ViT-B-16-SigLIP2/webli"),
        ("ViT-B-32-SigLIP2-256", "ViT-B-32-SigLIP2-256/webli"),
        ("ViT-B-32/laion2b", "ViT-B-32/laion2b_e16"),
        ("hf-hub:tiny", "hf-hub:ORGANISATION/MODEL"),
        ("", "nearest names"),
    ],
)
def test_an_unknown_name_is_told_its_nearest(name, near):
    with pytest.raises(UnknownModel) as error:
        load_space(name)
    assert near in str(error.value)
    assert "\n" not in str(error.value)


def test_local_places_without_a_model(tmp_path):
    with pytest.raises(WeightsMissing, match="no such folder"):
        load_space(f"local-dir:{tmp_path}/nothing")
    with pytest.raises(WeightsMissing, match=r"no file .*weights\.pt"):
        load_space(f"ViT-B-32/{tmp_path}/weights.pt")
    with pytest.raises(BadCheckpoint, match=r"no open_clip_config\.json"):
        load_space(f"local-dir:{tmp_path}")
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY}))
    with pytest.raises(WeightsMissing, match="holds no weights"):
        load_space(f"local-dir:{tmp_path}")
