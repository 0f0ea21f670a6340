"""What a run will ask: questions whose videos the library holds, of whom, with which models, within which limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path

from agent.variants.base import changed
from agent.variants.registry import refuse_unfit
from index.library import Library
from index.rows import VideoRow
from jobs.benchmarks.match_videos import match, read_id_map
from jobs.benchmarks.registry import annotation_files, read_benchmark
from jobs.benchmarks.sample import Sample
from jobs.benchmarks.subset import Subset, draw_samples, select_samples
from jobs.errors import UsageError
from jobs.evaluation.run.run_folder import IndexCost, Plan
from jobs.evaluation.run.solve import RunContext
from jobs.evaluation.run.systems import System
from jobs.model_choice import named_models
from jobs.open_library import check_vectors, held_space

ASIDE = {"title", "annotations", "questions", "missing", "problems", "index_cost"}
"""Of a plan, what two runs may differ in and still ask the same: where files are, and what the library also holds."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Which questions of which benchmark, and of whom. `id_map` is a file that says how the library names videos."""

    benchmark: str
    annotations: Path
    contenders: tuple[System, ...]
    id_map: Path | None = None
    limit: int | None = None
    seed: int = 0
    part: Subset = field(default_factory=Subset)


def make_plan(wanted: RunRequest, setting: RunContext) -> tuple[Plan, tuple[Sample, ...]]:
    """The plan of a run, and the questions that it asks, in the benchmark's order.

    Where the benchmark tells no `duration_s` it is the library's, and the clip of a truth goes by the id of its video
    there. Raises `UsageError` if no question is left or the library lacks the space, `SpaceMismatch` if a video has no
    vectors in it, and what an agent raises that cannot play with these settings.
    """
    benchmark = read_benchmark(wanted.benchmark, wanted.annotations)
    library = Library.open(setting.library)
    rows = {row.video_id: row for row in library.videos()}
    id_map = None if wanted.id_map is None else read_id_map(wanted.id_map)
    asked_for = select_samples(benchmark.samples, wanted.part)
    matching = match(asked_for, list(rows.values()), id_map, benchmark.episodes)
    items = draw_samples([item for item in asked_for if item.video in matching.videos], wanted.limit, wanted.seed)
    if not items:
        raise _nothing_left(wanted, setting.library, len(matching.missing))
    about = {item.item_id: matching.videos[item.video] for item in items}
    videos = [rows[video_id] for video_id in dict.fromkeys(each for ids in about.values() for each in ids)]
    space = held_space(library, setting.space)
    check_vectors(library, space, videos)
    captions = library.caption_counts()
    models = named_models(setting.choice)
    for contender in wanted.contenders:
        _check(contender, models, videos)
    if not setting.subtitles:
        _check_words(captions, videos)
    plan = Plan(
        benchmark=benchmark.name,
        title=benchmark.title,
        annotations=str(wanted.annotations),
        annotations_sha256=_digest(annotation_files(wanted.benchmark, wanted.annotations)),
        scoring=benchmark.scoring,
        library=library.uri,
        space=str(space),
        contenders=wanted.contenders,
        models=models if setting.detector is None else {**models, "detector": setting.detector},
        budget=setting.budget,
        subtitles=setting.subtitles,
        keep_captions=setting.keep_captions,
        limit=wanted.limit,
        seed=wanted.seed,
        questions=len(benchmark.samples),
        items=about,
        missing=matching.missing,
        problems=benchmark.problems,
        index_cost=_index_cost(captions, videos),
        version=version("kinodex"),
        part=str(wanted.part),
    )
    return plan, _known_here(items, about, rows, id_map)


def check_same(begun: Plan, now: Plan, run: Path) -> None:
    """Raise `UsageError` unless a run that was begun in a folder asks what is wanted now."""
    names = [each.name for each in fields(Plan) if each.name not in ASIDE]
    different = [name for name in names if getattr(begun, name) != getattr(now, name)]
    if different:
        told = "; ".join(f"{name} was {_brief(begun, name)} and is now {_brief(now, name)}" for name in different)
        raise UsageError(
            f"{run} holds another run: {told}; give the same options to go on with it, or another --out to begin anew"
        )


def _check(contender: System, models: Mapping[str, str], videos: Sequence[VideoRow]) -> None:
    """Refuse at once what would end the run in the middle of it."""
    agent = contender.variant()
    changed(agent.parameters(max(row.duration_s for row in videos)), contender.settings)
    speechless = models.get("policy", models.get("default")) == "builtin"
    refuse_unfit(agent, has_language=not speechless, unpictured=[row.title for row in videos if row.frames == 0])


def _check_words(captions: Mapping[str, int], videos: Sequence[VideoRow]) -> None:
    """Refuse to hide the transcript of videos of which the library holds nothing else."""
    silent = [row for row in videos if row.frames == 0 and not captions.get(row.video_id)]
    if silent:
        raise UsageError(
            f"got --no-subtitles, but of {len(silent)} of the {len(videos)} videos, such as {silent[0].title}, the "
            "library holds a transcript alone; leave the option out, or import captions"
        )


def _nothing_left(wanted: RunRequest, library: str, missing: int) -> UsageError:
    return UsageError(
        f"{library} holds none of the {missing} videos that {wanted.annotations} asks about; "
        f"`kinodex eval check {wanted.benchmark} {wanted.annotations} {library}` says why, and --map FILE can name them"
    )


def _known_here(
    items: Sequence[Sample],
    about: Mapping[str, tuple[str, ...]],
    rows: Mapping[str, VideoRow],
    id_map: Mapping[str, str] | None,
) -> tuple[Sample, ...]:
    """The items with what the library knows of their videos."""
    clips = [replace(item, video=item.truth.clip) for item in items if item.truth.clip is not None]
    ids = {name: found[0] for name, found in match(clips, list(rows.values()), id_map, episodes=False).videos.items()}
    return tuple(
        replace(
            item,
            duration_s=item.duration_s or sum(rows[video_id].duration_s for video_id in about[item.item_id]),
            truth=replace(item.truth, clip=ids.get(item.truth.clip or "", item.truth.clip)),
        )
        for item in items
    )


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _index_cost(captions: Mapping[str, int], videos: Sequence[VideoRow]) -> IndexCost:
    hours = sum(row.duration_s for row in videos) / 3600
    captioned = sum(captions.get(row.video_id, 0) for row in videos)
    return IndexCost(len(videos), hours, sum(row.frames for row in videos), captioned)


def _brief(plan: Plan, name: str) -> str:
    value = getattr(plan, name)
    if name == "contenders":
        return ", ".join(each.name + (f" (code {each.code})" if each.code else "") for each in plan.contenders)
    return f"of {len(value)} questions" if name == "items" else str(value)
