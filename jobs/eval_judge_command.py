"""`kinodex eval judge`: a model's scores of free-form answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.eval_report_command import MarkdownOption, PageOption, RunArgument, report

SHOW_EVERY = 100


def judge(
    run: RunArgument,
    model: Annotated[str, typer.Option(help="The model that judges, of an OpenAI-compatible endpoint.")] = "builtin",
    base_url: Annotated[str | None, typer.Option(help="The endpoint, http://HOST:PORT/v1.")] = None,
    models: Annotated[
        Path | None, typer.Option(help="TOML file with a model for each role instead; judge, else default.")
    ] = None,
    cache: Annotated[bool, typer.Option(help="Keep replies on disk and use them again.")] = True,
    sample: Annotated[int, typer.Option(help="Tells repetitions apart: another number asks the judge anew.")] = 0,
    at_once: Annotated[int, typer.Option(min=1, help="Answers judged at once.")] = 32,
    markdown: MarkdownOption = False,
    page: PageOption = True,
) -> None:
    """Have a model score a run's free-form answers from 0 to 3, then report. It goes on where it was ended."""
    import sys

    from jobs.evaluation.judging import judge_answers
    from jobs.models import ModelChoice

    def told(done: int, of: int) -> None:
        if done % SHOW_EVERY == 0 or done == of:
            print(f"{done:,} of {of:,} answers judged", file=sys.stderr, flush=True)

    choice = ModelChoice(model, base_url, models, cache=cache, sample=sample, at_once=at_once)
    without = judge_answers(run, choice, told)
    if without:
        print(f"{without:,} answers got no valid score; the same command asks for those again", file=sys.stderr)
    report(run, markdown, page=page)
