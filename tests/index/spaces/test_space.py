"""Loading embedding spaces for real, with small models of random weights that the tests write themselves."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from PIL import Image

from kinodex.index.errors import BadCheckpoint, DeviceMissing, UnknownModel, WeightsMissing
from kinodex.index.spaces.load import load_image_tower, load_text_tower
from kinodex.index.spaces.space import (
    DEFAULT_SPACE,
    Space,
    arithmetic_of,
    import_open_clip,
    load_space,
    model_name,
    quick_hub,
    quick_tower,
    silent_root_logger,
)
from kinodex.index.spaces.towers import BUILTIN
from kinodex.pipeline.images import ModelInput, rgb_scaler
from tests.support.models.tiny_models import TINY, write_model
from tests.support.servers.model_hub import hub_of

open_clip = import_open_clip()
SIGLIP_LIKE = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}
NOBODY_THERE = "http://127.0.0.1:9"
CLIPS = ("intel__car-detection.mp4", "simpl__tears_of_steel_vp9.webm", "moviepy__big_buck_bunny_0_30.webm")


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


def test_preparing_is_open_clips_own(tmp_path):
    for mode in ("shortest", "longest", "squash"):
        name = write_model(tmp_path / mode, TINY, SIGLIP_LIKE | {"resize_mode": mode})
        _, _, preprocess = open_clip.create_model_and_transforms(name)
        space = load_space(name, towers="image")
        for shape in ((90, 160), (160, 90), (30, 31), (64, 64)):
            rgb = pictures(1, *shape)[0]
            with torch.inference_mode():
                ours = space._normalised(space.prepare(rgb)[None])[0]
            assert torch.equal(ours, preprocess(Image.fromarray(rgb))), (mode, shape)


def test_the_built_in_space_gives_the_vectors_that_open_clip_does():
    space, rgbs = load_space("builtin", towers="image"), pictures(5)
    expected = reference(f"local-dir:{BUILTIN}", [Image.fromarray(rgb) for rgb in rgbs])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    ours = space.embed(np.stack([space.prepare(rgb) for rgb in rgbs]))
    np.testing.assert_allclose(ours.astype(np.float32), expected, atol=3e-4)  # float16 keeps no more


@pytest.mark.needs_media
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("model", ["random vit, clip's settings", "random vit, siglip's settings", "builtin"])
def test_downscaled_real_frames_keep_their_vectors(media, tmp_path, clip, model, capsys):
    """The pipeline scales a frame once, to 512 px; open_clip would have seen it in full size.

    Both conversions to RGB are FFmpeg's precise ones. Its quick one, rounding each step, shifts the colours of a dark
    fade (Big Buck Bunny, 0.8 s) so much that it has a cosine of only 0.983 to the precise one of the same size.
    """
    vision = {"image_size": 224, "layers": 6, "width": 384, "patch_size": 32, "head_width": 64}
    config = TINY | {"embed_dim": 256, "vision_cfg": vision}
    if model == "builtin":
        name, folder = "builtin", f"local-dir:{BUILTIN}"
    else:
        name = folder = write_model(tmp_path / "model", config, SIGLIP_LIKE if "siglip" in model else {})
    space = load_space(name, towers="image")
    decoded = decoded_frames(media / "clips" / clip)
    to_rgb = rgb_scaler(Fraction(1), 512, ModelInput.from_json(space.fingerprint.preprocess).side_px)
    full, scaled = [precise_rgb(frame) for frame in decoded], [to_rgb(frame) for frame in decoded]
    vectors = space.embed(np.stack([space.prepare(rgb) for rgb in scaled]))
    expected = reference(folder, [Image.fromarray(rgb) for rgb in full])
    least = cosines(vectors, expected).min()
    apart = cosines(expected[:-1], expected[1:]).min()
    with capsys.disabled():
        size = f"{full[0].shape[1]}x{full[0].shape[0]}"
        print(f"\n{clip} {size}, {model}: least cosine to open_clip {least:.5f} (of two frames {apart:.5f})")
    assert least >= 0.99


@cache
def decoded_frames(path: Path) -> list[Any]:
    """Every twentieth frame of the first second and a half, then every hundredth."""
    av = pytest.importorskip("av")
    with av.open(str(path)) as container:
        frames = enumerate(container.decode(video=0))
        return [frame for number, frame in frames if number % (20 if number < 60 else 100) == 0][:10]


def precise_rgb(frame: Any) -> Any:
    from av.video.reformatter import Interpolation, VideoReformatter

    precise = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
    return VideoReformatter().reformat(frame, format="rgb24", interpolation=precise).to_ndarray()


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


def test_an_architecture_with_a_local_checkpoint(tmp_path):
    from safetensors.torch import save_file

    config = tmp_path / "kinodex-test-tiny.json"
    config.write_text(json.dumps(TINY))
    open_clip.add_model_config(config)
    torch.manual_seed(0)
    weights = open_clip.model.CLIP(**json.loads(json.dumps(TINY))).state_dict()
    torch.save({"state_dict": weights}, tmp_path / "weights.pt")
    save_file(weights, tmp_path / "weights.safetensors")
    for suffix in ("pt", "safetensors"):
        space = load_space(f"kinodex-test-tiny/{tmp_path}/weights.{suffix}", towers="image")
        assert space.embed(space.prepare(pictures(1)[0])[None]).shape == (1, 48)


def test_a_tokenizer_beside_the_weights(tmp_path):
    """SigLIP models bring a Hugging Face tokenizer; a copy of such a repository needs no network."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<pad>": 0, "<eos>": 1, "red": 2, "boat": 3}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    text = TINY["text_cfg"] | {"hf_tokenizer_name": "someone/tiny", "tokenizer_kwargs": {"clean": "canonicalize"}}
    name = write_model(tmp_path / "model", TINY | {"text_cfg": text})
    with pytest.raises(WeightsMissing, match="the tokenizer of local-dir:"):
        load_space(name)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>")
    fast.save_pretrained(tmp_path / "model")
    vectors = load_space(name).embed_text(["Red boat!", "red boat", "boat red"])
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[1], vectors[2])


