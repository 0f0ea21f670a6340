"""The bench of decoders, the films it makes, and spaces of random weights."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from kinodex.index.spaces.export_tokenizer import export_tokenizer
from kinodex.index.spaces.import_torch import import_open_clip
from kinodex.index.spaces.space import load_space
from kinodex.index.spaces.tokenizer import Tokenizer
from kinodex.jobs.errors import UsageError
from kinodex.pipeline.errors import SourceMissing
from tests.bench import random_space
from tests.bench.conftest import FILM_S
from tests.bench.decoders import bench_decoders, make_films, table
from tests.bench.random_space import write_random_tokenizer


@pytest.mark.slow
def test_decoders_are_held_to_pyav(film, tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(film.read_bytes()[:1000])
    rows = bench_decoders([film, broken], [2.0, 0.5], ["pyav", "decord"], rounds=1, make=None)
    assert [(row.decoder, row.fps) for row in rows] == [("pyav", 2.0), ("pyav", 0.5), ("decord", 2.0), ("decord", 0.5)]
    assert {row.file for row in rows} == {film.name}
    for row in rows:
        assert row.frames == FILM_S * row.fps
        assert row.same_times
        assert row.cpu_s > 0 < row.cpu_part
    if importlib.util.find_spec("decord") is None:
        assert all("decord" in row.remark for row in rows[2:])
    assert table(rows).count("| yes |") == 4
    with pytest.raises(SourceMissing):
        bench_decoders([tmp_path / "none.mp4"], [1.0], None, rounds=1, make=None)


@pytest.mark.slow
def test_films_of_all_codecs_are_made_once(film, tmp_path):
    if shutil.which("ffmpeg") is None:
        pytest.skip("no ffmpeg")
    made = make_films(film, tmp_path / "made", short_s=1)
    assert {"mpeg4-short.mp4", "mpeg4-long.mp4"} <= {path.name for path in made}
    times = [path.stat().st_mtime_ns for path in made]
    assert make_films(film, tmp_path / "made", short_s=1) == made
    assert [path.stat().st_mtime_ns for path in made] == times
    rows = bench_decoders([path for path in made if path.name.startswith("mpeg4")], [1.0], ["pyav"], 1, None)
    assert [row.frames for row in rows] == [10, 1]


@pytest.mark.slow
def test_a_space_of_random_weights_loads(tmp_path, bench):
    ran = bench(random_space.main, tmp_path / "model", "--model", "ViT-S-32-alt")
    assert ran.out.strip() == f"local-dir:{tmp_path}/model"
    assert load_space(ran.out.strip(), towers="image").dim == 256
    with pytest.raises(UsageError, match="RN49"):
        random_space.make_random_space(tmp_path / "other", "RN49")


WORDS = 3_000
TEXTS = ["a red boat", "", "Ein Boot, 2 Anker!", "лодка", "sea " * 40]


@pytest.mark.slow
def test_it_has_as_many_words_as_the_table_and_is_exported(tmp_path):
    write_random_tokenizer(tmp_path / "model", WORDS)
    theirs = import_open_clip().tokenizer.HFTokenizer(str(tmp_path / "model"), context_length=16, clean="canonicalize")
    assert len(theirs.tokenizer) == WORDS
    ids = theirs(TEXTS).numpy()
    assert ids.shape == (len(TEXTS), 16)
    assert (ids[0, 0], ids[1, 0], ids[1, 1]) != (3, 3, 3)  # nothing is unknown
    assert ids[1].tolist() == [1] + 15 * [0]  # the end, then padding
    assert ids.max() > len("abc") + 290  # pairs are joined
    (tmp_path / "exported").mkdir()
    settings = export_tokenizer(theirs, tmp_path / "exported")
    assert Tokenizer(tmp_path / "exported", settings)(TEXTS).tolist() == ids.tolist()
