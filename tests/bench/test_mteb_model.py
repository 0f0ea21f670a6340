"""A space as a model of MTEB, on two tasks made of a library: words to frames, and words to videos."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kinodex.index.library import Library
from tests.support.house.once import KEPT, made_for_all_runs

pytestmark = [pytest.mark.third_party, pytest.mark.slow, pytest.mark.timeout(600)]
PACKAGES = ("mteb==2.26.24", "polars==2.1.0", "polars-runtime-32==2.1.0", "sentence-transformers==6.2.0")
"""Those that MTEB imports and this environment lacks."""
QUERIES = {"q0": "an orange anchor at sea", "q1": "a purple dog", "q2": "a white fish"}
PROGRAM = """
import json, sys
from kinodex.index.spaces.import_torch import import_torchvision
import_torchvision()  # one that was built for CUDA, beside a torch that was not
import mteb, numpy as np
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.abstasks.task_metadata import TaskMetadata
from PIL import Image
from tests.bench.mteb_model import SpaceModel
from tests.world.drawn_space import DRAWN

facts = json.load(open("facts.json"))
common = dict(description="films", reference=None, dataset={"path": "NA", "revision": "NA"}, eval_splits=["test"],
    eval_langs=["eng-Latn"], main_score="recall_at_1", date=("2026-01-01", "2026-01-01"), domains=[], task_subtypes=[],
    license="cc-by-4.0", annotations_creators="derived", dialect=[], sample_creation="found", bibtex_citation="")


def task_of(kind, corpus, relevant):
    class Films(AbsTaskRetrieval):
        metadata = TaskMetadata(type="Any2AnyRetrieval", name=f"Films{kind}", category="t2i", **common,
            modalities=["text", "image"])

        def load_data(self, num_proc=None, **kwargs):
            queries = Dataset.from_dict({"id": list(facts["queries"]), "text": list(facts["queries"].values())})
            split = RetrievalSplitData(queries=queries, corpus=corpus, relevant_docs=relevant, top_ranked=None)
            self.dataset, self.data_loaded = {"default": {"test": split}}, True

    return Films()


frames = Dataset.from_dict({"id": list(facts["frames"]), "image": [Image.open(f) for f in facts["frames"].values()]})
relevant = {query: {facts["best"][query]: 1} for query in facts["queries"]}
model = SpaceModel(DRAWN)
result = mteb.evaluate(model, task_of("Frames", frames, relevant), cache=None)
scores = result.task_results[0].scores["test"][0]
films = [[Image.open(facts["frames"][each]) for each in some] for some in facts["films"].values()]
tensors = [np.stack([np.asarray(each.convert("RGB")).transpose(2, 0, 1) for each in some]) for some in films]
vectors = model.encode([{"video": tensors}])
means = model.encode([{"video": films}])
print(json.dumps({"recall_at_1": scores["recall_at_1"], "model": result.model_name,
    "alike": model.similarity_pairwise(vectors, means).tolist(), "shape": vectors.shape}))
"""


def mteb_folder() -> Path:
    """The packages in a folder of their own, for this environment has what they need; skips where there is no index."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *PACKAGES]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mteb cannot be had: {done.stderr.strip()[-200:]}")

    return made_for_all_runs(KEPT / "mteb-2.26.24", install)


def test_mteb_scores_a_space_as_a_library_searches_in_it(library: Library, root: Path, tmp_path: Path) -> None:
    opened = Library.open(str(library))
    tower = opened.load_space(None, "text")
    frames: dict[str, str] = {}
    films: dict[str, list[str]] = {}
    for video in opened.videos():
        numbers = opened.vectors(video.video_id).frame_no[::6].tolist()
        for frame in opened.frames(video.video_id, numbers):
            name = f"{video.title}-{frame.frame_no}"
            frames[name] = str(tmp_path / f"{name}.jpg")
            Path(frames[name]).write_bytes(frame.jpeg)
            films.setdefault(video.title, []).append(name)
    best = {}
    for query, text in QUERIES.items():
        hits = opened.search.frames(tower.embed_text([text])[0], k=500)
        titles = {video.video_id: video.title for video in opened.videos()}
        names = [f"{titles[hit.video_id]}-{hit.frame_no}" for hit in hits]
        best[query] = next(name for name in names if name in frames)
    (tmp_path / "facts.json").write_text(
        json.dumps({"queries": QUERIES, "frames": frames, "films": films, "best": best})
    )
    paths = os.pathsep.join([str(mteb_folder()), str(root)])
    own = {
        **os.environ,
        "PYTHONPATH": paths,
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(tmp_path),
    }
    ran = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, env=own, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert (found["model"], found["shape"]) == ("kinodex/towers", [3, 256])
    assert found["recall_at_1"] >= 2 / 3, (
        "the frame that a search finds first, but for the JPEG that it is made of again"
    )
    assert min(found["alike"]) > 0.999, "a video is its frames, as a tensor or as pictures"
