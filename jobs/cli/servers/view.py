"""`kinodex view`: traces, runs and libraries in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.cli.options import models as options

if TYPE_CHECKING:
    from jobs.viewer.api import ViewerApi


def view(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE|RUN|LIBRARY...",
            help="Traces, run folders of `kinodex eval`, libraries. A trace's frames come from a library in this list.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write all of it, with its frames, into this one HTML file instead.")
    ] = None,
    space: options.SpaceOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: a free one.")] = 8700,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Look at traces, runs and libraries in a browser, until Ctrl-C."""
    from jobs.errors import UsageError
    from jobs.viewer.api import ViewerApi
    from jobs.viewer.inputs import classify_inputs

    if out is not None and space is not None:
        raise UsageError("got --space with --out, which writes a file that cannot search; leave one of them out")
    inputs = classify_inputs(places)
    for uri in inputs.missing:
        print(f"no library at {uri}, which a run belongs to: its frames are missing", file=sys.stderr)
    api = ViewerApi(inputs, space)
    for key in api.trace_keys():
        api.view(key)  # a trace that cannot be read ends the command, not a page in the browser
    if out is not None:
        _write(api, out)
    else:
        _serve(api, host, port, browser)


def _write(api: ViewerApi, out: Path) -> None:
    from jobs.errors import UsageError
    from jobs.viewer.export import one_file

    page = one_file(api)
    try:
        out.write_text(page.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}; give --out a file that you can write") from error
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, needs no network")
    if page.traces_left_out or page.pictures_left_out:
        print(f"left out for the file's size: {page.traces_left_out} traces, {page.pictures_left_out} frames")


def _serve(api: ViewerApi, host: str, port: int, browser: bool) -> None:
    import webbrowser

    from jobs.server_socket import LOOPBACK, http_url, listen
    from jobs.viewer.server import serve

    listener = listen(host, port)
    address = http_url(listener, host)
    print(f"{address} (Ctrl-C ends it)", file=sys.stderr)
    if host not in LOOPBACK:
        print(f"warning: anyone who reaches {host} can see all of this; there is no password", file=sys.stderr)
    if browser:
        webbrowser.open(address)
    serve(api, listener, _names(host))


def _names(host: str) -> list[str]:
    """Hosts that a request may name; any, where the server listens on every address of the machine."""
    from jobs.server_socket import LOOPBACK

    if host in LOOPBACK:
        return [*LOOPBACK, "[::1]"]
    return ["*"] if host in ("0.0.0.0", "::", "") else [host, f"[{host}]"]
