"""Imports of open_clip and torchvision, without what they log and where their parts do not fit each other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kinodex.index.shared_switch import SharedSwitch


def _drop_open_clip_logs() -> Callable[[], None]:
    """Filter the root logger, and give it a handler: `logging.warning` would install one for the whole program."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def not_open_clip(record: logging.LogRecord) -> bool:
        return "open_clip" not in record.pathname

    def turn_off() -> None:
        root.removeFilter(not_open_clip)
        root.removeHandler(handler)

    root.addHandler(handler)
    root.addFilter(not_open_clip)
    return turn_off


_without_open_clip_logs = SharedSwitch(_drop_open_clip_logs)


@contextmanager
def silent_root_logger() -> Iterator[None]:
    """Drop what open_clip logs within this block: what matters of it becomes an error of ours."""
    with _without_open_clip_logs.held():
        yield


_torchvision_operators: list[Any] = []  # a torch.library.Library undoes its definitions when it is collected


def import_torchvision() -> None:
    """Import torchvision, also one that was built for CUDA (PyPI's) beside a torch that was not.

    Its compiled operators do not load then, and importing it fails with "operator torchvision::nms does not exist".
    Nothing here detects objects, so declaring its two operators without a body is enough.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        if hasattr(torch.ops.torchvision, "nms"):
            raise
        operators: Any = torch.library
        library = operators.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _torchvision_operators.append(library)


def import_open_clip() -> ModuleType:
    """Import open_clip, after `import_torchvision`."""
    import_torchvision()
    import open_clip

    module: ModuleType = open_clip
    return module
