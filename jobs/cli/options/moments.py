"""Options that choose moments: one set for all commands that export them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs.cli.options.library import FromOption, ToOption, VideoOption

if TYPE_CHECKING:
    from index.library import Library
    from jobs.export.moments.moment import Moment

OutArgument = Annotated[str, typer.Argument(metavar="[FILE]", help="The file to write; - for standard output.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that is new or empty.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")]


@dataclass(frozen=True, slots=True)
class MomentOptions:
    """The options as they were given."""

    ranges: Path | None
    search: str | None
    hits: int
    trace: Path | None
    of: str | None
    video: tuple[str, ...]
    from_s: float | None
    to_s: float | None
    label: str
    pad_s: float

    def choose(self, library: Library, usual_rows: str | None) -> list[Moment]:
        """Find the moments; without an option that names some, those of `usual_rows`. Raises as `choose_moments`."""
        from jobs.export.moments.choose import MomentChoice, choose_moments

        choice = MomentChoice(
            self.ranges,
            self.search,
            self.hits,
            self.trace,
            self.of,
            self.video,
            self.from_s,
            self.to_s,
            self.label,
            self.pad_s,
        )
        return choose_moments(library, choice, usual_rows)


def _options(
    ranges: Annotated[
        Path | None,
        typer.Option(help="Ranges from a .csv or .jsonl file: columns video, start_s, end_s, label, score."),
    ] = None,
    search: Annotated[str | None, typer.Option(help="The hits of a search for these words.")] = None,
    hits: Annotated[int, typer.Option("-k", min=1, max=1000, help="Number of hits of --search.")] = 10,
    trace: Annotated[
        Path | None, typer.Option(help="The evidence of the answer in this trace of `kinodex ask --trace`.")
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            help="What the library holds: shots, scenes, chapters, captions, transcript, text, detections, videos."
        ),
    ] = None,
    video: VideoOption = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    label: Annotated[str, typer.Option(help="Label of the range that --video, --from and --to name.")] = "",
    pad: Annotated[float, typer.Option(min=0.0, help="Seconds to add before and after each.")] = 0.0,
) -> MomentOptions:
    return MomentOptions(ranges, search, hits, trace, of, tuple(video or ()), from_s, to_s, label, pad)


def with_moments(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, behind its arguments and before its own options.

    The command takes them as one argument, `moments`, of `MomentOptions`.
    """
    shared = inspect.signature(_options, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters

    @wraps(command)
    def run(**values: Any) -> None:
        chosen = _options(**{name: values.pop(name) for name in shared})
        command(**values, moments=chosen)

    parameters = []
    for name, parameter in own.items():
        added = shared.values() if name == "moments" else [parameter]
        parameters += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in added]
    del run.__wrapped__
    run.__annotations__ = {}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run
