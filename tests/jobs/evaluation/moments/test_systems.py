"""Systems see the query alone: results of searches, groundings and agents in one form."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinodex.index.library import Library
from kinodex.jobs.errors import UsageError
from kinodex.jobs.eval.moments import Bench, Case, check_contenders, solver
from kinodex.jobs.eval.samples import MomentQuery
from kinodex.jobs.models import ModelChoice
from kinodex.jobs.open import open_environment


@pytest.fixture(scope="module")
def bench(library: Path) -> Bench:
    opened = Library.open(str(library))
    return Bench(opened, open_environment(opened), ModelChoice(cache=False), 5, 2.0)


def case(text: str, video_id: str | None = None) -> Case:
    return Case("1", MomentQuery(text, None, None), video_id, (("nowhere", 0.0, 1.0),), (1.0,), False, "", "nowhere")


def test_a_hit_is_the_moment_at_which_it_begins(bench: Bench) -> None:
    found = solver("frames", bench)(case("a boat"))
    hits = bench.library.search.frames(bench.environment.embed_text("a boat"), k=5, min_gap_s=2.0)
    assert found.found == tuple((hit.video_id, hit.time_s, hit.time_s) for hit in hits)
    assert (found.present, found.evidence, found.error) == (None, None, "")
    line = bench.library.transcript(bench.library.video("film-01").video_id)[0]
    spoken = solver("words", bench)(case(line.text))
    assert spoken.found[0] == (line.video_id, line.start_s, line.start_s)
    assert solver("captions", bench)(case("a boat")).found == ()
    assert len(solver("fused", bench)(case("a boat")).found) == 5


@pytest.mark.parametrize("name", ["frames", "fused", "ground", "agent:uniform"])
def test_a_search_of_one_video_finds_nothing_elsewhere(bench: Bench, name: str) -> None:
    video_id = bench.library.video("film-02").video_id
    found = solver(name, bench)(case("a boat", video_id)).found
    assert {each[0] for each in found} <= {video_id}


def test_ranges_come_with_their_verdict_and_half_of_the_evidence_may_be_left_out(bench: Bench) -> None:
    both, words = (solver(name, bench)(case("a boat")) for name in ("ground", "ground-words"))
    assert both.evidence is not None and both.present is not None
    assert all(start_s < end_s for _, start_s, end_s in both.found)
    assert (words.found, words.present, words.evidence) == ((), False, 0.0)


def test_systems_are_named_once_and_unknown_ones_refused() -> None:
    assert check_contenders(["frames", "agent:eea", "frames"]) == ("frames", "agent:eea")
    with pytest.raises(UsageError, match="got the contender smell"):
        check_contenders(["smell"])
