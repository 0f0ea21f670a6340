"""A run of `kinodex eval` as the page draws it: standings, and all answers to every question."""

from __future__ import annotations

from typing import Any

from jobs.benchmarks.samples import Sample
from jobs.evaluation.run.run_folder import PAGE, Run, trace_file
from jobs.evaluation.run.types import SampleResult
from jobs.evaluation.score.report import make_report
from jobs.evaluation.score.scorers import judged_score, option_score


def run_view(run: Run) -> dict[str, Any]:
    """Standings, and questions with answers in the order of the systems, None for one that is not there yet."""
    report = make_report(run.plan, run.items, run.records, run.judgements)  # report.json may be older than they are
    return {
        "title": report.title,
        "library": run.plan.library,
        "models": run.plan.models,
        "asked": report.asked,
        "videos": report.videos,
        "chance": report.chance,
        "scoring": report.scoring,
        "complete": report.complete,
        "has_page": (run.folder / PAGE).is_file(),
        "contenders": [contender.name for contender in run.plan.contenders],
        "standings": [
            {
                "name": each.name,
                "is_control": each.is_control,
                "imported": each.imported,
                "accuracy": each.accuracy,
                "cited": each.cited,
                "shown": each.shown,
                "unanswered": each.unanswered,
                "costs": {name: spread.mean for name, spread in each.costs.items()},
            }
            for each in report.standings
        ],
        "questions": _questions(run),
    }


def truth_of(run: Run, item: Sample) -> dict[str, Any]:
    """True answer of a question, with the time ranges that show it by video."""
    videos = run.plan.items[item.item_id]
    clip = item.truth.clip if item.truth.clip is not None else videos[0] if len(videos) == 1 else None
    ranges = [{"video_id": clip, "start_s": start_s, "end_s": end_s} for start_s, end_s in item.truth.evidence]
    return {"option": item.truth.option, "text": item.truth.text, "evidence": ranges if clip else []}


def _questions(run: Run) -> list[dict[str, Any]]:
    records = {(each.contender, each.item_id): each for each in run.records}
    verdicts = {(each.contender, each.item_id): each for each in run.judgements if each.judge == run.judge}

    def answer(contender: str, item: Sample) -> dict[str, Any] | None:
        record = records.get((contender, item.item_id))
        if record is None:
            return None
        by_option = run.plan.scoring == "options"
        score, _ = option_score(item, record) if by_option else judged_score(item, record, verdicts)
        return _answer(record, score) | {"has_trace": trace_file(run.folder, contender, item.item_id).is_file()}

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


def _answer(record: SampleResult, score: float | None) -> dict[str, Any]:
    return {
        "score": score,
        "option": record.option,
        "text": record.text,
        "status": record.status,
        "error": record.error,
        "rounds": record.rounds,
        "frames": record.ledger.frames,
    }
