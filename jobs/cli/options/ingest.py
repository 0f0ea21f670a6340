"""The options of `kinodex ingest`. What is not given here is looked for elsewhere: see jobs/ingest/config.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

OWN = "Default: the library's own, else"

SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Video files, folders, globs, fsspec URIs, or manifests (.csv, .parquet, .jsonl)."),
]
LibraryOption = Annotated[str | None, typer.Option("--library", help="The library to make or to add to.")]
ManifestOption = Annotated[
    list[str] | None,
    typer.Option(help="A list of videos: CSV, Parquet or JSON lines with uri, and id, title, sidecars if wanted."),
]
SpaceOption = Annotated[
    str | None,
    typer.Option(
        help="Embedding space: MODEL/PRETRAINED of open_clip, hf-hub:ID, local-dir:PATH, ARCH/CHECKPOINT, or builtin "
        f"(knows only the sketch world). {OWN} ViT-B-32-SigLIP2-256/webli."
    ),
]
FpsOption = Annotated[float | None, typer.Option(help=f"Frames sampled a second. {OWN} 1.")]
JpegSideOption = Annotated[int | None, typer.Option(help=f"Longest side of stored frames in px. {OWN} 512.")]
DeviceOption = Annotated[str | None, typer.Option(help="Where the model runs: auto, cpu, cuda.")]
DecoderOption = Annotated[str | None, typer.Option(help="auto, pyav, decord, torchcodec or nvdec.")]
BatchOption = Annotated[int | None, typer.Option("--batch-size", help="Frames embedded at a time.")]
RayOption = Annotated[
    bool | None,
    typer.Option(
        "--ray/--local",
        help="On Ray: --ray [ADDRESS], such as auto, HOST:PORT or ray://HOST:PORT (none: RAY_ADDRESS, else a cluster "
        "of its own); or in this process.",
    ),
]
RayAddressOption = Annotated[str | None, typer.Option(help="The Ray cluster; implies --ray.")]
WorkersOption = Annotated[int | None, typer.Option(help="Processes that decode. Default: one a core.")]
EmbeddersOption = Annotated[int | None, typer.Option(help="Embed actors on Ray.")]
RetryFailedOption = Annotated[
    bool | None,
    typer.Option("--retry-failed", help="Try again what failed before; without SOURCES, only that."),
]
FailFastOption = Annotated[bool | None, typer.Option("--fail-fast", help="Stop at the first failure.")]
MaxFailuresOption = Annotated[int | None, typer.Option(help="Stop when more sources than this have failed.")]
CheckContentOption = Annotated[
    bool | None,
    typer.Option("--check-content", help="Read known sources again, though size and time of change are as before."),
]
MetricsOption = Annotated[
    int | None,
    typer.Option("--metrics-port", help="Serve metrics for Prometheus here while this runs. Default: not at all."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting that --print-config shows; may be repeated."),
]
ConfigOption = Annotated[Path | None, typer.Option(help="Settings as a TOML or YAML file.")]
PrintConfigOption = Annotated[
    bool, typer.Option("--print-config", help="Print all settings and where each comes from, as TOML; do nothing.")
]


def spread_ray(arguments: list[str]) -> list[str]:
    """`--ray ADDRESS` and `--ray=ADDRESS` as `--ray-address ADDRESS`; what looks like no address stays a source.

    Typer has no options whose value may be left out.
    """
    spread: list[str] = []
    for argument in arguments:
        if argument.startswith("--ray="):
            spread += ["--ray-address", argument.removeprefix("--ray=")]
        elif spread[-1:] == ["--ray"] and re.fullmatch(r"auto|local|ray://.+|[\w.\-]+:\d+", argument):
            spread[-1:] = ["--ray-address", argument]
        else:
            spread.append(argument)
    return spread
