"""A model that judges free-form answers from 0 to 3: how much of the true answer each holds.

A judgement is written as soon as it is there, with the name of the model, so that whatever ends the judging, the same
command continues it; answers without a valid score are judged again then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kinodex.agent.attempts import ask_checked
from kinodex.agent.errors import ModelError, ModelUnreachable
from kinodex.agent.prompts.rendering import render
from kinodex.agent.protocol.exchange import Model
from kinodex.agent.requests.judge_answer import JudgeAnswer
from kinodex.jobs.batch import Batch, Limits
from kinodex.jobs.errors import UsageError, check_packages
from kinodex.jobs.eval.folder import JUDGED, open_for_append, read_items, read_judgements, read_plan, read_run
from kinodex.jobs.eval.results import Judgement
from kinodex.jobs.eval.scoring.answers import asked_digest
from kinodex.jobs.models import ModelChoice, describe_models, role_models, run_now

JUDGE = "judge"
AT_ONCE = 32
"""Answers judged together, by default."""
MOST_REFUSED = 20
"""Requests that the endpoint may refuse before the judging ends."""

Case = tuple[Judgement, JudgeAnswer]
"""A judgement that has no score yet, and the request to the judge."""


def judge_answers(run: Path, choice: ModelChoice, on_progress: Callable[[int, int], object]) -> int:
    """Judge the answers of a run that have no score by this judge yet; return the number without one now.

    `on_progress` gets the numbers of done and all. Raises `UsageError` for a run that needs no judge or a model that
    cannot be one, and `ModelError` if the endpoint is gone or refuses too much; what was judged is kept.
    """
    check_packages("scipy")
    if read_plan(run).scoring != "judge":
        raise UsageError(f"got {run}, whose answers are options and need no judge; `kinodex eval report` scores them")
    if choice.is_replay or not choice.has_language:
        raise UsageError(
            f"got {choice.model} as the judge, which has no language; give --model and --base-url, or --models"
        )
    with open_for_append(run / JUDGED) as append:
        named = describe_models(choice)  # with the endpoint and settings
        judge = named.get(JUDGE) or named.get("default")
        if judge is None:
            raise UsageError(
                f"got {choice.roles_file} with no table [judge] and no [default]; name the model that judges"
            )
        return run_now(_judge_all(open_cases(run, judge), choice, append, on_progress))


def open_cases(run: Path, judge: str) -> list[Case]:
    """List the answers in words to questions with a known answer to which this judge gave no score, asked the same."""
    scored = {
        (each.contender, each.item_id): each
        for each in read_judgements(run)
        if (each.judge, each.score is None) == (judge, False)
    }
    instructions = render(JudgeAnswer(question="", reference="", answer=""))
    prompt = hashlib.sha256(instructions.encode()).hexdigest()[:16]
    items = {item.item_id: item for item in read_items(run)}
    cases = []
    for record in read_run(run).records:
        item = items[record.item_id]
        if not (record.text and item.truth.text):
            continue
        kept = scored.get((record.contender, record.item_id))
        asked = asked_digest(item, record)
        if kept is None or (kept.asked, kept.prompt) != (asked, prompt):
            request = JudgeAnswer(question=item.question.text, reference=item.truth.text, answer=record.text)
            judgement = Judgement(record.contender, record.item_id, judge, None, asked, prompt)
            cases.append((judgement, request))
    return cases


async def _judge_all(
    cases: Sequence[Case],
    choice: ModelChoice,
    append: Callable[[Judgement], None],
    on_progress: Callable[[int, int], object],
) -> int:
    """Judge cases side by side; return the number of those without a score."""
    batch: Batch[Case] = Batch(Limits(choice.at_once or AT_ONCE), "answers", "all scores are kept")
    done = unscored = refused = 0

    def keep(case: Case, judged: Judgement | ModelError) -> None:
        nonlocal done, unscored, refused
        if isinstance(judged, ModelUnreachable):  # which says nothing of the answer
            batch.unheard(case[0], judged)
            unscored += 1
        elif isinstance(judged, ModelError):  # of what this one answer says, unless it goes on like that
            batch.heard()
            refused += 1
            if refused >= MOST_REFUSED:
                batch.stop(judged)
            else:
                append(replace(case[0], reason=" ".join(str(judged).split())))
            unscored += 1
        else:
            batch.heard()
            append(judged)
            unscored += judged.score is None
        done += 1
        on_progress(done, len(cases))

    async with role_models(choice) as models:
        model = models.get(JUDGE) or models["default"]
        await batch.run_here(cases, lambda case: judge(model, case), keep)
    return unscored


async def judge(model: Model, case: Case) -> Judgement | ModelError:
    """Judge one answer, or give the error of a request without a reply. Raises what every other would meet too."""
    unscored, request = case
    try:
        outcome = await ask_checked(model, request)
    except ModelUnreachable as error:
        return error
    if outcome.refused is not None:
        return outcome.refused
    if outcome.reply is None:
        return replace(unscored, reason=f"no valid score in {outcome.calls} attempts: {outcome.complaint}")
    return replace(unscored, score=outcome.reply.score, reason=outcome.reply.reasoning)
