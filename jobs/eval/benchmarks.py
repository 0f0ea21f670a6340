"""The benchmarks by name: their readers, published sizes, sources and licences.

One of a user's own is a `BenchmarkInfo` in a Python file, and is named as FILE.py:NAME (docs/evaluation.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Generic

from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.items import AnyItem, Benchmark, Item, MomentBenchmark, Problem, Scoring, SearchItem
from kinodex.jobs.eval.readers import (
    activitynet,
    cgbench,
    charades,
    egoschema,
    longtvqa,
    longvideobench,
    lvbench,
    minerva,
    mlvu,
    mmbench_video,
    momentseeker,
    nextqa,
    own,
    qvhighlights,
    videomme,
    videomme_v2,
)
from kinodex.jobs.eval.row_files import csv_rows, json_lines, json_rows, parquet_rows, tsv_rows
from kinodex.jobs.eval.rows import Raw, RowOf, parse_rows

SUFFIX = ".py"


class UnknownBenchmark(UsageError):
    """An unknown name of a benchmark."""


@dataclass(frozen=True, slots=True)
class BenchmarkInfo(Generic[AnyItem]):
    """Facts of a benchmark: `rows` reads its file, and `row` is the class of a row, whose `item` gives the item.

    `files` are the names of its annotation file, the usual first; `beside` others with it. `sizes` are the (questions,
    videos) of each published part, by its name; a file should have one of them. The number of videos is None where it
    is not known. `episodes`: the video of a question may be several videos of a library, whose names begin with it.
    """

    title: str
    rows: Callable[[Path], Iterable[Raw]]
    row: type[RowOf[AnyItem]]
    files: tuple[str, ...]
    sizes: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    had_from: str = "a file of your own"
    licence: str = "see its page"
    beside: tuple[str, ...] = ()
    scoring: Scoring = "options"
    episodes: bool = False


BENCHMARKS: Mapping[str, BenchmarkInfo[Item]] = {
    "egoschema": BenchmarkInfo(
        "EgoSchema (500)",
        egoschema.egoschema_subset_rows,
        egoschema.EgoSchemaSubsetRow,
        egoschema.EGOSCHEMA_FILES,
        {"subset": (500, 500)},
        "questions.json and subset_answers.json of https://github.com/egoschema/EgoSchema",
        "Ego4D licence",
        beside=(egoschema.EGOSCHEMA_ANSWERS,),
    ),
    "egoschema-full": BenchmarkInfo(
        "EgoSchema",
        egoschema.egoschema_rows,
        egoschema.EgoSchemaRow,
        ("questions.json",),
        {"all": (5031, 5031)},
        "https://github.com/egoschema/EgoSchema, which also says where answers are scored",
        "Ego4D licence",
        beside=(egoschema.EGOSCHEMA_ANSWERS,),
    ),
    "nextqa": BenchmarkInfo(
        "NExT-QA",
        csv_rows,
        nextqa.NextQARow,
        ("val.csv", "test.csv"),
        {"val": (4996, 570), "test": (8564, 1000)},
        "dataset/nextqa of https://github.com/doc-doc/NExT-QA",
        "MIT",
    ),
    "intentqa": BenchmarkInfo(
        "IntentQA",
        csv_rows,
        nextqa.IntentQARow,
        ("test.csv", "val.csv"),
        {"test": (2134, 567), "val": (2044, 524)},
        "https://github.com/JoseponLee/IntentQA",
    ),
    "lvbench": BenchmarkInfo(
        "LVBench",
        lvbench.lvbench_rows,
        lvbench.LVBenchRow,
        ("video_info.meta.jsonl",),
        {"all": (1549, 103)},
        "https://huggingface.co/datasets/zai-org/LVBench",
        "CC-BY-NC-SA-4.0",
    ),
    "video-mme": BenchmarkInfo(
        "Video-MME",
        parquet_rows,
        videomme.VideoMMERow,
        ("test-00000-of-00001.parquet", "videomme/test-00000-of-00001.parquet"),
        {"all": (2700, 900)},
        "https://huggingface.co/datasets/lmms-lab/Video-MME",
        "academic use; not to be handed on without approval",
    ),
    "video-mme-v2": BenchmarkInfo(
        "Video-MME-v2",
        parquet_rows,
        videomme_v2.VideoMMEv2Row,
        ("test.parquet",),
        {"all": (3200, 800)},
        "https://huggingface.co/datasets/MME-Benchmarks/Video-MME-v2",
        "academic research only; not to be handed on without approval",
    ),
    "mlvu": BenchmarkInfo(
        "MLVU",
        mlvu.mlvu_rows,
        mlvu.MLVURow,
        (*mlvu.MLVU_CHOICES, "test_question.json"),
        {"dev": (2174, None), "test": (502, None)},
        "MLVU/json of https://huggingface.co/datasets/MLVU/MVLU",
        "CC-BY-NC-SA-4.0",
        beside=mlvu.MLVU_CHOICES[1:],
    ),
    "mlvu-open": BenchmarkInfo(
        "MLVU, free answers",
        mlvu.mlvu_open_rows,
        mlvu.MLVUOpenRow,
        mlvu.MLVU_OPEN,
        {},
        "MLVU/json of https://huggingface.co/datasets/MLVU/MVLU",
        "CC-BY-NC-SA-4.0",
        beside=mlvu.MLVU_OPEN[1:],
        scoring="judge",
    ),
    "minerva": BenchmarkInfo(
        "MINERVA",
        json_rows,
        minerva.MinervaRow,
        ("minerva.json",),
        {"all": (1515, None)},
        "the file linked from https://github.com/google-deepmind/neptune",
        "CC-BY-4.0",
    ),
    "cg-bench": BenchmarkInfo(
        "CG-Bench",
        json_rows,
        cgbench.CGBenchRow,
        ("cgbench.json", "cgbench_mini.json"),
        {"all": (12129, 1219), "mini": (3000, None)},
        "https://huggingface.co/datasets/CG-Bench/CG-Bench, after asking there",
        "MIT; the videos belong to their owners",
    ),
    "mmbench-video": BenchmarkInfo(
        "MMBench-Video",
        tsv_rows,
        mmbench_video.MMBenchVideoRow,
        ("MMBench-Video.tsv",),
        {"all": (1998, 609)},
        "https://huggingface.co/datasets/opencompass/MMBench-Video",
        "CC-BY-4.0",
        scoring="judge",
    ),
    "longvideobench": BenchmarkInfo(
        "LongVideoBench",
        longvideobench.longvideobench_rows,
        longvideobench.LongVideoBenchRow,
        ("lvb_val.json", "validation-00000-of-00001.parquet"),
        {"val": (1337, None), "test": (5341, None)},
        "https://huggingface.co/datasets/longvideobench/LongVideoBench, after asking there",
        "CC-BY-NC-SA-4.0",
    ),
    "longtvqa": BenchmarkInfo(
        "LongTVQA",
        json_rows,
        longtvqa.LongTVQARow,
        ("LongTVQA_val.jsonl", "LongTVQA_val.json"),
        {"val": (15253, None)},
        "https://huggingface.co/datasets/longvideoagent/LongTVQA",
        episodes=True,
    ),
    "longtvqa-plus": BenchmarkInfo(
        "LongTVQA+",
        json_rows,
        longtvqa.LongTVQARow,
        ("LongTVQA_plus_val.json", "LongTVQA_plus_train.json"),
        {"val": (3017, 188), "train": (23545, None)},
        "https://huggingface.co/datasets/longvideoagent/LongTVQA_plus",
        episodes=True,
    ),
    "own": BenchmarkInfo(
        "Questions of one's own",
        json_lines,
        own.OwnRow,
        ("questions.jsonl",),
        had_from="a file of your own, with a line of JSON for each question: id, video, question, options, answer",
        licence="yours",
    ),
    "own-open": BenchmarkInfo(
        "Open questions of one's own",
        json_lines,
        own.OwnOpenRow,
        ("questions.jsonl",),
        had_from="a file of your own, with a line of JSON for each question: id, video, question, answer",
        licence="yours",
        scoring="judge",
    ),
}

MOMENT_BENCHMARKS: Mapping[str, BenchmarkInfo[SearchItem]] = {
    "momentseeker": BenchmarkInfo(
        "MomentSeeker",
        momentseeker.momentseeker_rows,
        momentseeker.MomentSeekerRow,
        ("t2v.json", "it2v.json", "ti2v.json"),
        {},
        "https://huggingface.co/datasets/avery00/MomentSeeker",
        "CC-BY-NC-SA-4.0",
    ),
    "qvhighlights": BenchmarkInfo(
        "QVHighlights",
        json_lines,
        qvhighlights.QVHighlightsRow,
        ("highlight_val_release.jsonl", "highlight_test_with_gt.jsonl", "highlight_train_release.jsonl"),
        {"val": (1550, None), "test": (1542, None), "train": (7218, None)},
        "data of https://github.com/jayleicn/moment_detr",
        "CC-BY-NC-SA-4.0",
    ),
    "charades-sta": BenchmarkInfo(
        "Charades-STA",
        charades.charades_rows,
        charades.CharadesRow,
        ("charades_sta_test.txt", "charades_sta_train.txt"),
        {"test": (3720, None), "train": (12408, None)},
        "https://github.com/jiyanggao/TALL",
        "see its page; the videos are those of Charades",
    ),
    "activitynet-captions": BenchmarkInfo(
        "ActivityNet Captions",
        activitynet.activitynet_rows,
        activitynet.ActivityNetRow,
        ("val_1.json", "val_2.json", "train.json"),
        {"val_1": (17505, None), "val_2": (17031, None), "train": (37421, None)},
        "https://cs.stanford.edu/people/ranjaykrishna/densevid",
    ),
    "cg-bench": BenchmarkInfo(
        "CG-Bench",
        json_rows,
        cgbench.ClueRow,
        ("cgbench.json", "cgbench_mini.json"),
        {"all": (12129, None), "mini": (3000, None)},
        "https://huggingface.co/datasets/CG-Bench/CG-Bench, after asking there",
        "MIT; the videos belong to their owners",
    ),
    "own": BenchmarkInfo(
        "Searches of one's own",
        own.own_rows,
        own.OwnSearchRow,
        ("searches.jsonl",),
        had_from="a file of your own, with a line of JSON for each search: id, text, video, relevant",
        licence="yours",
    ),
}


def find_benchmark(name: str) -> BenchmarkInfo[Item]:
    """Find the benchmark of this name or FILE.py:NAME; raise `UnknownBenchmark` with the nearest name."""
    return _find(name, BENCHMARKS)


def find_moment_benchmark(name: str) -> BenchmarkInfo[SearchItem]:
    """Find the benchmark of moments of this name or FILE.py:NAME; raise `UnknownBenchmark` with the nearest name."""
    return _find(name, MOMENT_BENCHMARKS)


def annotation_files(name: str, path: Path) -> tuple[Path, ...]:
    """List the file that `path` is, or that it holds as a folder, then those beside it that are read with it.

    The last is the file of a benchmark of one's own. Raises `UsageError` if there is none, with the source of the file.
    """
    info = find_benchmark(name)
    found = _annotations(info, path)
    own = [Path(name.partition(SUFFIX)[0] + SUFFIX)] if SUFFIX in name else []
    return found, *filter(Path.is_file, (found.with_name(each) for each in info.beside)), *own


def read_benchmark(name: str, path: Path) -> Benchmark[Item]:
    """Read the questions in a published file, or in the folder that holds it, and the defects of other rows.

    Raises `UsageError` for a file of something else, in which no row can be read.
    """
    return _read(name, find_benchmark(name), Item, path, "question")


def read_moment_benchmark(name: str, path: Path) -> MomentBenchmark:
    """Read the searches in a published file, as `read_benchmark` does."""
    return _read(name, find_moment_benchmark(name), SearchItem, path, "search", "es")


def _find(name: str, infos: Mapping[str, BenchmarkInfo[AnyItem]]) -> BenchmarkInfo[AnyItem]:
    if name in infos:
        return infos[name]
    if SUFFIX in name:
        found: BenchmarkInfo[AnyItem] = _of_file(name)
        return found
    near = get_close_matches(name.lower(), infos, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UnknownBenchmark(f"got benchmark {name}; {hint}there are {', '.join(infos)}")


@cache
def _of_file(spec: str) -> Any:
    """Return the benchmark of a spec FILE.py:NAME, or the only one of FILE.py.

    Raises any error of the file's own code.
    """
    file, _, name = spec.partition(SUFFIX)
    path, name = Path(file + SUFFIX), name.removeprefix(":")
    if not path.is_file():
        raise UnknownBenchmark(f"there is no file {path}; write FILE.py or FILE.py:NAME, with a BenchmarkInfo in it")
    place = spec_from_file_location(f"benchmark_{path.stem}", path)
    assert place is not None and place.loader is not None
    module = sys.modules[place.name] = module_from_spec(place)  # where type hints look names up
    place.loader.exec_module(module)
    found = {each: value for each, value in vars(module).items() if isinstance(value, BenchmarkInfo)}
    if name not in found and (name or len(found) != 1):
        there = ", ".join(found) or "none"
        raise UnknownBenchmark(f"got {spec}, and of benchmarks {path} has {there}; name one as {path}:NAME")
    return found[name] if name else next(iter(found.values()))


def _read(
    name: str, info: BenchmarkInfo[AnyItem], kind: type[AnyItem], path: Path, what: str, ending: str = "s"
) -> Benchmark[AnyItem]:
    file = _annotations(info, path)
    items, problems = parse_rows(info.rows(file), info.row)
    if not items:
        first = f"; {problems[0].where}: {problems[0].what}" if problems else ""
        raise UsageError(
            f"no {what} of {info.title} can be read from {file}{first}; give the file as it was published; "
            f"source: {info.had_from}"
        )
    if not isinstance(items[0], kind):
        raise UsageError(f"{info.title} is of another kind: a row of it is no {what} but a {type(items[0]).__name__}")
    videos = len({item.video for item in items if isinstance(item, Item)})  # a search may be over all videos
    sizes = info.sizes.values()
    if sizes and not any(count == len(items) and (not videos or about in (None, videos)) for count, about in sizes):
        published = ", ".join(
            f"{part} {count:,}" + (f" about {about:,}" if about else "") for part, (count, about) in info.sizes.items()
        )
        got = f"{len(items):,} {what}{ending}" + (f" about {videos:,} videos" if videos else "")
        problems = (Problem("file", f"got {got}; published: {published}"), *problems)
    return Benchmark(name, info.title, items, problems, info.scoring, info.episodes)


def _annotations(info: BenchmarkInfo[AnyItem], path: Path) -> Path:
    """Return the file that `path` is, or the first of the benchmark's names in the folder that it is."""
    candidates = [path] if path.is_file() else [path / each for each in info.files]
    found = next(filter(Path.is_file, candidates), None)
    if found is None:
        raise UsageError(
            f"{path} neither is nor holds an annotation file of {info.title}: {' or '.join(info.files)}; "
            f"give its path; source: {info.had_from}"
        )
    return found
