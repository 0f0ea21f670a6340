"""The public names: each can be had and says what it is, all are documented, and none costs anything before its use."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kinodex

HEAVY = {"torch", "ray", "av", "lance", "pyarrow", "numpy", "transformers", "openai", "open_clip", "PIL", "pydantic"}


def test_every_public_name_says_what_it_is_and_has_one_home_which_type_checkers_know() -> None:
    assert all((getattr(kinodex, name).__doc__ or "").strip() for name in kinodex.__all__)
    homes = {module: set(names.split()) for module, names in kinodex._HOMES.items()}
    assert sorted(name for names in homes.values() for name in names) == kinodex.__all__ == dir(kinodex)
    declared: dict[str, set[str]] = {}
    source = Path(kinodex.__file__).read_text(encoding="utf-8")
    for module, name in re.findall(r"^    from (\S+) import \w+ as (\w+)$", source, re.MULTILINE):
        declared.setdefault(module, set()).add({"_evaluate": "eval"}.get(name, name))
    assert declared == homes


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'opne'; its names are .*open"):
        kinodex.opne  # noqa: B018


def test_the_page_documents_the_public_names_and_uses_no_others(root: Path) -> None:
    page = (root / "docs" / "python.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    documented = set(re.findall(r"\bkinodex\.([A-Za-z_]+)", page)) - {"variants", "stages"}
    assert documented == set(kinodex.__all__)
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", code, re.MULTILINE))
    assert not imported & {"pipeline", "index", "agent", "jobs", "tests"}


def test_importing_it_loads_nothing_heavy() -> None:
    script = "import kinodex, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "kinodex" in loaded
    assert not HEAVY & set(loaded)


@pytest.mark.slow
def test_searching_and_asking_load_neither_ray_nor_a_decoder(library: Path) -> None:
    script = (
        "import kinodex, sys; library = kinodex.open(sys.argv[1]); library.search('a red boat', k=1); "
        "library.ask('What colour is the boat?'); print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script, str(library)], capture_output=True, text=True, check=True)
    assert "lance" in done.stdout.split()
    assert not {"ray", "av", "decord", "torchcodec"} & set(done.stdout.split())
