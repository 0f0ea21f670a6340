"""Models that cannot be loaded say why in one line."""

from __future__ import annotations

import shutil

import pytest

from kinodex.pipeline.errors import ModelMissing, NoSuchDevice, WrongModel
from kinodex.pipeline.models.captioner import load_captioner
from kinodex.pipeline.models.hub import NOT_FOR_TASK, import_transformers
from kinodex.pipeline.models.speech.recogniser import load_recogniser


@pytest.mark.slow
def test_folders_from_which_no_model_loads_say_why_in_one_line(tiny_model, tmp_path):
    """transformers would make up a tokenizer that knows no word, and leave missing weights at random."""
    from safetensors.torch import load_file, save_file

    (tmp_path / "empty").mkdir()
    half, headless, damaged = (
        shutil.copytree(tiny_model("llava"), tmp_path / name) for name in ("half", "headless", "damaged")
    )
    (half / "model.safetensors").unlink()
    weights = load_file(headless / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "lm_head" not in name}
    save_file(kept, headless / "model.safetensors", metadata={"format": "pt"})
    (damaged / "model.safetensors").write_bytes(b"\0" * 100)
    wordless = shutil.copytree(tiny_model("whisper"), tmp_path / "wordless")
    for file in ("tokenizer.json", "vocab.json", "merges.txt"):
        (wordless / file).unlink(missing_ok=True)
    for load, folder, error, message in (
        (load_captioner, tmp_path / "nothing", ModelMissing,
         r"there is no folder; give a folder that holds config\.json or a hub id"),
        (load_captioner, tmp_path / "empty", ModelMissing, r"a folder without config\.json"),
        (load_captioner, half, ModelMissing, r"cannot get the model .*half: .*model\.safetensors"),
        (load_captioner, headless, WrongModel,
         r"lack 1 tensors \(lm_head.weight, \.\.\.\), which would stay at random"),
        (load_captioner, damaged, (WrongModel, ModelMissing), "damaged"),
        (load_captioner, tiny_model("rt_detr"), WrongModel,
         r"\(RTDetrForObjectDetection\): it is no model for AutoModelForImageTextToText"),
        (load_recogniser, wordless, ModelMissing, "without the words of its tokenizer"),
    ):  # fmt: skip
        with pytest.raises(error, match=message) as caught:
            load(str(folder), "cpu")
        assert "\n" not in str(caught.value)
    with pytest.raises(NoSuchDevice, match="got device 'cuda:9'"):
        load_captioner(str(tiny_model("llava")), "cuda:9")
    # `NOT_FOR_TASK` is a part of a message of the installed transformers, which has no error class for it.
    with pytest.raises(ValueError, match=NOT_FOR_TASK):
        import_transformers().AutoModelForImageTextToText.from_pretrained(tiny_model("rt_detr"))
