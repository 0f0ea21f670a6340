"""All that an ingest can be told, as one checked model, and where each value came from.

A value is looked for in this order: flags of the command line, environment (``KINODEX_INGEST_FPS=2``), the file of
``--config`` (TOML or YAML by its suffix), the library's own (what its rows depend on), defaults.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from index.embedding.space import DEFAULT_SPACE
from jobs.errors import UsageError
from pipeline.images.preprocess import ModelInput
from pipeline.sampling.settings import IngestSettings
from pipeline.sampling.types import SamplingSettings

PREFIX = "KINODEX_INGEST_"
SEE = "`kinodex ingest --print-config` shows all settings"

CPU_BATCH, GPU_BATCH = 16, 64
"""On a CPU larger batches are no quicker and sometimes slower (notes: 29 frames a second of 16, 18 of 64)."""

Device = Literal["auto", "cpu", "cuda"]
Decoder = Literal["auto", "pyav", "decord", "torchcodec", "nvdec"]


class IngestConfig(BaseModel):
    """Settings of one ingest. Making one reads no environment and no file: that is `resolve`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    space: str = Field(default=DEFAULT_SPACE, min_length=1, description="embedding space")
    fps: float = Field(default=1.0, ge=0.001, le=1000, description="frames sampled a second")
    jpeg_side_px: int = Field(default=512, ge=16, le=16384, description="longest side of stored frames")
    jpeg_quality: int = Field(default=85, ge=1, le=100, description="of stored frames")
    window_s: float = Field(default=10.0, ge=0.1, description="length of segments where there are no shots")
    batch_size: int | None = Field(
        default=None, ge=1, le=4096, description="frames embedded at a time; 16 on a CPU, 64 on a GPU"
    )
    device: Device = Field(default="auto", description="where the model runs")
    decoder: Decoder = Field(
        default="auto", description="what decodes; auto: what was measured to be quickest and is right"
    )
    ray: bool = Field(default=False, description="whether the work is done on Ray")
    ray_address: str | None = Field(
        default=None, min_length=1, description="Ray cluster; RAY_ADDRESS or one of its own if not set"
    )
    workers: int | None = Field(default=None, ge=1, description="processes that decode; one a core if not set")
    embedders: int | None = Field(default=None, ge=1, description="embed actors on Ray; one a GPU share if not set")
    gpus_per_embedder: float = Field(
        default=1.0, gt=0.0, le=64, description="GPUs of each embed actor, where there are any"
    )
    cpus_per_worker: float = Field(default=1.0, gt=0.0, le=1024, description="CPUs that Ray sets aside for each worker")
    cut_s: float = Field(
        default=300.0, ge=0.0, description="length of the parts that long videos are cut into; 0: never cut"
    )
    bundle: int = Field(default=8, ge=1, le=10_000, description="sources that a worker is given at a time")
    video_base_s: float = Field(default=120.0, gt=0.0, description="a video may take so long, and")
    video_rate: float = Field(default=2.0, ge=0.0, description="so many seconds more for each second of its length")
    silence_s: float = Field(default=120.0, gt=0.0, description="a decoder that says nothing for so long has hung")
    video_memory_mb: int = Field(default=1500, ge=100, description="memory that decoding one video may take")
    retry_failed: bool = Field(default=False, description="whether sources that failed before are tried again")
    fail_fast: bool = Field(default=False, description="whether the first failure ends the run")
    max_failures: int | None = Field(default=None, ge=0, description="more failures than this end the run")
    check_content: bool = Field(
        default=False, description="whether known sources are read again though they look unchanged"
    )
    metrics_port: int | None = Field(
        default=None, ge=1, le=65535, description="where this process tells Prometheus how it goes"
    )
    metrics_host: str = Field(
        default="127.0.0.1", min_length=1, description="from where it may be asked; 0.0.0.0: everywhere"
    )
    frames_a_commit: int = Field(default=2048, ge=1, description="frames that a worker gathers before it writes them")

    def settings(self) -> IngestSettings:
        """The part of it that rows depend on."""
        return IngestSettings(self.fps, self.jpeg_side_px, self.jpeg_quality, self.window_s)

    def reading(self, preprocess: str, on_gpu: bool) -> SamplingSettings:
        """What is made of each video, for a space of this preprocessing (see Fingerprint) on a GPU or a CPU."""
        return SamplingSettings(
            fps=self.fps,
            jpeg_side_px=self.jpeg_side_px,
            jpeg_quality=self.jpeg_quality,
            decoder=self.decoder,
            input=ModelInput.from_json(preprocess),
            cut_s=self.cut_s,
            batch=self.batch_size or (GPU_BATCH if on_gpu else CPU_BATCH),
        )


