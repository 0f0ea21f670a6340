"""`kinodex relocate`: the addresses of moved files, and those at which no file lies any more."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kinodex.cli.options import JsonOption, LibraryArgument, open_library
from kinodex.index.durations import counted
from kinodex.index.terminal_text import visible
from kinodex.output import print_json, say

if TYPE_CHECKING:
    from rich.console import Console

    from kinodex.jobs.addresses.states import AddressCheck


LISTED = 10


def relocate(
    library: LibraryArgument,
    old: Annotated[str, typer.Argument(help="Where they were: a folder, a file, s3://BUCKET/FOLDER or https://HOST.")],
    new: Annotated[str, typer.Argument(help="Where the same files are by now.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    json: JsonOption = False,
) -> None:
    """Say where moved files are by now: the addresses of all videos under OLD become those under NEW.

    Nothing is read or indexed again. Without a common prefix `kinodex ingest` knows moved files by their bytes.
    """
    from kinodex.jobs.addresses.relocation import relocate as relocate_videos

    opened = open_library(library)
    done = relocate_videos(opened, old, new, dry_run=dry_run)
    if json:
        print_json({"uri": opened.uri, **asdict(done)})
        return
    for each in done.videos[:LISTED]:
        say(f"{each.video_id[:12]}  {visible(each.old_uri)} -> {visible(each.new_uri)}")
    if len(done.videos) > LISTED:
        say(f"and {len(done.videos) - LISTED:,} more; --json has all")
    would = "would be relocated" if dry_run else "relocated"
    say(f"{counted(len(done.videos), 'video')} {would}; {counted(done.other_places, 'other place')} of files too")
    say(f"at the new addresses: {done.there:,} there, {done.gone:,} gone, {done.unknown:,} not known")


def show_addresses(uri: str, found: AddressCheck, out: Console) -> None:
    """List addresses at which no file lies any more, and count those of which nothing is known."""
    from rich.markup import escape

    from kinodex.jobs.addresses.relocation import relocate_command

    for name, some in (("gone", found.gone), ("not known to be there", found.unknown)):
        if some:
            out.print(f"files {name}: {len(some):,} of {counted(found.looked_at, 'video')}", soft_wrap=True)
        for each in some[:LISTED]:
            out.print(escape(f"  {visible(each.uri)}{f': {each.why}' if each.why else ''}"), soft_wrap=True)
        if len(some) > LISTED:
            out.print(f"  and {len(some) - LISTED:,} more; --json has all")
    if found.gone:
        out.print(escape(f"if they were moved: `{relocate_command(uri, found.gone[0].uri)}`"), soft_wrap=True)
