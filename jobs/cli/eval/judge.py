"""`kinodex eval judge`: score free-form answers by a model."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.eval.report import MarkdownOption, PageOption, RunArgument, report
from jobs.cli.options import models as options
from jobs.cli.options.models import AtOnceOption, BaseUrlOption, CacheOption, ModelsOption, SampleOption

SHOW_EVERY = 100


def judge(
    run: RunArgument,
    model: Annotated[str, typer.Option(help="The model that judges, of an OpenAI-compatible endpoint.")] = "builtin",
    base_url: BaseUrlOption = None,
    models: ModelsOption = None,
    cache: CacheOption = True,
    sample: SampleOption = 0,
    at_once: AtOnceOption = 32,
    markdown: MarkdownOption = False,
    page: PageOption = True,
) -> None:
    """Score a run's free-form answers from 0 to 3 by a model, then report. The same command continues after an end.

    Of a file of --models, the role judge is used, else default.
    """
    import sys

    from jobs.evaluation.score.model_judge import judge_answers
    from jobs.model_choice import ModelChoice

    def on_progress(done: int, of: int) -> None:
        if done % SHOW_EVERY == 0 or done == of:
            print(f"{done:,} of {of:,} answers judged", file=sys.stderr, flush=True)

    choice = ModelChoice(model, base_url, models, cache=cache, sample=sample, at_once=at_once)
    options.announce(choice)
    unscored = judge_answers(run, choice, on_progress)
    if unscored:
        print(f"{unscored:,} answers got no valid score; the same command asks for those again", file=sys.stderr)
    report(run, markdown, page=page)
