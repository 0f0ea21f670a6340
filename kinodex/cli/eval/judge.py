"""`kinodex eval judge`: score free-form answers by a model."""

from __future__ import annotations

from typing import Annotated

import typer

from kinodex.cli import model_options
from kinodex.cli.eval.options import MarkdownOption, PageOption, RunArgument
from kinodex.cli.eval.report import report
from kinodex.cli.model_options import BaseUrlOption, CacheOption, ModelsOption
from kinodex.output import tell

SHOW_EVERY = 100


def judge(
    run: RunArgument,
    model: Annotated[str, typer.Option(help="The model that judges, of an OpenAI-compatible endpoint.")] = "similarity",
    base_url: BaseUrlOption = None,
    models: ModelsOption = None,
    cache: CacheOption = True,
    sample: model_options.SampleOption = 0,
    at_once: model_options.AtOnceOption = 32,
    markdown: MarkdownOption = False,
    page: PageOption = True,
) -> None:
    """Score a run's free-form answers from 0 to 3 by a model, then report. The same command continues after an end.

    Of a file of --models, the role judge is used, else default.
    """
    from kinodex.jobs.eval.scoring.judge import judge_answers
    from kinodex.jobs.models import ModelChoice

    def on_progress(done: int, of: int) -> None:
        if done % SHOW_EVERY == 0 or done == of:
            tell(f"{done:,} of {of:,} answers judged")

    choice = ModelChoice(model, base_url, models, cache=cache, sample=sample, at_once=at_once)
    model_options.announce(choice)
    unscored = judge_answers(run, choice, on_progress)
    if unscored:
        tell(f"{unscored:,} answers got no valid score; the same command asks for those again")
    report(run, markdown, page=page)
