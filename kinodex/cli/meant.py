"""Suggest the command that is meant by a name that people type from habit.

May import typer, and nothing heavy: every start of the command line imports this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context

MEANT = {
    **dict.fromkeys(("index", "embed", "add videos", "import videos"), "ingest FILMS --library LIBRARY"),
    **dict.fromkeys(("find", "query", "grep"), "search LIBRARY WORDS"),
    **dict.fromkeys(("list", "ls", "show", "status", "videos", "report"), "info LIBRARY"),
    **dict.fromkeys(("chat", "question"), "ask LIBRARY QUESTION"),
    **dict.fromkeys(("delete", "rm", "remove video"), "remove videos LIBRARY VIDEO"),
    **dict.fromkeys(("check", "repair", "vacuum", "compact"), "maintain LIBRARY"),
    **dict.fromkeys(("benchmark", "evaluate"), "eval BENCHMARK LIBRARY"),
    **dict.fromkeys(("caption", "add caption", "add descriptions"), "add captions LIBRARY"),
    **dict.fromkeys(("transcribe", "add transcript", "add transcripts", "add asr"), "add speech LIBRARY"),
    **dict.fromkeys(("add subtitles", "import subtitles", "import transcript"), "import speech FOLDER LIBRARY"),
    **dict.fromkeys(("import transcripts", "import srt", "import vtt"), "import speech FOLDER LIBRARY"),
    **dict.fromkeys(("ocr", "add ocr", "add text"), "add screen_text LIBRARY"),
    **dict.fromkeys(("add summaries", "add scenes"), "add chapters LIBRARY"),
    **dict.fromkeys(("add cuts",), "add shots LIBRARY"),
    **dict.fromkeys(("add embeddings", "add space"), "add vectors LIBRARY --space SPACE"),
    **dict.fromkeys(("add objects", "detect"), "add detections LIBRARY"),
    **dict.fromkeys(("add metadata", "import metadata", "set columns"), "set metadata LIBRARY TABLE"),
    **dict.fromkeys(("export mp4", "export video", "export videos", "export clip"), "export clips LIBRARY FOLDER"),
    **dict.fromkeys(("frames", "export jpg", "export jpeg", "export images"), "export frames LIBRARY FOLDER"),
    **dict.fromkeys(("export subtitles", "export transcript"), "export srt LIBRARY FILE"),
    **dict.fromkeys(("export json",), "export jsonl LIBRARY FILE"),
    **dict.fromkeys(("view",), "serve TRACE LIBRARY"),
    **dict.fromkeys(("export html",), "export page LIBRARY FILE"),
    **dict.fromkeys(("export parquet", "export huggingface"), "export hf LIBRARY FOLDER"),
    **dict.fromkeys(("remove captions",), "remove added LIBRARY captions MODEL"),
    **dict.fromkeys(("name",), "speakers LIBRARY SPEAKER NAME"),
    **dict.fromkeys(("rollouts",), "lab rollouts"),
    **dict.fromkeys(("train",), "lab train"),
    **dict.fromkeys(("upgrade", "migrate"), "ingest FILMS --library NEW"),
}
"""By what is typed, in small letters, the command that does it."""
KIND_FIRST = {
    "add": "add captions LIBRARY",
    "import": "import speech FOLDER LIBRARY",
    "export": "export clips LIBRARY FOLDER",
    "remove": "remove videos LIBRARY VIDEO",
    "set": "set metadata LIBRARY TABLE",
}
"""Groups whose commands say what before they say where, each with an example."""


class Group(TyperGroup):
    """A group of commands whose refusal of a name says which command is meant."""

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Find the command of the first argument; raises UsageError with what is meant where it is known."""
        if args and self.get_command(ctx, args[0]) is None and (command := meant(_group(ctx), args[0])):
            raise as_meant(f"{_group(ctx)} {args[0]}".strip(), command)
        resolved: tuple[str | None, Command | None, list[str]] = super().resolve_command(ctx, args)
        return resolved


def as_meant(typed: str, command: str) -> Exception:
    """Make the error that says which command is meant; both are without `kinodex`."""
    from kinodex.jobs.errors import UsageError

    return UsageError(f"got `kinodex {typed}`, which is no command; did you mean `kinodex {command}`?")


def _group(ctx: Context) -> str:
    """Return the name of the group that is being read, empty for `kinodex` itself."""
    return "" if ctx.parent is None else f"{_group(ctx.parent)} {ctx.info_name}".strip()


def meant(group: str, word: str) -> str | None:
    """Return the command that is meant by a word after a group, without `kinodex`; None if it is not known.

    >>> meant("export", "mp4")
    'export clips LIBRARY FOLDER'
    """
    known = MEANT.get(f"{group} {word.lower()}".strip())
    is_place = "/" in word or Path(word).is_dir()
    return KIND_FIRST.get(group) if known is None and is_place else known
