"""Settings of an ingest: one checked model, and the layers that its values come from.

A value is looked for in this order: flags of the command line, `--set`, environment (`KINODEX_INGEST_FPS=2`), the file
of `--config` (TOML or YAML by its suffix), the library's own (what its rows depend on), defaults.

A new setting is one field of `IngestConfig`. `--set`, the environment, files and `--print-config` know it by that; with
a `Flag` it is an option of `kinodex ingest` too (see kinodex/cli/from_models.py).

Each layer is checked by itself, so that an error names it; files are strict about types, text from elsewhere is not.
pydantic-settings checks all layers as one, reads over misspelt variables and takes text for numbers in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kinodex.index.flags import Flag
from kinodex.index.named_files import read_text, read_toml
from kinodex.index.spaces.fingerprint import NO_SPACE
from kinodex.index.spaces.model_names import DEFAULT_SPACE, PHOTO_SPACE
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.index.spaces.towers import TowerKind
    from kinodex.pipeline.sample import IngestSettings, SamplingSettings

PREFIX = "KINODEX_INGEST_"
SEE = "`kinodex ingest --print-config` shows all settings"
OWN = "Default: the library's own, else"

CPU_BATCH, GPU_BATCH = 16, 64
"""On a CPU larger batches are no quicker and sometimes slower (notes: 29 frames a second of 16, 18 of 64)."""

Device = Literal["auto", "cpu", "cuda", "mps"]
Decoder = Literal["auto", "pyav", "decord", "torchcodec", "nvdec"]


class IngestConfig(BaseModel):
    """Settings of one ingest. Making one reads no environment and no file: that is `resolve`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    space: Annotated[
        str,
        Flag(
            "Embedding space: MODEL/PRETRAINED of open_clip, hf-hub:ID, local-dir:PATH, ARCH/CHECKPOINT, towers:PATH "
            "(exported, as another library carries them), photo (small, comes with kinodex), or none (words without "
            f"pictures). {OWN} {DEFAULT_SPACE} where its model is in the hub's cache or the hub answers, else "
            f"{PHOTO_SPACE}."
        ),
    ] = Field(default="auto", min_length=1, description="embedding space; auto: the default one or photo")
    metadata: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda given: tuple(given.split(",") if isinstance(given, str) else given)),
        Flag("Table with columns about the videos (.csv, .tsv, .jsonl, .parquet): camera, ... May be repeated."),
    ] = Field(default=(), description="tables with columns about the videos, and the columns of manifests")
    path_pattern: Annotated[
        str | None, Flag("Columns from paths, such as '{camera}/{day}/{_}': the end of each path, without suffix.")
    ] = Field(default=None, min_length=1, description="columns from the ends of paths")
    fps: Annotated[float, Flag(f"Frames sampled a second. {OWN} 1.")] = Field(
        default=1.0, ge=0.001, le=1000, description="frames sampled a second"
    )
    jpeg_side_px: Annotated[int, Flag(f"Longest side of stored frames in px. {OWN} 512.", "--jpeg-side")] = Field(
        default=512, ge=16, le=16384, description="longest side of stored frames"
    )
    jpeg_quality: int = Field(default=85, ge=1, le=100, description="of stored frames")
    window_s: float = Field(default=10.0, ge=0.1, description="length of segments where there are no shots")
    deinterlace: Annotated[
        bool, Flag("Make up the lines of the field that is left out of interlaced film (estdif).", "--deinterlace")
    ] = Field(default=False, description="interlaced film: one field with its missing lines made up, not halved")
    cuts: Annotated[
        Literal["sampled", "exact"],
        Flag("sampled: shots begin with a sampled frame; exact: then `kinodex add shots`, which reads sources again."),
    ] = Field(default="sampled", description="where shots begin: with a sampled frame, or exactly at their cut")
    device: Annotated[Device, Flag("Where the model runs: auto, cpu, cuda, mps.")] = Field(
        default="auto", description="where the model runs"
    )
    decoder: Annotated[Decoder, Flag("auto, pyav, decord, torchcodec or nvdec.")] = Field(
        default="auto", description="decoder; auto: the one measured to be fastest among those that are exact"
    )
    batch_size: Annotated[int | None, Flag("Frames embedded at a time.")] = Field(
        default=None, ge=1, le=4096, description="frames embedded at a time; 16 on a CPU, 64 on a GPU"
    )
    ray: Annotated[
        bool,
        Flag(
            "On Ray: --ray [ADDRESS], such as auto, HOST:PORT or ray://HOST:PORT (none: RAY_ADDRESS, else a cluster "
            "of its own); or in this process.",
            "--ray/--local",
        ),
    ] = Field(default=False, description="do the work on Ray")
    ray_address: Annotated[str | None, Flag("The Ray cluster; implies --ray.")] = Field(
        default=None, min_length=1, description="Ray cluster; RAY_ADDRESS or one of its own if not set"
    )
    workers: Annotated[int | None, Flag("Processes that decode. Default: one a core.")] = Field(
        default=None, ge=1, description="processes that decode; one a core if not set"
    )
    embedders: Annotated[int | None, Flag("Embed actors on Ray.")] = Field(
        default=None, ge=1, description="embed actors on Ray; one a GPU share if not set"
    )
    gpus_per_embedder: float = Field(
        default=1.0, gt=0.0, le=64, description="GPUs of each embed actor, where there are any"
    )
    cpus_per_worker: float = Field(default=1.0, gt=0.0, le=1024, description="CPUs that Ray reserves for each worker")
    cut_s: float = Field(
        default=300.0, ge=0.0, description="length of the parts that long videos are cut into; 0: never cut"
    )
    bundle: int = Field(default=8, ge=1, le=10_000, description="sources that a worker is given at a time")
    video_base_s: float = Field(default=120.0, gt=0.0, description="time limit of a video, and")
    video_rate: float = Field(default=2.0, ge=0.0, description="this many seconds more for each second of its length")
    silence_s: float = Field(default=120.0, gt=0.0, description="a decoder without output for so long has hung")
    video_memory_mb: int = Field(default=1500, ge=100, description="memory that decoding one video may take")
    retry_failed: Annotated[bool, Flag("Try again what failed before; without SOURCES, only that.")] = Field(
        default=False, description="try again sources that failed before"
    )
    text_tower: Annotated[
        bool,
        Flag(
            "Keep the space's text tower with the library, so that it can be searched without torch, or leave it out.",
            "--text-tower/--no-text-tower",
        ),
    ] = Field(default=True, description="keep the space's text tower with the library")
    image_tower: Annotated[
        bool, Flag("Keep the space's image tower too, for searches by picture without torch.", "--with-image-tower")
    ] = Field(default=False, description="keep the space's image tower with the library")
    fail_fast: Annotated[bool, Flag("Stop at the first failure.")] = Field(
        default=False, description="the first failure ends the run"
    )
    max_failures: Annotated[int | None, Flag("Stop when more sources than this have failed.")] = Field(
        default=None, ge=0, description="more failures than this end the run"
    )
    check_content: Annotated[bool, Flag("Read known sources again, though size and time of change are as before.")] = (
        Field(default=False, description="read known sources again though they look unchanged")
    )
    allow_playlists: Annotated[
        bool, Flag("Read playlists (.m3u8, ffconcat) that name files in their own folder or below, too.")
    ] = Field(default=False, description="read playlists of files in their own folder or below")
    source_timeout_s: Annotated[
        float,
        Flag(
            "Seconds of silence after which a web server is given up, in each of four tries. Default: 30.",
            "--source-timeout",
        ),
    ] = Field(default=30.0, gt=0.0, description="a web server that sends nothing for so long is given up")
    metrics_port: Annotated[
        int | None, Flag("Serve metrics for Prometheus here while this runs. Default: not at all.")
    ] = Field(default=None, ge=1, le=65535, description="port where this process serves metrics to Prometheus")
    metrics_host: str = Field(
        default="127.0.0.1", min_length=1, description="address that it listens on; 0.0.0.0: all addresses"
    )
    frames_a_commit: int = Field(default=2048, ge=1, description="frames that a worker gathers before it writes them")

    @property
    def towers(self) -> tuple[TowerKind, ...]:
        """Towers of the space that the library is to carry."""
        if self.space == NO_SPACE.name:
            return ()
        kinds: dict[TowerKind, bool] = {"text": self.text_tower, "image": self.image_tower}
        return tuple(kind for kind, is_kept in kinds.items() if is_kept)

    def settings(self) -> IngestSettings:
        """Return the settings that rows depend on."""
        from kinodex.pipeline.sample import IngestSettings

        return IngestSettings(self.fps, self.jpeg_side_px, self.jpeg_quality, self.window_s)

    def sampling(self, preprocess: str, on_gpu: bool) -> SamplingSettings:
        """Sampling of each video, for a space of this preprocessing (see Fingerprint) on a GPU or a CPU."""
        from kinodex.pipeline.images import ModelInput
        from kinodex.pipeline.sample import SamplingSettings

        return SamplingSettings(
            fps=self.fps,
            jpeg_side_px=self.jpeg_side_px,
            jpeg_quality=self.jpeg_quality,
            decoder=self.decoder,
            input=ModelInput.from_json(preprocess),
            cut_s=self.cut_s,
            batch=self.batch_size or (GPU_BATCH if on_gpu else CPU_BATCH),
            deinterlace=self.deinterlace,
        )


