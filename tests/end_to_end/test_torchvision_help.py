"""Both rooms that load models help a torchvision that does not fit torch, and choose devices, in the same way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kinodex.index.errors import DeviceMissing
from kinodex.index.spaces import space as index_models
from kinodex.pipeline.errors import NoSuchDevice
from kinodex.pipeline.models import hub as pipeline_models

UNFIT = """
import sys, types, importlib.abc, importlib.machinery
import torch

class Unfit(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    "A torchvision that registers a kernel for its operator while it is imported, as the CUDA build does."
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "torchvision" else None
    def exec_module(self, module):
        torch.library.register_fake("torchvision::nms")(lambda dets, scores, iou_threshold: dets)

sys.meta_path.insert(0, Unfit())
"""


HELPERS = {
    "kinodex.index.spaces.import_torch": "import_torchvision",
    "kinodex.pipeline.models.hub": "_import_torchvision",
}
IN_FORKS = """
import importlib, os
for module, name in HELPERS.items():
    if os.fork() == 0:
        getattr(importlib.import_module(module), name)()
        print(module, hasattr(torch.ops.torchvision, "nms"), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
def test_operators_that_are_missing_are_declared() -> None:
    script = f"{UNFIT}\nHELPERS = {HELPERS}\n{IN_FORKS}"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == [f"{module} True" for module in HELPERS], ran.stderr


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_a_device_that_is_there(device: str) -> None:
    assert index_models.chosen_device(device) == pipeline_models.chosen_device(device)


@pytest.mark.parametrize("device", ["cuda:77", "abacus"])
def test_a_device_that_is_not_there(device: str) -> None:
    def message(choose: Callable[[str], Any], kind: type[Exception]) -> str:
        with pytest.raises(kind) as error:
            choose(device)
        return str(error.value)

    expected = f"got device {device!r}, which this machine does not have; use auto or cpu"
    assert message(index_models.chosen_device, DeviceMissing) == expected
    assert message(pipeline_models.chosen_device, NoSuchDevice) == expected