@pytest.mark.slow
def test_without_a_network(tmp_path, tiny):
    """A model in the hub's cache loads; a missing one is reported without retries, with two ways on."""
    snapshot = tmp_path / "models--someone--tiny" / "snapshots" / ("0" * 40)
    write_model(snapshot, TINY)
    refs = tmp_path / "models--someone--tiny" / "refs"
    refs.mkdir()
    (refs / "main").write_text("0" * 40)
    script = """
import sys
from kinodex.index.errors import WeightsMissing
from kinodex.index.spaces.space import load_space
print(load_space("hf-hub:someone/tiny").fingerprint.digest)
for name in sys.argv[1:]:
    try:
        load_space(name)
    except WeightsMissing as error:
        print(error)
"""
    missing = [DEFAULT_SPACE, "hf-hub:someone/nothing"]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *missing],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_CACHE": str(tmp_path), "HF_ENDPOINT": NOBODY_THERE},
        check=True,
    )
    digest, *lines = run.stdout.splitlines()
    assert run.stderr == ""  # the hub's client prints a line before each of its long pauses
    assert digest == load_space(tiny).fingerprint.digest
    assert len(lines) == len(missing)
    for name, message in zip(missing, lines, strict=True):
        assert name in message
        assert "local-dir:PATH" in message
        assert "HF_ENDPOINT" in message and "HF_HOME" in message and "builtin" not in message


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


def test_loading_says_nothing_and_leaves_logging_alone(tiny, caplog, capfd):
    handlers, filters = list(logging.getLogger().handlers), list(logging.getLogger().filters)
    with caplog.at_level(logging.DEBUG):
        load_space(tiny)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert (logging.getLogger().handlers, logging.getLogger().filters) == (handlers, filters)


