"""Loading embedding spaces for real, with small models of random weights that the tests write themselves."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image

from kinodex.index.errors import BadCheckpoint, DeviceMissing, UnknownModel, WeightsMissing
from kinodex.index.spaces.arithmetic import arithmetic_of, quick_tower
from kinodex.index.spaces.import_torch import import_open_clip
from kinodex.index.spaces.model_names import DEFAULT_REPO, DEFAULT_SPACE
from kinodex.index.spaces.space import Space, load_space
from tests.support.late import late
from tests.support.models.tiny_models import TINY, write_model
from tests.support.servers.model_hub import COMMIT, NOBODY_THERE, hub_at
from tests.world.drawn_space import DRAWN, DRAWN_BY_TORCH

open_clip, torch = late(import_open_clip), late("torch")
SIGLIP_LIKE = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}


def test_the_repository_of_the_default_space_is_the_one_that_open_clip_names():
    architecture, _, tag = DEFAULT_SPACE.partition("/")
    assert open_clip.get_pretrained_cfg(architecture, tag)["hf_hub"].strip("/") == DEFAULT_REPO
    assert open_clip.get_model_config(architecture)["text_cfg"]["hf_tokenizer_name"] == DEFAULT_REPO


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("tiny"), TINY)


@pytest.fixture(scope="module")
def space(tiny) -> Space:
    return load_space(tiny)


def pictures(count: int, height: int = 90, width: int = 160) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    scaled: np.ndarray = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    return scaled


def reference(name: str, images: list[Image.Image]) -> np.ndarray:
    """Image vectors as a plain open_clip script makes them."""
    model, _, preprocess = open_clip.create_model_and_transforms(name)
    with torch.inference_mode():
        vectors: np.ndarray = model.eval().encode_image(torch.stack([preprocess(i) for i in images])).numpy()
    return vectors


@pytest.mark.slow
def test_images_and_texts_as_open_clip_embeds_them_in_whatever_threads(space, tiny):
    rgbs = pictures(5)
    batch = np.stack([space.prepare(rgb) for rgb in rgbs])
    assert (batch.shape, batch.dtype.name) == ((5, 3, 64, 64), "uint8")
    batch.flags.writeable = False  # as others may hold it
    kept = batch.copy()
    ours = space.embed(batch)
    assert (ours.shape, ours.dtype.name, space.dim, space.embed(batch[:0]).shape) == ((5, 48), "float16", 48, (0, 48))
    assert cosines(ours, reference(tiny, [Image.fromarray(rgb) for rgb in rgbs])).min() > 0.99999
    with ThreadPoolExecutor(8) as pool:
        assert all((each == ours).all() for each in pool.map(space.embed, [batch] * 8))
    np.testing.assert_array_equal(space.embed(torch.from_numpy(kept)), ours)
    np.testing.assert_array_equal(batch, kept)
    texts = [f"text number {number}" for number in range(70)]
    model, tokenizer = open_clip.create_model(tiny).eval(), open_clip.get_tokenizer(tiny)
    with torch.inference_mode():
        expected = model.encode_text(tokenizer(texts)).numpy()
    vectors = space.embed_text(texts)
    assert cosines(vectors, expected).min() > 0.99999
    assert (vectors.dtype.name, space.embed_text([]).shape) == ("float32", (0, 48))
    for each in (ours, vectors):
        np.testing.assert_allclose(np.linalg.norm(each.astype(np.float32), axis=1), 1.0, atol=1e-3)
    text, image = load_space(tiny, towers="text"), load_space(tiny, towers="image")
    np.testing.assert_array_equal(image.embed(batch), ours)
    np.testing.assert_array_equal(text.embed_text(texts), vectors)
    assert text.fingerprint == image.fingerprint == space.fingerprint
    held = [sum(parameter.numel() for parameter in each._model.parameters()) for each in (text, image, space)]
    assert held[0] + held[1] < 1.01 * held[2], "a tower alone holds no other's weights"


def test_a_fingerprint_follows_the_weights_not_the_path(tmp_path, tiny):
    digest = load_space(tiny, towers="image").fingerprint.digest
    same = load_space(write_model(tmp_path / "same", TINY), towers="image").fingerprint
    assert same.digest == digest
    assert same.name == f"local-dir:{tmp_path}/same"
    assert (same.dim, same.normalised, len(same.weights_sha256)) == (48, True, 64)
    others = {
        load_space(write_model(tmp_path / "seed", TINY, seed=1), towers="image").fingerprint.digest,
        load_space(write_model(tmp_path / "mean", TINY, SIGLIP_LIKE), towers="image").fingerprint.digest,
        load_space(write_model(tmp_path / "gelu", TINY | {"quick_gelu": True}), towers="image").fingerprint.digest,
    }
    assert len(others | {digest}) == 4


@pytest.mark.slow
def test_without_a_network(tmp_path, tiny, monkeypatch, caplog):
    """A model in the hub's cache loads; a missing one is reported without retries, with two ways on."""
    write_model(tmp_path / "models--someone--tiny" / "snapshots" / COMMIT, TINY)
    refs = tmp_path / "models--someone--tiny" / "refs"
    refs.mkdir()
    (refs / "main").write_text(COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
    with hub_at(NOBODY_THERE):
        assert load_space("hf-hub:someone/tiny").fingerprint.digest == load_space(tiny).fingerprint.digest
        for name in (DEFAULT_SPACE, "hf-hub:someone/nothing"):
            with pytest.raises(WeightsMissing, match="HF_ENDPOINT") as caught:
                load_space(name)
            for part in (name, "local-dir:PATH", "HF_HOME"):
                assert part in str(caught.value)
    assert caplog.text == "", "the hub's client says a line before each of its long pauses"


def test_damaged_weights_and_those_of_another_model(tmp_path):
    name, weights = write_model(tmp_path / "model", TINY), tmp_path / "model" / "open_clip_model.safetensors"
    other = write_model(tmp_path / "other", TINY | {"embed_dim": 96})
    (tmp_path / "other" / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY}))
    for content in (b"", b"not a checkpoint at all", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "):
        weights.write_bytes(content)
        with pytest.raises(BadCheckpoint, match="cannot load local-dir:") as error:
            load_space(name)
        assert "\n" not in str(error.value)
    with pytest.raises(BadCheckpoint):
        load_space(other)


# Arithmetic is chosen by measuring, and keeps the vectors.


@pytest.mark.slow
def test_arithmetic_is_chosen_by_size_and_gives_the_same_vectors():
    def visual(**vision: Any) -> Any:
        torch.manual_seed(0)
        config = TINY | {"vision_cfg": vision} if vision else TINY
        return open_clip.model.CLIP(**json.loads(json.dumps(config))).eval().visual

    tower = visual(image_size=64, layers=4, width=768, patch_size=16, head_width=64)
    convolutions, small = visual(image_size=64, layers=[1, 1, 1, 1], width=8), visual()
    images = torch.randn(4, 3, 64, 64)
    with torch.inference_mode():
        chosen = quick_tower(tower, images)
        exact = tower(images).numpy()
        quick = chosen(images.to(next(chosen.parameters()).dtype)).float().numpy()
        before, plain = convolutions(images).numpy(), arithmetic_of(convolutions)
        last = quick_tower(convolutions, images)
        after = last(images).numpy()
    assert cosines(exact, quick).min() >= 0.9995
    assert quick_tower(small, images) is small
    assert cosines(before, after).min() > 0.999999
    assert plain == arithmetic_of(small) == f"float32, torch {torch.__version__}"
    assert arithmetic_of(last) == f"float32, channels_last, torch {torch.__version__}"
    assert arithmetic_of(small.to(torch.bfloat16)) == f"bfloat16, torch {torch.__version__}"


# One tower by a space's name, with torch and in a process that has none.

WITHOUT_TORCH = """
import sys
from tests.support.without_modules import hide
from tests.world.drawn_space import DRAWN
hide(sys.argv[1].split(","))
import numpy as np
from kinodex.index.spaces.load import load_image_tower, load_text_tower
from kinodex.index.errors import SpaceError
print(load_text_tower(DRAWN).embed_text(["a red boat"])[0].tolist())
for name, device in (("ViT-B-32/openai", "cpu"), (DRAWN, "cuda")):
    try:
        load_image_tower(name, device)
    except SpaceError as error:
        print(type(error).__name__, error)
tower = load_image_tower(DRAWN)
print(tower.arithmetic)
print(tower.embed(np.full((1, 3, 128, 128), 77, np.uint8))[0].tolist())
"""


def lines_without(packages: str) -> list[str]:
    command = [sys.executable, "-c", WITHOUT_TORCH, packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.slow
def test_without_torch_exported_towers_are_loaded():
    text, missing, on_cuda, made_in, image = lines_without("torch,torchvision,open_clip")
    assert made_in.startswith("float32, ONNX Runtime ")
    by_torch = load_space(DRAWN_BY_TORCH, device="cpu")
    np.testing.assert_allclose(json.loads(text), by_torch.embed_text(["a red boat"])[0], atol=1e-4)
    expected = by_torch.embed(np.full((1, 3, 128, 128), 77, np.uint8))[0]
    np.testing.assert_allclose(json.loads(image), expected.astype(np.float32), atol=1e-3)
    assert missing.startswith("TorchMissing cannot load ViT-B-32/openai: torch is not installed; `pip install")
    says = f"DeviceMissing got device 'cuda', and the space {DRAWN} is computed on the CPU; use auto or cpu"
    assert on_cuda == says


# Names are resolved, unknown ones refused with the nearest, and switches of the whole process are turned back.


@pytest.mark.parametrize(
    ("name", "nearest"), [("ViT-B-33/laion2b_s34b_b79k", "ViT-B-32/laion2b_s34b_b79k"), ("ViT-B-32/opena", "openai")]
)
def test_an_unknown_model_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownModel, match=rf"; the nearest names are .*{nearest}"):
        load_space(name, device="cpu")


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
    for device in ("cuda:77", "abacus"):
        with pytest.raises(DeviceMissing, match=device):
            load_space(write_model(tmp_path / device, TINY), device=device)
