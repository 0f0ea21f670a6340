"""Objects that can be reached from others, as the garbage collector sees them."""

from __future__ import annotations

import gc
from types import FrameType, FunctionType, ModuleType

STOPS = (type, ModuleType, FrameType)
OTHERS = {"asyncio", "_asyncio", "threading", "_thread", "lance", "pyarrow", "weakref", "_weakrefset", "_pytest"}
"""Their objects lead to the whole process."""


def reachable(*roots: object) -> list[object]:
    """Everything that can be reached from some objects: what they hold, are bound to and close over."""
    seen: dict[int, object] = {}
    left: list[object] = list(roots)
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, STOPS) or type(value).__module__.split(".")[0] in OTHERS:
            continue
        seen[id(value)] = value
        if isinstance(value, FunctionType):  # not the globals of its module
            left += [value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__]
        else:
            left += gc.get_referents(value)
    return list(seen.values())
