"""`kinodex watch`: a video of the web into a library that is kept, and a question about it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from kinodex.cli import options
from kinodex.cli.ask import ask
from kinodex.cli.options import JsonOption
from kinodex.index.text import visible


@options.with_groups
def watch(
    address: Annotated[str, typer.Argument(help="The address of a video's page, or of its file, on the web.")],
    question: Annotated[str | None, typer.Argument(help="A question about it; without one it is indexed.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="One of 2 to 26 choices; repeat it for each.")] = None,
    library: Annotated[
        str | None, typer.Option(help="The library to keep it in.", show_default="watched/library in your data")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent: a name of `kinodex agents`, or FILE.py.")] = "eea",
    asking: options.Asking = options.USUAL,
    json: JsonOption = False,
) -> None:
    """Index a video of the web, with its subtitles and chapters, and ask about it. Again, nothing is fetched twice.

    A page is read by yt-dlp (pip install 'kinodex[watch]').
    """
    from kinodex.watch import watch as index_page
    from kinodex.watch import watched_place

    place = library or str(watched_place() / "library")
    video = index_page(address, place, **({"space": asking.space} if asking.space else {}))
    print(f"{visible(video.title)}: {video.frames} frames in {place}", file=sys.stderr)
    if question is not None:
        chosen = {"video": [video.video_id], "option": option, "agent": agent}
        ask(library=place, question=question, json=json, **chosen, **asdict(asking))
