"""The coordinator in a simulation: each film has its outcome whatever befalls its worker, and all share the last."""

from __future__ import annotations

import pytest

from tests.bench.coordinator import (
    HEAD,
    Crew,
    RunFigures,
    RunLoad,
    line_of,
    run_simulated,
    start_over_known,
)


@pytest.fixture(scope="module")
def troubled() -> RunFigures:
    """Sixty films, of which some are copies, broken or deadly, on workers that are slow or lost at times."""
    crew = Crew(6, slow=0.05, lost=0.05)
    return run_simulated(RunLoad(60, crew, 60.0, frames_a_second=0.1, duplicates=0.2, poison=0.1, deadly=0.05))


@pytest.fixture(scope="module")
def one_film() -> RunFigures:
    return run_simulated(RunLoad(1, Crew(8), 300.0, spread=0.0))


@pytest.fixture(scope="module")
def long_film() -> RunFigures:
    return run_simulated(RunLoad(40, Crew(4), 60.0, frames_a_second=0.02, long_s=1800.0))


def test_every_source_has_its_outcome_whatever_happens_to_workers(troubled: RunFigures) -> None:
    films = troubled.load.films()
    originals = [films.original(number) for number in range(60)]
    bad = sum(films.fate(number) != "good" for number in originals)
    good = len({number for number in originals if films.fate(number) == "good"})
    assert bad and good < 60 - bad
    assert troubled.counts == {"indexed": good, "already there": 60 - bad - good, "failed": bad}
    assert troubled.retried > 0 and troubled.commits > 0
    assert 0 < troubled.idle < 1 and troubled.driver_s < troubled.run_s


def test_one_film_is_shared_by_all_workers(one_film: RunFigures) -> None:
    alone_s = 300.0 / one_film.load.crew.speed
    assert one_film.counts == {"indexed": 1}
    assert alone_s / 8 < one_film.run_s < alone_s / 2


def test_a_film_of_hours_at_the_end_of_the_list_is_begun_first(long_film: RunFigures) -> None:
    total_s = (40 * 60.0 + 1800.0) / (4 * long_film.load.crew.speed)
    assert long_film.counts == {"indexed": 40}
    assert long_film.run_s < 1.5 * total_s, "not the time of the others and then that of the long one"


def test_a_start_over_known_sources_leaves_them_all_out(troubled: RunFigures) -> None:
    known = start_over_known(500)
    assert known.left_out == known.sources == 500
    assert line_of(troubled).count("|") == HEAD.splitlines()[0].count("|")
