"""A run of `kinodex eval` as the page draws it: standings, and all answers to every question."""

from __future__ import annotations

from typing import Any

from kinodex.jobs.eval.folder import PAGE, Run, trace_file
from kinodex.jobs.eval.items import Item
from kinodex.jobs.eval.report import make_report
from kinodex.jobs.eval.scoring.answers import judged_score, option_score

STANDING = ("name", "is_control", "imported", "accuracy", "cited", "shown", "unanswered")
"""Fields of a contender's standing that the page shows beside its costs."""


def run_view(run: Run) -> dict[str, Any]:
    """Standings, and questions with answers in the order of the systems, None for one that is not there yet."""
    report = make_report(run.plan, run.items, run.records, run.judgements)  # report.json may be older than they are
    return {
        **{name: getattr(report, name) for name in ("title", "asked", "videos", "chance", "scoring", "complete")},
        "library": run.plan.library,
        "models": run.plan.models,
        "has_page": (run.folder / PAGE).is_file(),
        "contenders": [contender.name for contender in run.plan.contenders],
        "standings": [
            {name: getattr(each, name) for name in STANDING}
            | {"costs": {name: spread.mean for name, spread in each.costs.items()}}
            for each in report.standings
        ],
        "questions": _questions(run),
    }


def truth_of(run: Run, item: Item) -> dict[str, Any]:
    videos = run.plan.items[item.item_id]
    clip = item.truth.clip if item.truth.clip is not None else videos[0] if len(videos) == 1 else None
    ranges = [{"video_id": clip, "start_s": start_s, "end_s": end_s} for start_s, end_s in item.truth.evidence]
    return {"option": item.truth.option, "text": item.truth.text, "evidence": ranges if clip else []}


def _questions(run: Run) -> list[dict[str, Any]]:
    records = {(each.contender, each.item_id): each for each in run.records}
    verdicts = {(each.contender, each.item_id): each for each in run.judgements if each.judge == run.judge}

    def answer(contender: str, item: Item) -> dict[str, Any] | None:
        record = records.get((contender, item.item_id))
        if record is None:
            return None
        by_option = run.plan.scoring == "options"
        score, _ = option_score(item, record) if by_option else judged_score(item, record, verdicts)
        return {
            **{name: getattr(record, name) for name in ("option", "text", "status", "error", "rounds")},
            "score": score,
            "frames": record.ledger.frames,
            "has_trace": trace_file(run.folder, contender, item.item_id).is_file(),
        }

    return [
        {
            "item_id": item.item_id,
            "video": item.video,
            "question": item.question,
            "truth": truth_of(run, item),
            "groups": item.groups,
            "answers": [answer(contender.name, item) for contender in run.plan.contenders],
        }
        for item in run.items
    ]