def held_settings(uri: str | None) -> dict[str, Any]:
    """Return the settings of the library at `uri`, used where nothing else is given; {} without a library."""
    from kinodex.index.library import Library

    if uri is None or not Library.exists(uri):
        return {}
    library = Library.open(uri)
    return dict(library.settings) | {"space": library.space_name}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A config and, for each field that was set, the layer that its value came from."""

    config: IngestConfig
    origins: Mapping[str, str]


def resolve(
    flags: Mapping[str, Any],
    pairs: Mapping[str, str],
    environment: Mapping[str, str],
    file: Path | None,
    held: Mapping[str, Any],
    caller: str = "command line",
) -> Resolved:
    """Merge the layers: `pairs` are those of --set, `flags` those of the `caller`; None and "" do not count."""
    options = {name: value for name, value in flags.items() if value is not None}
    given = {name: value for name, value in environment.items() if name.startswith(PREFIX) and value}
    variables = {name.removeprefix(PREFIX).lower(): value for name, value in given.items()}
    layers = [
        ("the library", _checked("the library", held)),
        *([(str(file), _checked(str(file), read_file(file)))] if file is not None else []),
        ("environment", _checked("environment", variables, as_text=True)),
        ("--set", _checked("--set", pairs, as_text=True)),
        (caller, _checked(caller, options)),
    ]
    values = {name: value for _, layer in layers for name, value in layer.items()}
    origins = {name: origin for origin, layer in layers for name in layer}
    return Resolved(IngestConfig(**values), origins)


def read_file(path: Path) -> dict[str, Any]:
    """Read the settings in a TOML or YAML file; raises UsageError."""
    import yaml

    suffix = path.suffix.lower()
    if suffix not in (".toml", ".yaml", ".yml"):
        raise UsageError(f"got --config {path}; its name must end in .toml, .yaml or .yml")
    try:
        document = read_toml(path) if suffix == ".toml" else yaml.safe_load(read_text(path)) or {}
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read --config {path}: {' '.join(str(error).split())}; {SEE}, as TOML") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path} holds a {type(document).__name__}; give names and values, such as fps: 2")
    return {str(name): value for name, value in document.items()}


def as_toml(resolved: Resolved) -> str:
    """Return the settings as a TOML file with the origin of each.

    What is not set, which TOML cannot say, is a comment.
    """
    import tomli_w

    lines = []
    for name, field in IngestConfig.model_fields.items():
        value = getattr(resolved.config, name)
        line = f"# {name} is not set" if value is None else tomli_w.dumps({name: value}).rstrip()
        lines.append(f"{line:<48} # {resolved.origins.get(name, 'default')}: {field.description}".rstrip())
    return "\n".join(lines)


def _checked(origin: str, values: Mapping[str, Any], as_text: bool = False) -> dict[str, Any]:
    """Check the values of one layer; with `as_text` they are text that stands for numbers and truth values."""
    unknown = [name for name in values if name not in IngestConfig.model_fields]
    if unknown:
        near = get_close_matches(unknown[0].lower(), IngestConfig.model_fields, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"{origin}: got {unknown[0]}, which is no setting; {hint}{SEE}")
    try:
        validate = IngestConfig.model_validate_strings if as_text else partial(IngestConfig.model_validate, strict=True)
        model = validate(values)
    except ValidationError as error:
        raise UsageError(f"{origin}: {_explained(error)}; {SEE}") from error
    checked = model.model_dump(exclude_unset=True)
    if checked.get("ray_address"):
        checked.setdefault("ray", True)
    return checked


def _explained(error: ValidationError) -> str:
    """Explain the first error of a layer: the value, what is allowed, the nearest name."""
    first = error.errors()[0]
    name, got = str(first["loc"][0]), first["input"]
    choices = [each for each in get_args(IngestConfig.model_fields[name].annotation) if isinstance(each, str)]
    near = get_close_matches(str(got), choices, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"got {name}={got}; {first['msg'][0].lower()}{first['msg'][1:]}{hint}"
