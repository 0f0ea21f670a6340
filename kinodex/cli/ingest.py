"""`kinodex ingest`: many sources into one library, here or on Ray."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kinodex.cli import options
from kinodex.cli.from_models import with_setting_options
from kinodex.cli.options import JsonOption, open_library
from kinodex.index.terminal_text import visible_lines
from kinodex.jobs.errors import OK, SOME_FAILED, UsageError
from kinodex.output import console, error_console, say

if TYPE_CHECKING:
    from kinodex.jobs.ingest.config import IngestConfig
    from kinodex.jobs.ingest.reports import Progress, Watch
    from kinodex.pipeline.source import Source

LEAST_ADDRESSES_BYTES = 2_500_000_000
"""With 2.0 GB torch cannot be mapped, with 1.5 GB Lance aborts; most of it is never resident."""


@with_setting_options
def ingest(
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="Video files, folders, globs, fsspec URIs, or manifests (.csv, .parquet, .jsonl)."),
    ] = None,
    library: Annotated[str | None, typer.Option("--library", help="The library to make or to add to.")] = None,
    manifest: Annotated[
        list[str] | None,
        options.rare(help="A list of videos: CSV, Parquet or JSON lines with uri, and id, title, sidecars if wanted."),
    ] = None,
    *,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting that --print-config shows; may be repeated."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings as a TOML or YAML file.")] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print all settings and where each comes from, as TOML; do nothing.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and take what is new or changed in SOURCES; Ctrl-C ends it.")
    ] = False,
    every: Annotated[float, options.rare(min=0.05, help="With --watch: seconds between two looks.")] = 30.0,
    json: JsonOption = False,
    **settings: Any,
) -> None:
    """Index videos: sampled frames, their embeddings, shots and subtitles. Run again, it does only what is new."""
    import os

    from kinodex.jobs.ingest.config import as_toml, held_settings, resolve
    from kinodex.jobs.ingest.manifests import is_manifest
    from kinodex.jobs.metadata.tables import has_columns

    settings["metadata"] = settings.get("metadata") or None
    resolved = resolve(settings, _pairs(setting or []), os.environ, config, held_settings(library))
    if print_config:
        say(as_toml(resolved))
        return
    manifests = [*filter(is_manifest, sources or []), *(manifest or [])]
    own = [each for each in manifests if has_columns(each)]
    chosen = resolved.config.model_copy(update={"metadata": (*resolved.config.metadata, *own)})
    if not library:
        raise UsageError("got no --library; give the folder or URI of the library to make or to add to")
    if not sources and not manifest and not resolved.config.retry_failed:
        raise UsageError("got nothing to index; give files, folders, globs, URIs, --manifest, or --retry-failed")
    if watch:
        if not sources and not manifest:
            raise UsageError("got --watch and nothing to watch; give folders, globs, URIs or --manifest")
        _watch(chosen, partial(_listed, sources or [], manifest or []), library, every, json)
    listed = _listed(sources or [], manifest or []) if sources or manifest else _failed(library)
    _run(chosen, listed, library, json)


def _run(config: Any, sources: Sequence[Source], library: str, as_json: bool) -> None:
    from kinodex.cli.ingest_report import show_report
    from kinodex.cli.outcome_lines import OutcomeLines
    from kinodex.cli.progress_bars import progress_bar
    from kinodex.jobs.ingest.run import run_ingest

    _check_packages()
    lines = OutcomeLines(console())
    with progress_bar(error_console()) as bar:

        def show(progress: Progress) -> None:
            bar(progress)
            if not as_json:
                lines(progress)

        with interruptible(show) as watch:
            report = run_ingest(config, sources, library, watch)
    show_report(report, open_library(library), as_json, lines)
    raise typer.Exit(SOME_FAILED if report.count("failed") or report.stopped else OK)


def _watch(
    config: IngestConfig, list_now: Callable[[], Sequence[Source]], library: str, every_s: float, as_json: bool
) -> NoReturn:
    from kinodex.cli.ingest_report import show_round
    from kinodex.cli.progress_bars import progress_bar
    from kinodex.jobs.ingest.arrivals import watch_sources

    _check_packages()
    errors = error_console()

    def say(reason: str) -> None:
        errors.print(f"waiting: {visible_lines(reason)}", markup=False, soft_wrap=True)

    with stop_on_interrupt() as pause:

        def take(progress: Progress) -> None:
            if pause.pressed > 1:
                raise KeyboardInterrupt
            bar(progress)

        with progress_bar(errors) as bar:
            all_well = watch_sources(
                config, list_now, library, every_s, pause, partial(show_round, as_json=as_json), say, take
            )
    raise typer.Exit(OK if all_well else SOME_FAILED)


def _check_packages() -> None:
    from importlib.util import find_spec

    for name in ("av", "charset_normalizer"):
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    _check_addresses()


def _check_addresses() -> None:
    """Raise UsageError where this process may not map what the libraries need; they would end it without a word."""
    import resource

    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_bytes != resource.RLIM_INFINITY and limit_bytes < LEAST_ADDRESSES_BYTES:
        raise UsageError(
            f"got a limit of {limit_bytes / 1e6:.0f} MB of addresses (ulimit -v), and an ingest needs "
            f"{LEAST_ADDRESSES_BYTES / 1e6:.0f} MB or more; raise it, or limit resident memory instead (a cgroup)"
        )


def _listed(arguments: list[str], manifests: list[str]) -> Sequence[Source]:
    from kinodex.jobs.ingest.manifests import is_manifest, read_manifest
    from kinodex.pipeline.source_list import SourceList
    from kinodex.pipeline.sources import list_sources

    manifests = [*filter(is_manifest, arguments), *manifests]
    found = {source.uri: source for source in list_sources([each for each in arguments if not is_manifest(each)])}
    found |= {source.uri: source for manifest in manifests for source in read_manifest(manifest)}
    return SourceList(found[uri] for uri in sorted(found))


def _failed(library: str) -> Sequence[Source]:
    from kinodex.jobs.addresses.moved_files import READING_STAGES
    from kinodex.pipeline.source_list import SourceList
    from kinodex.pipeline.sources import named_sources

    failures = open_library(library).ingest_log.failures()
    return SourceList(named_sources(dict.fromkeys(row.uri for row in failures if row.stage in READING_STAGES)))


def _pairs(settings: list[str]) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, value in pairs:
        if not equals or not value:
            raise UsageError(f"got --set {name}{equals}; write --set NAME=VALUE, such as --set cut_s=300")
    return {name.strip(): value.strip() for name, _, value in pairs}


@contextmanager
def interruptible(watch: Watch) -> Iterator[Watch]:
    """Wrap `watch` so that it raises a KeyboardInterrupt that Python dropped; for runs in the main thread.

    Python drops any exception that is raised in a finalizer or in a callback, such as those of imports, and an ingest
    imports much while it begins: one Ctrl-C in a few dozen had no effect there.
    """
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def watched(progress: Progress) -> None:
        if pressed:
            raise KeyboardInterrupt
        watch(progress)

    before = signal.signal(signal.SIGINT, press)
    try:
        yield watched
    finally:
        signal.signal(signal.SIGINT, before)


class Pause:
    """Pauses between two rounds, which an interrupt ends; `pressed` counts the interrupts.

    The handler of a signal may not take a lock that the main thread may hold, as `threading.Event` has one; it writes a
    byte to a socket, which ends the pause.
    """

    def __init__(self, reader: socket.socket, writer: socket.socket) -> None:
        self._reader, self._writer = reader, writer
        self.pressed = 0

    def __call__(self, seconds: float) -> bool:
        if not self.pressed:
            select.select([self._reader], [], [], seconds)
        return self.pressed > 0

    def press(self, number: int, frame: FrameType | None) -> None:
        """Note an interrupt; the second one is raised at once, and again by the next progress."""
        self.pressed += 1
        self._writer.send(b"!")
        if self.pressed > 1:
            raise KeyboardInterrupt


@contextmanager
def stop_on_interrupt() -> Iterator[Pause]:
    """Make the first Ctrl-C end the pause between rounds, and the second one the round in hand."""
    reader, writer = socket.socketpair()
    with reader, writer:
        pause = Pause(reader, writer)
        before = signal.signal(signal.SIGINT, pause.press)
        try:
            yield pause
        finally:
            signal.signal(signal.SIGINT, before)