# Arithmetic is chosen by measuring, and keeps the vectors.


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
hide(sys.argv[1].split(","))
import numpy as np
from kinodex.index.spaces.load import load_image_tower, load_text_tower
from kinodex.index.errors import SpaceError
print(load_text_tower("builtin").embed_text(["a red boat"])[0].tolist())
for name, device in (("ViT-B-32/openai", "cpu"), ("builtin", "cuda")):
    try:
        load_image_tower(name, device)
    except SpaceError as error:
        print(type(error).__name__, error)
tower = load_image_tower("builtin")
print(tower.arithmetic)
print(tower.embed(np.full((1, 3, 128, 128), 77, np.uint8))[0].tolist())
"""


def lines_without(packages: str) -> list[str]:
    command = [sys.executable, "-c", WITHOUT_TORCH, packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(("also", "arithmetic"), [("", "float32, ONNX Runtime "), (",onnxruntime", "float32, numpy ")])
def test_without_torch_the_built_in_space_is_loaded_as_exported(also, arithmetic):
    text, missing, on_cuda, made_in, image = lines_without(f"torch,torchvision,open_clip{also}")
    assert made_in.startswith(arithmetic)
    expected = load_text_tower("builtin").embed_text(["a red boat"])[0]
    np.testing.assert_allclose(json.loads(text), expected, atol=1e-4)
    expected = load_image_tower("builtin", "cpu").embed(np.full((1, 3, 128, 128), 77, np.uint8))[0]
    np.testing.assert_allclose(json.loads(image), expected.astype(np.float32), atol=1e-3)
    assert missing.startswith("TorchMissing cannot load ViT-B-32/openai: torch is not installed; `pip install")
    assert on_cuda == "DeviceMissing got device 'cuda', and torch is not installed; use cpu"


# Names are resolved, unknown ones refused with the nearest, and switches of the whole process are turned back.


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


def test_an_unknown_name_is_told_its_nearest():
    for name, near in {
        "ViT-B32/laion2b": "ViT-B-32/laion2b_e16",
        "siglip2": "ViT-B-16-SigLIP2/webli",
        "ViT-B-32-SigLIP2-256": "ViT-B-32-SigLIP2-256/webli",
        "ViT-B-32/laion2b": "ViT-B-32/laion2b_e16",
        "hf-hub:tiny": "hf-hub:ORGANISATION/MODEL",
        "": "nearest names",
    }.items():
        with pytest.raises(UnknownModel) as error:
            load_space(name)
        assert near in str(error.value) and "\n" not in str(error.value), name


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


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", NOBODY_THERE)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.mark.usefixtures("silent_hub")
def test_blocks_that_overlap_in_threads_too_leave_client_and_root_logger_as_they_were() -> None:
    root, inside = logging.getLogger(), threading.Barrier(4)
    before = list(root.handlers), list(root.filters)
    first, second = ExitStack(), ExitStack()
    assert not any(stack.enter_context(quick_hub()) for stack in (first, second))
    for stack in (first, second):
        stack.enter_context(silent_root_logger())
    first.close()
    assert constants.HF_HUB_OFFLINE and (root.handlers, root.filters) != before  # the second block still needs it
    second.close()
    assert not constants.HF_HUB_OFFLINE and (root.handlers, root.filters) == before

    def ask(_: int) -> bool:
        with quick_hub() as answers:
            inside.wait(60)
            return answers or not constants.HF_HUB_OFFLINE

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(ask, range(4)))
    with pytest.raises(KeyError), quick_hub():
        raise KeyError
    assert not constants.HF_HUB_OFFLINE


def test_a_user_who_is_offline_stays_so_and_a_hub_that_answers_changes_nothing(monkeypatch, tmp_path) -> None:
    for offline in (True, False):
        with hub_of(tmp_path) as address:
            monkeypatch.setattr(constants, "ENDPOINT", address)
            monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
            with quick_hub() as answers:
                assert answers is not offline
                assert constants.HF_HUB_OFFLINE is offline
        assert constants.HF_HUB_OFFLINE is offline
