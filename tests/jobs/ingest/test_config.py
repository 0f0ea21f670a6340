"""Settings come from flags, environment, file and library, in this order; what is wrong is one line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.jobs.ingest.config import IngestConfig, Resolved, as_toml, resolve
from tests.world.drawn_space import DRAWN


def layered(
    flags: dict[str, Any] | None = None,
    pairs: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    file: Path | None = None,
    held: dict[str, Any] | None = None,
) -> Resolved:
    return resolve(flags or {}, pairs or {}, environment or {}, file, held or {})


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_each_layer_outranks_the_next(tmp_path: Path) -> None:
    layers: dict[str, Any] = {
        "flags": {"fps": 5.0, "space": None},
        "pairs": {"fps": "4"},
        "environment": {"KINODEX_INGEST_FPS": "3", "KINODEX_INGEST_BUNDLE": "9", "PATH": "/bin", "KINODEX_CACHE": "x"},
        "file": written(tmp_path / "c.toml", "fps = 2\ncut_s = 300"),
        "held": {"fps": 1.5, "space": DRAWN},
    }
    everything = layered(**layers).config
    assert (everything.bundle, everything.cut_s, everything.space) == (9, 300, DRAWN)
    for name, fps in (("flags", 5), ("pairs", 4), ("environment", 3), ("file", 2), ("held", 1.5)):
        assert layered(**layers).config.fps == fps
        del layers[name]
    assert layered(**layers).config == IngestConfig()


def test_a_file_and_what_is_printed_can_be_given_back_and_say_where_from(tmp_path: Path) -> None:
    yaml = written(tmp_path / "c.yaml", f"fps: 2\nray: true\nspace: {DRAWN}\nworkers: null\n")
    toml = written(tmp_path / "c.toml", f'fps = 2\nray = true\nspace = "{DRAWN}"')
    assert layered(file=yaml).config == layered(file=toml).config == IngestConfig(fps=2, ray=True, space=DRAWN)
    assert layered(file=written(tmp_path / "empty.yml", "")).config == IngestConfig()
    first = layered({"fps": 2.5, "space": 'hf-hub:"odd"\\name'}, {"cut_s": "0"}, {"KINODEX_INGEST_RAY": "true"})
    printed = as_toml(first)
    assert layered(file=written(tmp_path / "again.toml", printed)).config == first.config
    lines = {line.split(" =")[0]: line for line in printed.splitlines()}
    for name, source in {"fps": "command line", "cut_s": "--set", "ray": "environment", "bundle": "default"}.items():
        assert f"# {source}" in lines[name]
    assert len(lines) == len(IngestConfig.model_fields)
    assert set(tomllib.loads(printed)) == {name for name, value in first.config if value is not None}


def test_every_setting_can_come_from_the_environment() -> None:
    config = IngestConfig(
        metadata=("a.csv", "s3://b/c.jsonl"),
        path_pattern="{a}/{_}",
        batch_size=4,
        ray_address="auto",
        workers=2,
        embedders=1,
        max_failures=0,
        metrics_port=9464,
    )
    told = {
        f"KINODEX_INGEST_{name.upper()}": ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in config
    }
    assert layered(environment=told).config == config
    assert layered(environment={"KINODEX_INGEST_FPS": ""}).config == IngestConfig()
    # An address means Ray, unless a higher layer says that it is local.
    assert layered({"ray_address": "auto"}).config.ray and layered(pairs={"ray_address": "auto"}).config.ray
    assert not layered({"ray": False}, environment={"KINODEX_INGEST_RAY_ADDRESS": "auto"}).config.ray


WRONG = (
    ({"pairs": {"fsp": "2"}}, ["--set: got fsp", "did you mean fps?", "--print-config"]),
    ({"environment": {"KINODEX_INGEST_WORKER": "2"}}, ["environment: got worker", "did you mean workers?"]),
    ({"environment": {"KINODEX_INGEST_FPS": "two"}}, ["environment: got fps=two", "valid number"]),
    ({"pairs": {"fps": "nan"}}, ["fps=nan", "finite"]),
    ({"flags": {"fps": -1.0}}, ["command line: got fps=-1.0", "greater than or equal to 0.001"]),
    ({"flags": {"decoder": "pyaw"}}, ["decoder=pyaw", "'torchcodec' or 'nvdec'", "did you mean pyav?"]),
    ({"flags": {"jpeg_quality": 101}}, ["jpeg_quality=101", "less than or equal to 100"]),
    ({"flags": {"workers": 0}}, ["workers=0", "greater than or equal to 1"]),
)


WRONG_FILES = (
    ("c.toml", "fps = ", "cannot read"),
    ("c.toml", "[ingest]\nfps = 2", "got ingest, which is no setting"),
    ("c.toml", 'fps = "2"', "got fps=2; input should be a valid number"),
    ("c.toml", "workers = true", "got workers=True; input should be a valid integer"),
    ("c.yaml", "fps: [", "cannot read"),
    ("c.yaml", "- fps", "holds a list"),
    ("c.ini", "fps = 2", "must end in .toml, .yaml or .yml"),
    ("none.toml", None, "cannot read"),
)


def refusal(**layers: Any) -> str:
    with pytest.raises(UsageError) as caught:
        layered(**layers)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_wrong_is_one_line_that_names_where(tmp_path: Path) -> None:
    for layers, says in WRONG:
        told = refusal(**layers)
        assert all(each in told for each in says), layers
    for name, text, problem in WRONG_FILES:
        path = tmp_path / name if text is None else written(tmp_path / name, text)
        told = refusal(file=path)
        assert problem in told and str(path) in told, text
