"""The plan of a run: the items whose videos the library holds, the contenders, their models and limits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path

from kinodex.agent.catalogue import check_fit
from kinodex.agent.variants.settings import with_settings
from kinodex.index.kinds import KindName
from kinodex.index.library import Library
from kinodex.index.rows import VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval import folder
from kinodex.jobs.eval.benchmarks import annotation_files, read_benchmark
from kinodex.jobs.eval.contenders import Contender
from kinodex.jobs.eval.item_choice import Subset, draw_items, select_items
from kinodex.jobs.eval.items import Item
from kinodex.jobs.eval.results import RunContext
from kinodex.jobs.eval.video_names import check_own, complete_items, match_videos, read_id_map
from kinodex.jobs.models import (
    ModelChoice,
    check_sight,
    describe_models,
    describe_prices,
    local_contents,
)
from kinodex.jobs.open import find_filled_space

MAY_DIFFER = {"title", "annotations", "questions", "missing", "problems", "index_cost"}
"""Fields of a plan in which two equal runs may differ: where files are, and what else the library holds."""
FIELD_LABELS = {
    "annotations_sha256": "hash of the annotations",
    "contenders": "list of agents",
    "keep_captions": "keeping captions",
    "models": "list of models",
    "items": "set of questions",
    "rules": "rules of answers",
    "at_once": "number of requests at once",
    "prices": "list of prices",
    "contents": "content of the files that answer",
    "hide": "list of hidden lines",
}
"""Names of a plan's fields in messages, where a field's own name is no plain word."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The items of a benchmark that a run asks, and its contenders. `id_map` is a file with the library's names."""

    benchmark: str
    annotations: Path
    contenders: tuple[Contender, ...]
    id_map: Path | None = None
    limit: int | None = None
    seed: int = 0
    subset: Subset = field(default_factory=Subset)
    where: str | None = None
    """Only questions about videos for which this condition holds."""


def make_plan(request: RunRequest, context: RunContext) -> tuple[folder.RunPlan, tuple[Item, ...]]:
    """Make the plan of a run, and select its items, in the benchmark's order, completed as `complete_items` does.

    Raises `UsageError` if no item is left or the library lacks the space, `SpaceMismatch` if a video has no vectors in
    it, and the error of an agent that cannot run like this.
    """
    benchmark = read_benchmark(request.benchmark, request.annotations)
    library = Library.open(context.library)
    rows = {row.video_id: row for row in library.videos()}
    id_map = None if request.id_map is None else read_id_map(request.id_map)
    candidates = select_items(benchmark.items, request.subset)
    matches = match_videos(candidates, list(rows.values()), id_map, benchmark.episodes)
    check_own(matches, benchmark.name, list(rows.values()))
    allowed = library.where(request.where).video_ids()
    known = [each for each in candidates if each.video in matches.videos]
    found = [each for each in known if allowed.issuperset(matches.videos[each.video])]
    if known and not found:
        raise UsageError(f"{request.annotations} asks about no video for which {request.where} holds; widen it")
    items = draw_items(found, request.limit, request.seed)
    if not items:
        raise UsageError(
            f"{context.library} holds none of the {len(matches.missing)} videos that {request.annotations} asks about; "
            f"`kinodex eval check {request.benchmark} {request.annotations} {context.library}` gives the reasons, and "
            "--map FILE can name the videos"
        )
    video_ids = {each.item_id: matches.videos[each.video] for each in items}
    videos = [rows[each] for each in dict.fromkeys(each for ids in video_ids.values() for each in ids)]
    completed, problems = complete_items(items, video_ids, rows, id_map, library.segments)
    space = library.space() if context.space is None else find_filled_space(library, context.space, videos)
    captions = library.additions.counts("captions")
    for contender in request.contenders:
        _check_system(contender, context.choice, videos, "" if space.has_vectors else library.uri)
    _check_leaves_something(library, context.hide, videos)
    models = describe_models(context.choice)
    files = annotation_files(request.benchmark, request.annotations)
    captioned = sum(captions.get(row.video_id, 0) for row in videos)
    hours, frames = sum(row.duration_s for row in videos) / 3600, sum(row.frames for row in videos)
    plan = folder.RunPlan(
        benchmark=benchmark.name,
        title=benchmark.title,
        annotations=str(request.annotations),
        annotations_sha256=hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest(),
        scoring=benchmark.scoring,
        library=library.uri,
        space=str(space),
        contenders=request.contenders,
        models=models if context.detector is None else {**models, "detector": context.detector},
        budget=context.budget,
        hide=context.hide,
        keep_captions=context.keep_captions,
        limit=request.limit,
        seed=request.seed,
        questions=len(benchmark.items),
        items=video_ids,
        missing=matches.missing,
        problems=(*benchmark.problems, *problems),
        index_cost=folder.IndexCost(len(videos), hours, frames, captioned),
        version=version("kinodex"),
        part=str(request.subset),
        rules=context.rules,
        at_once=context.choice.at_once if context.choice.may_use_endpoints else None,
        prices=describe_prices(context.choice),
        states=library.additions.states([row.video_id for row in videos], space.digest),
        contents=local_contents(context.choice, context.detector),
    )
    return plan, completed


