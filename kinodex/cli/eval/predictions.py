"""`kinodex eval import`: predictions of others as a contender of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinodex.cli.eval.options import MarkdownOption, PageOption, RunArgument
from kinodex.cli.eval.report import report
from kinodex.output import tell


def import_answers(
    run: RunArgument,
    predictions: Annotated[
        Path,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="JSON of predictions by question id or of a list, JSON lines (also lmms-eval's samples), CSV or TSV "
            "(also VLMEvalKit's results), or parquet.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Name of the contender. Default: that of the file.")] = None,
    id_field: Annotated[str | None, typer.Option(help="Field of the question's id. Default: the usual names.")] = None,
    prediction_field: Annotated[
        str | None, typer.Option(help="Field of the prediction. Default: the usual names.")
    ] = None,
    first: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="Predictions are numbers that count the options from here. Default: 0."),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out questions without a prediction; else they count as wrong.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="In the place of an earlier import of this name.")] = False,
    markdown: MarkdownOption = False,
    page: PageOption = True,
) -> None:
    """Take published or foreign predictions as a contender of a run, then report.

    They are read as agents' answers are; what they cost and what they saw is not known.
    """
    from kinodex.jobs.eval.imported_predictions import ImportRequest, import_predictions

    request = ImportRequest(predictions, name, id_field, prediction_field, first, partial, replace)
    found = import_predictions(run, request)
    for note in found.notes:
        tell(note)
    report(run, markdown, page=page)
