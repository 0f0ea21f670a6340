"""Each place that loads a model of transformers runs none of its code, and takes weights of safetensors alone."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.house.source_tree import read_sources

SETTINGS_ALONE = ("Config", "Tokenizer", "Processor")
"""Ends of the classes that load no weights."""


def constants(call: ast.Call) -> dict[str, object]:
    return {each.arg: each.value.value for each in call.keywords if each.arg and isinstance(each.value, ast.Constant)}


def test_no_model_of_transformers_runs_code_or_unpickles_weights(root: Path) -> None:
    calls = [
        (source.path, node)
        for source in read_sources(root)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        if ast.unparse(node.func).endswith(".from_pretrained") or {"output_loading_info"} & constants(node).keys()
    ]
    assert len(calls) >= 9
    for path, call in calls:
        given, kind = constants(call), ast.unparse(call.func).split(".")[-2:][0]
        assert given.get("trust_remote_code") is False, f"{path}:{call.lineno}"
        if not kind.lower().endswith(tuple(each.lower() for each in SETTINGS_ALONE)) and kind != "config_of":
            assert given.get("use_safetensors") is True, f"{path}:{call.lineno}"


def test_nothing_unpickles_what_is_not_its_own(root: Path) -> None:
    """`pickle` is for what processes of one run say to each other; torch reads one file, of an installed package."""
    users = {"pickle": set[str](), "torch.load": set[str](), "joblib": set[str]()}
    for source in read_sources(root):
        for name, files in users.items():
            if f"{name}(" in source.text or f"import {name}" in source.text:
                files.add(str(source.path))
        assert "allow_pickle" not in source.text, source.path
    assert users == {
        "pickle": {"jobs/eval/processes.py", "pipeline/source_list.py"},
        "torch.load": {"pipeline/models/voices.py"},
        "joblib": set(),
    }
