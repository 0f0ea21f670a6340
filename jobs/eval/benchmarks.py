"""The benchmarks by name: their readers, published sizes, sources and licences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.readers import choices, moments, others
from kinodex.jobs.eval.samples import Benchmark, MomentBenchmark, ParsedMoments, ParsedRows, Problem, Sample, Scoring


class UnknownBenchmark(UsageError):
    """An unknown name of a benchmark."""


Info = TypeVar("Info")


@dataclass(frozen=True, slots=True)
class BenchmarkInfo:
    """Facts of a benchmark. `files` are the names of its annotation file, the usual first; `beside` others with it.

    `sizes` are the (questions, videos) of each published part, by its name; a file should have one of them. The number
    of videos is None where it is not known.
    """

    title: str
    read: Callable[[Path], ParsedRows]
    files: tuple[str, ...]
    sizes: Mapping[str, tuple[int, int | None]]
    had_from: str
    licence: str
    beside: tuple[str, ...] = ()
    scoring: Scoring = "options"
    episodes: bool = False


BENCHMARKS: Mapping[str, BenchmarkInfo] = {
    "egoschema": BenchmarkInfo(
        "EgoSchema (500)",
        others.read_subset,
        others.FILES,
        {"subset": (500, 500)},
        "questions.json and subset_answers.json of https://github.com/egoschema/EgoSchema",
        "Ego4D licence",
        beside=(others.ANSWERS,),
    ),
    "egoschema-full": BenchmarkInfo(
        "EgoSchema",
        others.read_full,
        ("questions.json",),
        {"all": (5031, 5031)},
        "https://github.com/egoschema/EgoSchema, which also says where answers are scored",
        "Ego4D licence",
        beside=(others.ANSWERS,),
    ),
    "nextqa": BenchmarkInfo(
        "NExT-QA",
        others.read_nextqa,
        ("val.csv", "test.csv"),
        {"val": (4996, 570), "test": (8564, 1000)},
        "dataset/nextqa of https://github.com/doc-doc/NExT-QA",
        "MIT",
    ),
    "intentqa": BenchmarkInfo(
        "IntentQA",
        others.read_intentqa,
        ("test.csv", "val.csv"),
        {"test": (2134, 567), "val": (2044, 524)},
        "https://github.com/JoseponLee/IntentQA",
        "see its page",
    ),
    "lvbench": BenchmarkInfo(
        "LVBench",
        choices.read_lvbench,
        ("video_info.meta.jsonl",),
        {"all": (1549, 103)},
        "https://huggingface.co/datasets/zai-org/LVBench",
        "CC-BY-NC-SA-4.0",
    ),
    "video-mme": BenchmarkInfo(
        "Video-MME",
        choices.read_video_mme,
        ("test-00000-of-00001.parquet", "videomme/test-00000-of-00001.parquet"),
        {"all": (2700, 900)},
        "https://huggingface.co/datasets/lmms-lab/Video-MME",
        "academic use; not to be handed on without approval",
    ),
    "video-mme-v2": BenchmarkInfo(
        "Video-MME-v2",
        choices.read_video_mme_v2,
        ("test.parquet",),
        {"all": (3200, 800)},
        "https://huggingface.co/datasets/MME-Benchmarks/Video-MME-v2",
        "academic research only; not to be handed on without approval",
    ),
    "mlvu": BenchmarkInfo(
        "MLVU",
        choices.read_choices,
        (*choices.CHOICE_FILES, "test_question.json"),
        {"dev": (2174, None), "test": (502, None)},
        "MLVU/json of https://huggingface.co/datasets/MLVU/MVLU",
        "CC-BY-NC-SA-4.0",
        beside=choices.CHOICE_FILES[1:],
    ),
    "mlvu-open": BenchmarkInfo(
        "MLVU, free answers",
        choices.read_open_ended,
        choices.OPEN_FILES,
        {},
        "MLVU/json of https://huggingface.co/datasets/MLVU/MVLU",
        "CC-BY-NC-SA-4.0",
        beside=choices.OPEN_FILES[1:],
        scoring="judge",
    ),
    "minerva": BenchmarkInfo(
        "MINERVA",
        choices.read_minerva,
        ("minerva.json",),
        {"all": (1515, None)},
        "the file linked from https://github.com/google-deepmind/neptune",
        "CC-BY-4.0",
    ),
    "cg-bench": BenchmarkInfo(
        "CG-Bench",
        choices.read_cg_bench,
        ("cgbench.json", "cgbench_mini.json"),
        {"all": (12129, 1219), "mini": (3000, None)},
        "https://huggingface.co/datasets/CG-Bench/CG-Bench, after asking there",
        "MIT; the videos belong to their owners",
    ),
    "mmbench-video": BenchmarkInfo(
        "MMBench-Video",
        others.read_mmbench_video,
        ("MMBench-Video.tsv",),
        {"all": (1998, 609)},
        "https://huggingface.co/datasets/opencompass/MMBench-Video",
        "CC-BY-4.0",
        scoring="judge",
    ),
    "longvideobench": BenchmarkInfo(
        "LongVideoBench",
        others.read_longvideobench,
        ("lvb_val.json", "validation-00000-of-00001.parquet"),
        {"val": (1337, None), "test": (5341, None)},
        "https://huggingface.co/datasets/longvideobench/LongVideoBench, after asking there",
        "CC-BY-NC-SA-4.0",
    ),
    "longtvqa": BenchmarkInfo(
        "LongTVQA",
        others.read_longtvqa,
        ("LongTVQA_val.jsonl", "LongTVQA_val.json"),
        {"val": (15253, None)},
        "https://huggingface.co/datasets/longvideoagent/LongTVQA",
        "see its page",
        episodes=True,
    ),
    "longtvqa-plus": BenchmarkInfo(
        "LongTVQA+",
        others.read_longtvqa,
        ("LongTVQA_plus_val.json", "LongTVQA_plus_train.json"),
        {"val": (3017, 188), "train": (23545, None)},
        "https://huggingface.co/datasets/longvideoagent/LongTVQA_plus",
        "see its page",
        episodes=True,
    ),
    "own": BenchmarkInfo(
        "Questions of one's own",
        others.read_multiple_choice,
        ("questions.jsonl",),
        {},
        "a file of your own, with a line of JSON for each question: id, video, question, options, answer",
        "yours",
    ),
    "own-open": BenchmarkInfo(
        "Open questions of one's own",
        others.read_open_ended,
        ("questions.jsonl",),
        {},
        "a file of your own, with a line of JSON for each question: id, video, question, answer",
        "yours",
        scoring="judge",
    ),
    "sketch": BenchmarkInfo(
        "Sketch world",
        others.read_synthetic,
        ("questions.jsonl",),
        {},
        "kinodex sample FOLDER --hours 4",
        "yours: the films are drawn by code",
    ),
}


def find_benchmark(name: str) -> BenchmarkInfo:
    """Find the benchmark of this name; raise `UnknownBenchmark` with the nearest name."""
    return find_by_name(name, BENCHMARKS)


def find_by_name(name: str, infos: Mapping[str, Info]) -> Info:
    """Find the facts of this name; raise `UnknownBenchmark` with the nearest name."""
    if name in infos:
        return infos[name]
    near = get_close_matches(name.lower(), infos, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UnknownBenchmark(f"got benchmark {name}; {hint}there are {', '.join(infos)}")


def annotation_files(name: str, path: Path) -> tuple[Path, ...]:
    """List the file that `path` is, or that it holds as a folder, then those beside it that are read with it.

    Raises `UsageError` if there is none, with the source of the file.
    """
    info = find_benchmark(name)
    found = find_file(path, info.title, info.files, info.had_from)
    return found, *filter(Path.is_file, (found.with_name(each) for each in info.beside))


def find_file(path: Path, title: str, names: Sequence[str], had_from: str) -> Path:
    """Find the file that `path` is, or the first of these names in the folder that it is; raises `UsageError`."""
    candidates = [path] if path.is_file() else [path / each for each in names]
    found = next(filter(Path.is_file, candidates), None)
    if found is None:
        raise UsageError(
            f"{path} neither is nor holds an annotation file of {title}: {' or '.join(names)}; "
            f"give its path; source: {had_from}"
        )
    return found


def read_benchmark(name: str, path: Path) -> Benchmark:
    """Read the questions in a published file, or in the folder that holds it, and the defects of other rows.

    Raises `UsageError` for a file of something else, in which no row can be read.
    """
    info = find_benchmark(name)
    file, *_ = annotation_files(name, path)
    items, problems = info.read(file)
    if not items:
        first = f"; {problems[0].where}: {problems[0].what}" if problems else ""
        raise UsageError(
            f"no question of {info.title} can be read from {file}{first}; give the file as it was "
            f"published; source: {info.had_from}"
        )
    problems = (*_sizes(info, items), *problems)
    return Benchmark(name, info.title, items, problems, info.scoring, info.episodes)


def _sizes(info: BenchmarkInfo, items: tuple[Sample, ...]) -> tuple[Problem, ...]:
    questions, videos = len(items), len({item.video for item in items})
    if not info.sizes or any(
        questions == expected[0] and expected[1] in (None, videos) for expected in info.sizes.values()
    ):
        return ()
    published = ", ".join(
        f"{part} {expected[0]:,}" + (f" about {expected[1]:,}" if expected[1] else "")
        for part, expected in info.sizes.items()
    )
    return (Problem("file", f"got {questions:,} questions about {videos:,} videos; published: {published}"),)


# The benchmarks of moments by name: their readers, sources and licences.


@dataclass(frozen=True, slots=True)
class MomentBenchmarkInfo:
    """Facts of a benchmark of moments. `files` are the names of its annotation file, the usual first.

    `sizes` are the numbers of searches of each published part, by its name; empty where they are not known.
    """

    title: str
    read: Callable[[Path], ParsedMoments]
    files: tuple[str, ...]
    sizes: Mapping[str, int]
    had_from: str
    licence: str


MOMENT_BENCHMARKS: Mapping[str, MomentBenchmarkInfo] = {
    "momentseeker": MomentBenchmarkInfo(
        "MomentSeeker",
        moments.read_momentseeker,
        ("t2v.json", "it2v.json", "ti2v.json"),
        {},
        "https://huggingface.co/datasets/avery00/MomentSeeker",
        "CC-BY-NC-SA-4.0",
    ),
    "qvhighlights": MomentBenchmarkInfo(
        "QVHighlights",
        moments.read_qvhighlights,
        ("highlight_val_release.jsonl", "highlight_test_with_gt.jsonl", "highlight_train_release.jsonl"),
        {"val": 1550, "test": 1542, "train": 7218},
        "data of https://github.com/jayleicn/moment_detr",
        "CC-BY-NC-SA-4.0",
    ),
    "charades-sta": MomentBenchmarkInfo(
        "Charades-STA",
        moments.read_charades_sta,
        ("charades_sta_test.txt", "charades_sta_train.txt"),
        {"test": 3720, "train": 12408},
        "https://github.com/jiyanggao/TALL",
        "see its page; the videos are those of Charades",
    ),
    "activitynet-captions": MomentBenchmarkInfo(
        "ActivityNet Captions",
        moments.read_activitynet_captions,
        ("val_1.json", "val_2.json", "train.json"),
        {"val_1": 17505, "val_2": 17031, "train": 37421},
        "https://cs.stanford.edu/people/ranjaykrishna/densevid",
        "see its page",
    ),
    "cg-bench": MomentBenchmarkInfo(
        "CG-Bench",
        moments.read_cg_bench,
        ("cgbench.json", "cgbench_mini.json"),
        {"all": 12129, "mini": 3000},
        "https://huggingface.co/datasets/CG-Bench/CG-Bench, after asking there",
        "MIT; the videos belong to their owners",
    ),
    "own": MomentBenchmarkInfo(
        "Searches of one's own",
        moments.read_own,
        ("searches.jsonl",),
        {},
        "a file of your own, with a line of JSON for each search: id, text, video, relevant",
        "yours",
    ),
}


def find_moment_benchmark(name: str) -> MomentBenchmarkInfo:
    """Find the benchmark of moments of this name; raise `UnknownBenchmark` with the nearest name."""
    return find_by_name(name, MOMENT_BENCHMARKS)


def read_moment_benchmark(name: str, path: Path) -> MomentBenchmark:
    """Read the samples in a published file, or in the folder that holds it, and the defects of other rows.

    Raises `UsageError` for a file of something else, in which no row can be read.
    """
    info = find_moment_benchmark(name)
    file = find_file(path, info.title, info.files, info.had_from)
    samples, problems = info.read(file)
    if not samples:
        first = f"; {problems[0].where}: {problems[0].what}" if problems else ""
        raise UsageError(
            f"no search of {info.title} can be read from {file}{first}; give the file as it was "
            f"published; source: {info.had_from}"
        )
    return MomentBenchmark(name, info.title, samples, (*_moment_sizes(info, len(samples)), *problems))


def _moment_sizes(info: MomentBenchmarkInfo, searches: int) -> tuple[Problem, ...]:
    if not info.sizes or searches in info.sizes.values():
        return ()
    published = ", ".join(f"{part} {size:,}" for part, size in info.sizes.items())
    return (Problem("file", f"got {searches:,} searches; published: {published}"),)
