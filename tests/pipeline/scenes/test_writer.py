"""Titles and summaries by local models: of words alone and of pictures, batches, prompts that are too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.pipeline.errors import ModelMissing, WrongModel
from kinodex.pipeline.scenes import PartLines, Writer, load_writer
from tests.pipeline.models.test_captioner import pictures
from tests.support.models import stage_models as stage_kit

MAKERS = {"llama": stage_kit.llama, "llava": stage_kit.llava}
PARTS = [PartLines(("a red kite", "two boats"), (), 30.0), PartLines(("a cat at night",), (), 4.0)]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: make(folder / name) for name, make in MAKERS.items()}


@pytest.fixture(scope="module", params=MAKERS)
def writer(request, models) -> Writer:
    return load_writer(str(models[request.param]), "cpu", max_new_tokens=8)


def test_a_batch_says_what_each_part_alone_says(writer):
    together = writer.write(PARTS)
    assert together == [writer.write([part])[0] for part in PARTS]
    for each in together:
        assert each is not None and each.text and set(each.text.split()) <= set(stage_kit.WORDS.split())
        assert not each.is_whole  # these models never end
    assert writer.write([]) == []


def test_words_that_end_are_whole(models):
    writer = load_writer(str(models["llama"]), "cpu", 8)
    [endless] = writer.write(PARTS[1:])
    assert endless is not None
    word = writer._tokenizer(endless.text)["input_ids"][2]
    for ends in (word, [5000, word]):  # its third word ends a reply from now on
        writer._settings.eos_token_id = ends
        [reply] = writer.write(PARTS[1:])
        assert reply is not None and reply.is_whole and len(reply.text.split()) <= 3


def test_pictures_are_for_models_that_read_them(models):
    shown = PartLines((), pictures(2, 1), 30.0)
    nothing = PartLines((), (), 30.0)
    llama, llava = (load_writer(str(models[name]), "cpu", 8) for name in MAKERS)
    assert not llama.sees and llava.sees
    nothing_seen, of_words = llama.write([shown, PARTS[0]])
    assert nothing_seen is None and of_words is not None and of_words.text
    seen, none = llava.write([shown, nothing])
    assert seen is not None and seen.text and none is None


def test_lines_that_do_not_fit_are_thinned(writer):
    many = PartLines(tuple(f"a red kite over the sea number {n}" for n in range(400)), (), 30.0)
    [thinned] = writer.write([many])
    assert thinned is not None and thinned.text
    assert len(writer._fitting(many, 200)) < len(writer._fitting(many, 2000))
    assert "number 0" in writer._fitting(many, 10)


def test_models_that_cannot_be_used(models, tmp_path):
    with pytest.raises(ModelMissing):
        load_writer(str(tmp_path / "nothing"), "cpu")
    with pytest.raises(WrongModel):
        load_writer(str(stage_kit.rt_detr(tmp_path / "detector")), "cpu")
