"""Judge free-form answers by a model, from 0 to 3: how much of the true answer each holds. Its name is kept with it.

Targets and answers meet here and in `scorers`, after the run. A judgement is written as soon as it is there, so that
whatever ends the judging, the same command continues it; answers without a valid score are judged again then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.core.protocol import Model
from agent.core.side_by_side import gather_all
from agent.errors import GONE_AFTER, AllRejected, ModelRejected, ModelUnreachable
from agent.prompts.render import render
from agent.requests.judge import JudgeAnswer
from agent.session import ATTEMPTS
from jobs.errors import UsageError
from jobs.evaluation.run.run_folder import JUDGED, open_for_append, read_items, read_judgements, read_plan, read_run
from jobs.evaluation.run.types import Judgement
from jobs.evaluation.score.scorers import asked_digest
from jobs.model_choice import ModelChoice, describe_models, role_models
from jobs.run_now import run_now

JUDGE = "judge"
AT_ONCE = 32
"""Answers judged together, by default."""
MOST_REFUSED = 20
"""Requests that the endpoint may refuse before the judging ends."""

Case = tuple[Judgement, JudgeAnswer]
"""A judgement that has no score yet, and the request to the judge."""


def judge_answers(run: Path, choice: ModelChoice, on_progress: Callable[[int, int], object]) -> int:
    """Judge the answers of a run that have no score by this judge yet; `on_progress` gets the numbers of done and all.

    Returns the number of answers without a valid score now. Raises `UsageError` for a run that needs no judge or a
    model that cannot be one, and `ModelError` if the endpoint is gone or refuses too much; what was judged is kept.
    """
    if read_plan(run).scoring != "judge":
        raise UsageError(f"got {run}, whose answers are options and need no judge; `kinodex eval report` scores them")
    if choice.is_replay or not choice.has_language:
        raise UsageError(
            f"got {choice.model} as the judge, which has no language; give --model and --base-url, or --models"
        )
    with open_for_append(run / JUDGED) as append:
        judge = judge_name(choice)
        cases = open_cases(run, judge)
        return run_now(_judge_all(cases, choice, append, on_progress))


def judge_name(choice: ModelChoice) -> str:
    """Name the judge in its judgements: the model, its endpoint, and its settings."""
    named = describe_models(choice)
    name = named.get(JUDGE) or named.get("default")
    if name is None:
        raise UsageError(f"got {choice.roles_file} with no table [judge] and no [default]; name the model that judges")
    return name


def open_cases(run: Path, judge: str) -> list[Case]:
    """List the answers in words to questions with a known answer that have no score by this judge.

    A score counts if the same was asked for it: the answer may have been replaced since, and the instructions changed.
    """
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
        if kept is None or kept.asked not in ("", asked) or kept.prompt not in ("", prompt):
            request = JudgeAnswer(question=item.question.text, reference=item.truth.text, answer=record.text)
            judgement = Judgement(record.contender, record.item_id, judge, None, asked=asked, prompt=prompt)
            cases.append((judgement, request))
    return cases


async def _judge_all(
    cases: Sequence[Case],
    choice: ModelChoice,
    append: Callable[[Judgement], None],
    on_progress: Callable[[int, int], object],
) -> int:
    """Judge cases side by side; what ends the judging lets the requests under way come back, and keeps their scores."""
    left = iter(cases)
    tally = _Tally()
    async with role_models(choice) as models:
        model = models.get(JUDGE) or models["default"]

        async def work() -> None:
            while tally.end is None and (case := next(left, None)) is not None:
                judgement = await _judged(model, case, tally)
                if judgement is not None:
                    append(judgement)
                    tally.unscored += judgement.score is None
                tally.done += 1
                on_progress(tally.done, len(cases))

        await gather_all([work() for _ in range(min(choice.at_once or AT_ONCE, len(cases)))])
    if tally.end is not None:
        raise tally.end
    return tally.unscored


@dataclass(slots=True)
class _Tally:
    """The course of a judging: `lost` answers in a row got no reply; `end` is the error that ends it, None so far."""

    done: int = 0
    unscored: int = 0
    refused: int = 0
    lost: int = 0
    end: Exception | None = None


async def _judged(model: Model, case: Case, tally: _Tally) -> Judgement | None:
    """Judge one answer; None if it got no reply at all: unlike a reply without a score, that says nothing of it."""
    unscored, request = case
    try:
        score, reason = await judge_one(model, request)
    except ModelUnreachable as error:
        tally.unscored += 1
        tally.lost += 1
        if tally.lost >= GONE_AFTER:
            tally.end = tally.end or error
        return None
    except ModelRejected as error:  # of what this one answer says, unless it goes on like that
        tally.refused += 1
        if isinstance(error, AllRejected) or tally.refused >= MOST_REFUSED:
            tally.end = tally.end or error
            return None
        score, reason = None, " ".join(str(error).split())
    except Exception as error:
        tally.end = tally.end or error
        return None
    tally.lost = 0
    return replace(unscored, score=score, reason=reason)


async def judge_one(model: Model, request: JudgeAnswer) -> tuple[int | None, str]:
    """Ask for the score of an answer and its reason, twice at most; None and the problem if no reply is valid."""
    problem = ""
    for attempt in range(ATTEMPTS):
        exchange = await model.ask(request)
        if exchange.reply is not None:
            return exchange.reply.score, exchange.reply.reasoning
        problem = exchange.invalid or ""
        request = replace(request, attempt=attempt + 1, complaint=problem, bad_reply=exchange.raw)
    return None, f"no valid score in {ATTEMPTS} attempts: {problem}"
