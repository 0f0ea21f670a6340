"""Annotation files of made-up rows, in the form and under the name in which each benchmark is published."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kinodex.jobs.eval.benchmarks import read_benchmark
from kinodex.jobs.eval.items import Benchmark, Item
from tests.world.benchmark import SKETCHES

Rows = Sequence[Mapping[str, Any]]

CHOICES = ("a kite", "a drum", "a ladder", "a lamp", "a boat")


def ego_row(q_uid: str = "uid-1", **changes: Any) -> dict[str, Any]:
    options = {f"option {number}": f"C mends {choice}." for number, choice in enumerate(CHOICES)}
    return {"q_uid": q_uid, "google_drive_id": "x", "question": "What is C's aim?", **options, "truth": 3, **changes}


def nextqa_row(video: str = "111", qid: str = "0", **changes: Any) -> dict[str, Any]:
    size = {"frame_count": 300, "width": 640, "height": 480}
    options = {f"a{number}": choice for number, choice in enumerate(CHOICES)}
    asked = {"question": "what does the girl hold", "answer": 2, "qid": qid, "type": "CW"}
    return {"video": video, **size, **asked, **options, **changes}


def intentqa_row(video_id: str = "111", qid: str = "0", **changes: Any) -> dict[str, Any]:
    row = nextqa_row(qid=qid, **changes)
    return {"video_id": video_id, **{k: v for k, v in row.items() if k != "video"}, "action": "holding", "lemma_id": 1}


def lvbench_question(uid: str = "55", **changes: Any) -> dict[str, Any]:
    text = "What is on the roof?\n(A) a kite\n(B) a drum\n(C) a ladder\n(D) a lamp"
    kinds = ["key information retrieval", "reasoning"]
    asked = {"uid": uid, "question": text, "answer": "C", "question_type": kinds, "time_reference": "01:15-01:19"}
    return {**asked, **changes}


def lvbench_row(key: str = "aBc-1_x", questions: Rows = (), **changes: Any) -> dict[str, Any]:
    info = {"duration_minutes": 61.5, "fps": 30.0, "resolution": {"width": 640, "height": 360}}
    return {"key": key, "type": "sport", "video_info": info, "qa": questions or [lvbench_question()], **changes}


def video_mme_row(question_id: str = "001-1", **changes: Any) -> dict[str, Any]:
    film = {"video_id": "001", "duration": "long", "domain": "Knowledge", "sub_category": "Law", "videoID": "fFj-1_x"}
    options = [f"{letter}. {choice}." for letter, choice in zip("ABCD", CHOICES, strict=False)]
    asked = {"task_type": "Counting Problem", "question": "What is held?", "options": options, "answer": "D"}
    return {**film, "url": "https://example.org", "question_id": question_id, **asked, **changes}


def mmbench_row(index: int = 0, **changes: Any) -> dict[str, Any]:
    film = {"index": index, "video": "v1_processed", "video_path": "./video/v1_processed.mp4"}
    asked = {
        "question": "What is on the roof?",
        "answer": "A ladder.",
        "dimensions": "['OCR', 'Counting', 'Natural Relation']",
    }
    return {**film, "video_type": "News", **asked, **changes}


def longvideobench_row(id_: str = "xyz_0", **changes: Any) -> dict[str, Any]:
    asked = {
        "question": "After the man waves, what does he hold?",
        "question_wo_referring_query": "What does he hold?",
        "candidates": list(CHOICES[:4]),
        "correct_choice": 1,
        "position": [100, 200],
        "topic_category": "KA",
        "question_category": "T2E",
        "level": "L1",
    }
    film = {"video_id": "xyz", "video_path": "xyz.mp4", "subtitle_path": "xyz_en.json", "duration_group": 600}
    return {"id": id_, **asked, **film, "starting_timestamp_for_subtitles": 0, "duration": 321.5, **changes}


def longtvqa_row(qid: int = 7, **changes: Any) -> dict[str, Any]:
    options = {f"a{number}": choice for number, choice in enumerate(CHOICES)}
    where = {"episode_name": "s05e06", "occur_clip": "s05e06_seg02_clip_15", "ts": [12.3, 20.11]}
    boxes = {"14": [{"img_id": 14, "top": 1, "left": 2, "width": 3, "height": 4, "label": "ladder"}]}
    return {"qid": qid, "q": "What does Amy hold ?", **options, "answer": "a4", **where, "bbox": boxes, **changes}


def sketch_row(question_id: str = "film-01-001", **changes: Any) -> dict[str, Any]:
    asked = {"question": "What appears first?", "options": ["a cat", "a kite", "a bird"], "answer": 1}
    film = {"question_id": question_id, "video": "film-01.mp4", "kind": "first", "asks": "first"}
    return {**film, **asked, "evidence": [3.5, 8.0], **changes}


def video_mme_v2_row(question_id: str = "001-1", **changes: Any) -> dict[str, Any]:
    options = "\n".join(f"{letter}. {choice}." for letter, choice in zip("ABCDE", CHOICES, strict=True))
    film = {"video_id": "001", "url": "https://example.org", "question_id": question_id}
    group = {"group_type": "logic", "group_structure": "[1, [2, 3], 4]", "level": "2"}
    heads = {"second_head": "Order", "third_head": "Order of events"}
    return {**film, "question": "What is held?", "options": options, "answer": "D", **group, **heads, **changes}


def mlvu_row(video: str = "movie101_66.mp4", **changes: Any) -> dict[str, Any]:
    film = {"video": video, "duration": 246}
    asked = {"question": "What is held?", "candidates": list(CHOICES[:4]), "answer": "a lamp"}
    return {**film, **asked, "question_type": "plotQA", **changes}


def mlvu_open_row(video: str = "subPlot_new_all_69.mp4", **changes: Any) -> dict[str, Any]:
    asked = {"question": "What does the man do at the door?", "answer": "He knocks and leaves."}
    points = {"scoring_points": "1. He knocks. 2. He leaves."}
    return {"video": video, "duration": 541.5, **asked, "question_type": "subPlot", **points, **changes}


def minerva_row(key: str = "a:1", **changes: Any) -> dict[str, Any]:
    options = {f"answer_choice_{number}": choice for number, choice in enumerate(CHOICES)}
    asked = {"question": "What is held after the second goal?", "answer": "a lamp", **options, "answer_id": 3}
    kinds = {"question_type": "Temporal Reasoning, Counting", "split": "Sports", "category": "Football"}
    return {"key": key, "video_id": "fFj-1_x", **asked, "reasoning": "At 01:05 a lamp.", **kinds, **changes}


def cg_bench_row(qid: int = 1, **changes: Any) -> dict[str, Any]:
    asked = {"question": "What is held?", "answer": "a ladder", "choices": list(CHOICES), "right_answer": "C"}
    film = {"video_uid": "9kGB4ITqFjI", "duration": 1853, "domain": "Life Record", "sub_category": "Object Perception"}
    return {"qid": qid, **film, **asked, "clue_intervals": [[8, 18], [120.5, 131]], **changes}


def write_csv(path: Path, rows: Rows, delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def write_tsv(path: Path, rows: Rows) -> None:
    write_csv(path, rows, "\t")


def write_json(path: Path, rows: object) -> None:
    path.write_text(json.dumps(rows), encoding="utf-8")


def write_lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_parquet(path: Path, rows: Rows) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def own_row(name: str = "1", **changes: Any) -> dict[str, Any]:
    asked = {"question": "What is on the roof?", "options": ["a kite", "a drum", "a ladder"], "answer": "a drum"}
    return {"id": name, "video": "film-01.mp4", **asked, **changes}


def own_open_row(name: str = "1", **changes: Any) -> dict[str, Any]:
    row = own_row(name, answer="A drum.", **changes)
    return {key: value for key, value in row.items() if key != "options"}


def _by_id(path: Path, rows: Rows) -> None:
    write_json(path, {row["q_uid"]: row for row in rows})


Form = tuple[str, Callable[[Path, Rows], None], Callable[..., dict[str, Any]]]
PUBLISHED: Mapping[str, Form] = {
    "egoschema": ("subset_anno.json", _by_id, ego_row),
    "egoschema-full": ("questions.json", write_json, ego_row),
    "nextqa": ("val.csv", write_csv, nextqa_row),
    "intentqa": ("test.csv", write_csv, intentqa_row),
    "lvbench": ("video_info.meta.jsonl", write_lines, lvbench_row),
    "video-mme": ("test-00000-of-00001.parquet", write_parquet, video_mme_row),
    "video-mme-v2": ("test.parquet", write_parquet, video_mme_v2_row),
    "mlvu": ("1_plotQA.json", write_json, mlvu_row),
    "mlvu-open": ("8_sub_scene.json", write_json, mlvu_open_row),
    "minerva": ("minerva.json", write_json, minerva_row),
    "cg-bench": ("cgbench.json", write_json, cg_bench_row),
    "mmbench-video": ("MMBench-Video.tsv", write_tsv, mmbench_row),
    "longvideobench": ("lvb_val.json", write_json, longvideobench_row),
    "longtvqa": ("LongTVQA_val.jsonl", write_json, longtvqa_row),
    "longtvqa-plus": ("LongTVQA_plus_val.json", write_json, longtvqa_row),
    "own": ("questions.jsonl", write_lines, own_row),
    "own-open": ("questions.jsonl", write_lines, own_open_row),
}
"""By name: how its file is called, how it is written, and a row of it to change."""
FILES: Mapping[str, Form] = {**PUBLISHED, SKETCHES: ("questions.jsonl", write_lines, sketch_row)}


def published(folder: Path, name: str, *rows: Mapping[str, Any]) -> Path:
    """Writes a benchmark's file of these rows, or of one made-up row, and gives its path."""
    file, write, row = FILES[name]
    write(folder / file, rows or [row()])
    return folder / file


def read(folder: Path, name: str, *rows: Mapping[str, Any]) -> Benchmark[Item]:
    """Write a benchmark's file of these rows, or of one made-up row, and read it."""
    return read_benchmark(name, published(folder, name, *rows))


def problems(benchmark: Benchmark[Any]) -> list[tuple[str, str]]:
    """The problems of rows, without that of the whole file, which made-up files always have: they are short."""
    return [(each.where, each.what) for each in benchmark.problems if each.where != "file"]
