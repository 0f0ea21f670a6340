"""Exporting image towers of real open_clip models with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from kinodex.index.errors import ExportRefused
from kinodex.index.spaces.cpu import IMAGE_ONNX, PICTURES, ImageTower, check_pictures, export_image_tower
from kinodex.index.spaces.space import Space, load_space
from kinodex.index.spaces.towers import SpaceTowers, write_towers
from tests.support.models.tiny_models import TINY, write_model


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_model(tmp_path_factory.mktemp("model"), TINY)


@pytest.mark.slow
def test_an_exported_tower_gives_the_vectors_of_torch(name, tmp_path, capfd):
    space = load_space(name, device="cpu", towers="image")
    facts = export_image_tower(space, tmp_path)
    assert capfd.readouterr() == ("", "")
    assert (facts.samples, set(facts.files)) == (PICTURES, {IMAGE_ONNX})
    assert facts.least_cosine > 0.99999
    write_towers(tmp_path, SpaceTowers(space.fingerprint, image=facts))
    tower = ImageTower.open(tmp_path)
    rgbs = np.random.default_rng(5).integers(0, 256, (5, 90, 160, 3), dtype=np.uint8)
    batch = np.stack([tower.prepare(rgb) for rgb in rgbs])
    ours, theirs = tower.embed(batch).astype(np.float32), space.embed(batch).astype(np.float32)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert (facts.settings["weights"] == "float16") == (facts.bytes < 4 * numbers(space))


def numbers(space: Space) -> int:
    return sum(parameter.numel() for parameter in space.image_parts()[0].parameters())


def test_pictures_of_the_check_go_from_flat_to_fine(name):
    batches = check_pictures(load_space(name, towers="image"))
    assert [each.shape[1:] for each in batches] == [(3, 64, 64)] * len(batches)
    assert len({len(each) for each in batches}) == len(batches) > 2
    together = np.concatenate(batches)
    assert len(together) == PICTURES
    changes = np.abs(np.diff(together.astype(int), axis=3)).astype(bool).mean((1, 2, 3))
    assert changes.min() == 0 and changes.max() > 0.9


class Wayward(torch.nn.Module):
    """A tower that `torch.export` cannot follow: its way depends on the pixels."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean((2, 3)) if images.sum().item() > 0 else images.amax((2, 3))


class Altered(torch.nn.Module):
    """A tower of which the exporter makes another."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        means = images.mean((2, 3))
        return means.flip(1) if torch.compiler.is_exporting() else means


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tower", "why"),
    [
        (Wayward(), "torch cannot export the image tower of .*: GuardOnDataDependent"),
        (Altered(), "has a cosine of only"),
    ],
)
def test_a_tower_is_refused_with_its_reason(name, tmp_path: Path, tower, why, capfd):
    space = load_space(name, device="cpu", towers="image")
    space._model.visual = tower
    with pytest.raises(ExportRefused, match=why) as error:
        export_image_tower(space, tmp_path)
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_graphs_are_of_a_format_that_onnx_checks():
    from kinodex.index.spaces.towers import BUILTIN_TOWERS

    onnx.checker.check_model(onnx.load(BUILTIN_TOWERS / IMAGE_ONNX), full_check=True)
