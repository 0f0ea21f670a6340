"""Models that cannot be loaded say why in one line; imports work beside a torchvision of another build."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kinodex.pipeline.errors import ModelMissing, ModelTooLarge, NoSuchDevice, WrongModel
from kinodex.pipeline.models.captioner import load_captioner
from kinodex.pipeline.models.hub import NOT_FOR_TASK, import_transformers, inference
from kinodex.pipeline.models.speech import load_recogniser
from tests.support.models import stage_models as stage_kit

MAKERS = {"llava": stage_kit.llava}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: make(folder / name) for name, make in MAKERS.items()}


def test_places_without_a_model(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelMissing, match=r"there is no folder; give a folder that holds config\.json or a hub id"):
        load_captioner(f"{tmp_path}/nothing", "cpu")
    with pytest.raises(ModelMissing, match=r"a folder without config\.json"):
        load_captioner(f"{tmp_path}/empty", "cpu")


def test_files_missing_from_a_folder(models, tmp_path):
    folder = shutil.copytree(models["llava"], tmp_path / "half")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelMissing, match=r"cannot get the model .*half: .*model\.safetensors") as error:
        load_captioner(str(folder), "cpu")
    assert "\n" not in str(error.value)


def test_a_model_without_its_tokenizer_is_refused(tmp_path):
    """transformers would make up one that knows no word: this one would hear nothing in any film."""
    folder = stage_kit.whisper(tmp_path / "wordless")
    for file in ("tokenizer.json", "vocab.json", "merges.txt"):
        (folder / file).unlink(missing_ok=True)
    with pytest.raises(ModelMissing, match="without the words of its tokenizer"):
        load_recogniser(str(folder), "cpu")


def test_weights_that_are_not_all_there(models, tmp_path):
    """transformers would leave the rest at random and only warn."""
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(models["llava"], tmp_path / "headless")
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "lm_head" not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WrongModel, match=r"lack 1 tensors \(lm_head.weight, \.\.\.\), which would stay at random"):
        load_captioner(str(folder), "cpu")


def test_damaged_weights(models, tmp_path):
    folder = shutil.copytree(models["llava"], tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises((WrongModel, ModelMissing), match="damaged") as error:
        load_captioner(str(folder), "cpu")
    assert "\n" not in str(error.value)


def test_models_for_another_task(tmp_path):
    folder = stage_kit.rt_detr(tmp_path / "detector")
    with pytest.raises(
        WrongModel, match=r"\(RTDetrForObjectDetection\): it is no model for AutoModelForImageTextToText"
    ):
        load_captioner(str(folder), "cpu")


def test_a_device_that_is_not_there(models):
    with pytest.raises(NoSuchDevice, match="got device 'cuda:9'"):
        load_captioner(str(models["llava"]), "cuda:9")


def test_memory_of_a_device_that_runs_out_is_one_line():
    import torch

    with (
        pytest.raises(ModelTooLarge, match=r"memory is full \(CUDA out of memory.*; lower --batch") as error,
        inference(),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB.\nGPU 0 has 8 GiB.")
    assert "\n" not in str(error.value)


def test_transformers_still_says_so_of_a_model_for_another_task(tmp_path):
    """`NOT_FOR_TASK` is a part of a message of the installed transformers, which has no error class for it."""
    transformers = import_transformers()
    folder = stage_kit.rt_detr(tmp_path / "detector")
    with pytest.raises(ValueError, match=NOT_FOR_TASK):
        transformers.AutoModelForImageTextToText.from_pretrained(folder)


HELPED = """
from {module} import {name}
{name}()
import torch, torchvision, torchvision.transforms
assert hasattr(torch.ops.torchvision, "nms")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"),
    [("kinodex.pipeline.models.hub", "import_transformers"), ("kinodex.index.spaces.space", "import_torchvision")],
)
def test_torchvision_is_imported_beside_a_torch_of_another_build(root, module, name):
    """Both rooms, which may not know each other, help in the same way."""
    pytest.importorskip("torch")
    if not find_spec("torchvision"):
        pytest.skip("no torchvision")
    script = HELPED.format(module=module, name=name)
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
