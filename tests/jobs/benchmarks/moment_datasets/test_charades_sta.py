"""Charades-STA as published: a line a sentence."""

from __future__ import annotations

from pathlib import Path

from kinodex.jobs.eval.benchmarks import read_moment_benchmark
from tests.support.runs.moment_files import problems

LINES = """3MSZA 24.3 30.4##person turn a light on.
3MSZA 24.3 30.4##person flipped the light switch near the door

AO8RW 6.9 6.9##a person is putting a book on a shelf.
AO8RW 0.0 6.9 a person is putting a book on a shelf.
AO8RW 0.0##a person is putting a book on a shelf.
AO8RW 0.0 x##a person is putting a book on a shelf.
AO8RW 0.0 6.9##
"""


def test_charades_sta(tmp_path: Path) -> None:
    file = tmp_path / "charades_sta_test.txt"
    file.write_text(LINES)
    benchmark = read_moment_benchmark("charades-sta", tmp_path)
    first, second = benchmark.samples
    assert (first.sample_id, first.video, first.text) == ("1", "3MSZA", "person turn a light on.")
    assert first.relevant == (("3MSZA", 24.3, 30.4),)
    assert (second.sample_id, second.text) == ("2", "person flipped the light switch near the door")
    assert problems(benchmark)[0] == ("file", "got 2 searches; published: test 3,720, train 12,408")
    rows = problems(benchmark)[1:]
    assert [where for where, _ in rows] == [f"line {number}" for number in range(4, 9)]
    assert "got 6.9 to 6.9" in rows[0][1]
    assert all("a line is VIDEO START END##SENTENCE" in what for _, what in rows[1:3])
    assert rows[3][1].startswith("end: ")
    assert rows[4][1].startswith("sentence: ")
