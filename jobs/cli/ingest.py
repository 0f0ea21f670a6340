"""`kinodex ingest`: many sources into one library, here or on Ray."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from jobs.cli.options import ingest as options
from jobs.cli.options.library import JsonOption

if TYPE_CHECKING:
    from jobs.ingest.outcomes import Progress, Watch
    from pipeline.sources.fetch import Source


@options.with_setting_options
def ingest(
    sources: options.SourcesArgument = None,
    library: options.LibraryOption = None,
    manifest: options.ManifestOption = None,
    *,
    setting: options.SetOption = None,
    config: options.ConfigOption = None,
    print_config: options.PrintConfigOption = False,
    json: JsonOption = False,
    **settings: Any,
) -> None:
    """Index videos: sampled frames, their embeddings, shots and subtitles. Run again, it does only what is new."""
    import os

    from jobs.errors import UsageError
    from jobs.ingest.config import as_toml, held_settings, resolve

    resolved = resolve(settings, _pairs(setting or []), os.environ, config, held_settings(library))
    if print_config:
        print(as_toml(resolved))
        return
    if not library:
        raise UsageError("got no --library; give the folder or URI of the library to make or to add to")
    if not sources and not manifest and not resolved.config.retry_failed:
        raise UsageError("got nothing to index; give files, folders, globs, URIs, --manifest, or --retry-failed")
    found = _listed(sources or [], manifest or []) if sources or manifest else _failed(library)
    _run(resolved.config, found, library, json)


def _run(config: Any, sources: list[Source], library: str, as_json: bool) -> None:
    from index.library import Library
    from jobs.console.ingest_progress import progress_bar
    from jobs.console.ingest_report import show_report
    from jobs.console.output import error_console
    from jobs.errors import OK, SOME_FAILED
    from jobs.ingest.run import run_ingest

    _check_packages()
    with progress_bar(error_console()) as shown, interruptible(shown) as watch:
        report = run_ingest(config, sources, library, watch)
    show_report(report, Library.open(library), as_json)
    raise typer.Exit(SOME_FAILED if report.count("failed") or report.stopped else OK)


def _check_packages() -> None:
    """Check at once that what reads videos and subtitles is installed, not in a failure row for each of them."""
    from importlib.util import find_spec

    for name in ("av", "charset_normalizer"):
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _listed(arguments: list[str], manifests: list[str]) -> list[Source]:
    """List sources by URI, each once; a manifest's row counts more than a file in a folder."""
    from jobs.ingest.manifest import is_manifest, read_manifest
    from pipeline.sources.discover import list_sources

    manifests = [*filter(is_manifest, arguments), *manifests]
    found = {source.uri: source for source in list_sources([each for each in arguments if not is_manifest(each)])}
    found |= {source.uri: source for manifest in manifests for source in read_manifest(manifest)}
    return [found[uri] for uri in sorted(found)]


def _failed(library: str) -> list[Source]:
    """List the sources in the library's failures that were no video or could not be fetched."""
    from index.library import Library
    from jobs.ingest.commit import READING_STAGES
    from pipeline.sources.discover import named_sources

    failures = Library.open(library).ingest_log.failures()
    return named_sources(dict.fromkeys(row.uri for row in failures if row.stage in READING_STAGES))


def _pairs(settings: list[str]) -> dict[str, str]:
    from jobs.errors import UsageError

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
