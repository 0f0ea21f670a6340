"""A library, questions and a master of random weights, for the tests of training."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from kinodex.jobs.ingest.config import IngestConfig
from kinodex.jobs.ingest.run import run_ingest
from kinodex.pipeline.sources import list_sources
from tests.support.models.training_model import tiny_master, words_tokenizer
from tests.world.drawn_space import DRAWN
from tests.world.sketch.questions import write_questions
from tests.world.sketch.render import render_film
from tests.world.sketch.script import subtitles, write_script


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """A library of one short sketch film with a narrator, questions about it, and a master of random weights."""
    home: Path = tmp_path_factory.mktemp("training")
    script = write_script("film-01", 30.0, 0, spoken=True)
    render_film(script, home / "film-01.mp4")
    (home / "film-01.srt").write_text(subtitles(script))
    run_ingest(IngestConfig(space=DRAWN, workers=1), list_sources([str(home / "film-01.mp4")]), str(home / "library"))
    rows = [asdict(question) for question in write_questions(script, "film-01.mp4", 0)]
    (home / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tiny_master(home / "model", words_tokenizer([str(row["question"]) for row in rows], words=6))
    return home
