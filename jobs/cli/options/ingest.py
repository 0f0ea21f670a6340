"""Options of `kinodex ingest`: its own, and one for each setting that has a `Flag` in jobs/ingest/config.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import typer

SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(help="Video files, folders, globs, fsspec URIs, or manifests (.csv, .parquet, .jsonl)."),
]
LibraryOption = Annotated[str | None, typer.Option("--library", help="The library to make or to add to.")]
ManifestOption = Annotated[
    list[str] | None,
    typer.Option(help="A list of videos: CSV, Parquet or JSON lines with uri, and id, title, sidecars if wanted."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting that --print-config shows; may be repeated."),
]
ConfigOption = Annotated[Path | None, typer.Option(help="Settings as a TOML or YAML file.")]
PrintConfigOption = Annotated[
    bool, typer.Option("--print-config", help="Print all settings and where each comes from, as TOML; do nothing.")
]

WatchOption = Annotated[
    bool, typer.Option("--watch", help="Stay, and take what is new or changed in SOURCES; Ctrl-C ends it.")
]
EveryOption = Annotated[float, typer.Option(min=0.05, help="With --watch: seconds between two looks.")]


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


def with_setting_options(command: Callable[..., None]) -> Callable[..., None]:
    """Put an option for each setting that has a `Flag` in the place of a command's `**settings`.

    In `--help` they stand after the command's positional parameters and before its keyword-only ones.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    before = [each for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
    after = [each for each in own if each.kind is each.KEYWORD_ONLY]
    vars(command)["__signature__"] = inspect.Signature([*before, *_setting_options(), *after])
    return command


def _setting_options() -> list[inspect.Parameter]:
    """Parameters that Typer makes options of; None stands for an option that is not given."""
    from jobs.ingest.config import IngestConfig, command_options

    options = []
    for name, flag in command_options().items():
        kind: Any = IngestConfig.model_fields[name].annotation
        kind = str if get_origin(kind) is Literal else kind  # the model's own message names the nearest choice
        spelling = flag.name or f"--{name.replace('_', '-')}"
        annotation = Annotated[kind | None, typer.Option(spelling, help=flag.help)]
        options.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    return options