def check_same(begun: folder.RunPlan, now: folder.RunPlan, run: Path) -> None:
    """Raise `UsageError` unless the run that a folder holds asks the same as the plan of now."""
    names = [each.name for each in fields(folder.RunPlan) if each.name not in MAY_DIFFER]
    different = [name for name in names if folder.comparable(begun, name) != folder.comparable(now, name)]
    if different:
        changes = "; ".join(_change(begun, now, name) for name in different)
        raise UsageError(
            f"{run} holds another run: {changes}; give the same options to continue it, or another --out for a new run"
        )


def _check_system(contender: Contender, choice: ModelChoice, videos: Sequence[VideoRow], without_vectors: str) -> None:
    """Refuse at once what would end the run in the middle of it."""
    agent = contender.find_variant()
    check_sight(choice, agent)
    with_settings(agent.parameters(max(row.duration_s for row in videos)), contender.settings)
    unpictured = [row.title for row in videos if row.frames == 0]
    check_fit(agent, has_language=choice.has_language, unpictured=unpictured, without_vectors=without_vectors)


def _check_leaves_something(library: Library, hide: Sequence[KindName], videos: Sequence[VideoRow]) -> None:
    """Refuse to hide all that the library holds of a video: without frames, agents read its captions or transcript."""
    words: tuple[KindName, ...] = ("captions", "speech")
    left = [kind for kind in words if kind not in hide]
    empty = [row for row in (videos if hide else ()) if row.frames == 0 and not library.lines.rows(row.video_id, left)]
    if empty:
        raise UsageError(
            f"got --hide {' --hide '.join(hide)}, but of {len(empty)} of the {len(videos)} videos, such as "
            f"{empty[0].title}, the library holds neither frames nor other words; hide less, or import captions"
        )


def _change(begun: folder.RunPlan, now: folder.RunPlan, name: str) -> str:
    if name == "states":
        changed = sorted(id_ for id_, state in begun.states.items() if now.states.get(id_) != state)
        return f"{len(changed)} of the videos changed in the library since, such as {changed[0]}"
    label = FIELD_LABELS.get(name, name)
    was, is_now = _in_words(begun, name), _in_words(now, name)
    return f"{label} was {was} and is now {is_now}" if was != is_now else f"{label} is not the same ({was})"


def _in_words(plan: folder.RunPlan, name: str) -> str:
    value = getattr(plan, name)
    if name == "contenders":
        return ", ".join(each.name + (f" (code {each.code})" if each.code else "") for each in plan.contenders)
    if name == "models":
        return ", ".join(f"{role}: {model}" for role, model in plan.models.items())
    if name == "hide":
        return ", ".join(plan.hide) or "empty"
    if name == "budget":
        limits = [(limit.name, getattr(plan.budget, limit.name)) for limit in fields(plan.budget)]
        units = {"cost": "in cost"}
        return ", ".join(f"{value} {units.get(name, name)}" for name, value in limits if value is not None) or "none"
    if name == "rules":
        rules = folder.comparable(plan, name)
        ending = "early" if rules.early_insufficient else "usual"
        ending = "an answer has to be chosen" if rules.force_choice else ending
        return f"{ending}, verified" if rules.verify else ending
    if name == "prices":
        return "; ".join(f"{role}: {price}" for role, price in plan.prices.items()) or "none"
    if name == "items":
        return f"{len(plan.items)} questions"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)
