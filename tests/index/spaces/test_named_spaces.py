"""The spaces that docs/spaces.md names as the best of today: each loads, embeds, and carries its text tower, shrunk.

Each has the classes of its own configuration in open_clip, few layers and random weights: no hub can be reached here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinodex.index.spaces.export_text import MIN_COSINE, export_text_tower
from kinodex.index.spaces.import_torch import import_open_clip
from kinodex.index.spaces.space import load_space
from tests.support.late import late
from tests.support.models.text_tokenizers import write_tokenizer

open_clip, torch = late(import_open_clip), late("torch")
NAMED = re.compile(r"^\| `([^`/]+)/([^`]+)` \| \d+ \|", re.MULTILINE)
SMALLEST = {
    "siglip": "vit_of_two_layers",
    "pe_core": "vit_pe_core_tiny_patch16_384",
    "fastvit": "fastvit_mci0",
    "mci": "vit_tiny_patch16_224",
    "clip": "vit_tiny_patch16_224",
}
"""timm's smallest model of the same class, by a part of its name."""


def named(root: Path) -> list[tuple[str, str]]:
    page = (root / "docs" / "spaces.md").read_text(encoding="utf-8")
    return NAMED.findall(page.partition("### The best of today")[2].partition("###")[0])


SPACES = named(Path(__file__).resolve().parents[3])


@lru_cache(maxsize=1)
def register_few_layers() -> None:
    """Have timm know a model of SigLIP's class and pooling with two layers: the smallest that it has is ViT-B."""
    import_open_clip()
    from timm.models import register_model
    from timm.models.vision_transformer import _create_vision_transformer

    def vit_of_two_layers(pretrained: bool = False, **options: Any) -> Any:
        few = {"img_size": 64, "patch_size": 16, "embed_dim": 32, "depth": 2, "num_heads": 2}
        pooled = {"class_token": False, "global_pool": "map"}
        return _create_vision_transformer("vit_base_patch16_siglip_224", False, **{**few, **pooled, **options})

    register_model(vit_of_two_layers)


def shrunk(name: str) -> dict[str, Any]:
    """The configuration of a model with few and narrow layers; its pooling, activations, masks and classes stay."""
    config: dict[str, Any] = json.loads(json.dumps(open_clip.get_model_config(name)))
    vision, text = config["vision_cfg"], config["text_cfg"]
    register_few_layers()
    vision["image_size"] = 64
    if timm := vision.get("timm_model_name"):
        small = next(small for part, small in SMALLEST.items() if part in timm)
        side = re.search(r"_(\d{3})$", small)
        vision |= {"timm_model_name": small, "image_size": int(side[1]) if side else 64}
        vision["timm_proj"] = vision["timm_proj"] and "linear"
    else:
        vision |= {"layers": 2, "width": 64, "head_width": 32, "patch_size": 16}
    text |= {"width": 32, "heads": 2, "layers": 2, "context_length": 16}
    if "hf_tokenizer_name" in text:
        family = "SigLIP2" if "SigLIP2" in name else "worldwide"
        text |= {"vocab_size": 450, "hf_tokenizer_name": f"a/{family}"} | ({"eos_id": 1} if "eos_id" in text else {})
    config["embed_dim"] = 32
    return config


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[int, int, float, float, bool]]:
    """Dimensions of a picture's and a text's vector, the length of one, the export's least cosine, and the sigmoid.

    Spaces that shrink to the same configuration are one model.
    """
    known: dict[str, tuple[int, int, float, float, bool]] = {}

    def look(name: str) -> tuple[int, int, float, float, bool]:
        config = json.dumps(shrunk(name), sort_keys=True)
        if config not in known:
            known[config] = embedded(json.loads(config), tmp_path_factory.mktemp("space"))
        return known[config]

    return look


def embedded(config: dict[str, Any], folder: Path) -> tuple[int, int, float, float, bool]:
    """Write a model of random weights as a space, load it, embed a picture and texts, and export its text tower."""
    from safetensors.torch import save_file

    if tokenizer := config["text_cfg"].get("hf_tokenizer_name"):
        write_tokenizer(folder, "byte_fallback" if "SigLIP2" in tokenizer else "unigram")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": {}}))
    settings = {key: value for key, value in config.items() if key != "custom_text"}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        kind = open_clip.model.CustomTextCLIP if config.get("custom_text") else open_clip.model.CLIP
        weights = kind(**json.loads(json.dumps(settings))).state_dict()
    save_file({key: value.contiguous() for key, value in weights.items()}, folder / "open_clip_model.safetensors")
    space = load_space(f"local-dir:{folder}", device="cpu")
    picture = np.random.default_rng(0).integers(0, 255, (80, 100, 3), dtype=np.uint8)
    image = space.embed(space.prepare(picture)[None]).astype(np.float32)
    texts = space.embed_text(["a red boat", "a street at night"])
    least = export_text_tower(space, folder).least_cosine
    return image.shape[1], texts.shape[1], float(np.linalg.norm(image)), least, space.sigmoid is not None


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tag"), SPACES, ids=[name for name, _ in SPACES])
def test_a_space_of_today_loads_embeds_and_is_carried(name: str, tag: str, seen: Any) -> None:
    assert tag in open_clip.list_pretrained_tags_by_model(name), "the page names a tag that open_clip has"
    image, text, length, least, has_sigmoid = seen(name)
    assert image == text == shrunk(name)["embed_dim"]
    assert length == pytest.approx(1, abs=1e-3) and least >= MIN_COSINE
    assert has_sigmoid == ("SigLIP" in name)
