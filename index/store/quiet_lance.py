"""Lance, imported so that it writes nothing but errors to the terminal, unless the user's LANCE_LOG says otherwise.

It reads that variable once, when it is imported, and would else warn of things that only its callers can change, such
as the statistics that its own optimizing of an index asks for. And so that it does not load pandas, which PyArrow's
data sets do where it is installed, for nothing: 0.3 CPU seconds of the 1.0 of `kinodex info`, and 35 MB.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

import pyarrow


class _Pandas(SourceFileLoader):
    """Loads pandas for whoever imports it, and has PyArrow know of it then, which it believes is not there."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        pyarrow.lib._pandas_api.pd  # noqa: B018 - looks for it again


class _PandasLater:
    """Finds no pandas while `is_hidden`."""

    is_hidden = True

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "pandas":
            return None
        if self.is_hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Pandas(spec.loader.name, spec.loader.path)
        return spec


_LEVEL = os.environ.get("LANCE_LOG")
os.environ.setdefault("LANCE_LOG", "error")
if "pandas" not in sys.modules and "pyarrow.dataset" not in sys.modules:
    _later = _PandasLater()
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _later)
    try:
        import pyarrow.dataset
    finally:
        _later.is_hidden = False
try:
    import lance
    import lance.file
    from lance.dataset import ColumnOrdering
    from lance.lance import _Session as Session
    from lance.query import BooleanQuery, MatchQuery, MultiMatchQuery, Occur
finally:
    if _LEVEL is None:
        del os.environ["LANCE_LOG"]  # which is for this process alone

__all__ = ["BooleanQuery", "ColumnOrdering", "MatchQuery", "MultiMatchQuery", "Occur", "Session", "lance"]