@dataclass(frozen=True, slots=True)
class Resolved:
    """A config and, for each field that is not at its default, where its value came from."""

    config: IngestConfig
    origins: Mapping[str, str]


def resolve(
    flags: Mapping[str, Any],
    pairs: Mapping[str, str],
    environment: Mapping[str, str],
    file: Path | None,
    held: Mapping[str, Any],
) -> Resolved:
    """Put the layers together, `pairs` being those of --set; a flag of None and an empty variable are not given.

    Raises:
        UsageError: a file that cannot be read, an unknown name, or a value of the wrong type or out of range.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    named = {name for name in environment if name.startswith(PREFIX) and environment[name]}
    told = {name.removeprefix(PREFIX).lower(): environment[name] for name in named}
    layers = [
        ("the library", _checked("the library", held)),
        *([(str(file), _checked(str(file), read_file(file)))] if file is not None else []),
        ("environment", _checked("environment", told, as_text=True)),
        ("--set", _checked("--set", pairs, as_text=True)),
        ("command line", _checked("command line", given)),
    ]
    values = {name: value for _, layer in layers for name, value in layer.items()}
    origins = {name: origin for origin, layer in layers for name in layer}
    return Resolved(IngestConfig(**values), origins)


def read_file(path: Path) -> dict[str, Any]:
    """The settings in a TOML or YAML file; raises UsageError."""
    import yaml

    suffix = path.suffix.lower()
    if suffix not in (".toml", ".yaml", ".yml"):
        raise UsageError(f"got --config {path}; its name must end in .toml, .yaml or .yml")
    try:
        text = path.read_text(encoding="utf-8")
        read = tomllib.loads(text) if suffix == ".toml" else yaml.safe_load(text) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read --config {path}: {' '.join(str(error).split())}; {SEE}, as TOML") from error
    if not isinstance(read, dict):
        raise UsageError(f"{path} holds a {type(read).__name__}; give names and values, such as fps: 2")
    return {str(name): value for name, value in read.items()}


def as_toml(resolved: Resolved) -> str:
    """The settings as a TOML file with the origin of each; what is not set, which TOML cannot say, is a comment."""
    lines = []
    for name, field in IngestConfig.model_fields.items():
        value = getattr(resolved.config, name)
        # JSON and TOML write strings, numbers and truth values alike.
        line = f"# {name} is not set" if value is None else f"{name} = {json.dumps(value, ensure_ascii=False)}"
        lines.append(f"{line:<48} # {resolved.origins.get(name, 'default')}: {field.description}".rstrip())
    return "\n".join(lines)


def _checked(origin: str, values: Mapping[str, Any], as_text: bool = False) -> dict[str, Any]:
    """The values of one layer, of the right types; text stands for numbers in the environment and nowhere else."""
    unknown = [name for name in values if name not in IngestConfig.model_fields]
    if unknown:
        near = get_close_matches(unknown[0].lower(), IngestConfig.model_fields, n=1, cutoff=0.5)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"{origin}: got {unknown[0]}, which is no setting; {meant}{SEE}")
    try:
        model = (
            IngestConfig.model_validate_strings(values) if as_text else IngestConfig.model_validate(values, strict=True)
        )
    except ValidationError as error:
        raise UsageError(f"{origin}: {_explained(error)}; {SEE}") from error
    checked = model.model_dump(exclude_unset=True)
    if checked.get("ray_address"):
        checked.setdefault("ray", True)
    return checked


def _explained(error: ValidationError) -> str:
    """The first thing that is wrong with a layer: what was got, what is allowed, the nearest name."""
    first = error.errors()[0]
    name, got = str(first["loc"][0]), first["input"]
    choices = [each for each in get_args(IngestConfig.model_fields[name].annotation) if isinstance(each, str)]
    near = get_close_matches(str(got), choices, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"got {name}={got}; {first['msg'][0].lower()}{first['msg'][1:]}{meant}"
