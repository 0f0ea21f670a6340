"""Plots of accuracy with many systems and categories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kinodex.jobs.eval.page import plots
from tests.support.runs.reports import ABLATIONS, AGENTS, CONTROLS, sample_report


@pytest.fixture(scope="module")
def report():
    facts = {"part of the benchmark": "duration = long"}
    return sample_report((*AGENTS[:2], *CONTROLS), questions=200, facts=facts)


def test_many_contenders_and_categories_still_fit_a_page_of_a_paper():
    report = sample_report((*AGENTS, *ABLATIONS, *CONTROLS), questions=100)
    many = {f"category {number}": report.standings[0].accuracy for number in range(50)}
    report = replace(report, standings=tuple(replace(each, groups={"topic": many}) for each in report.standings))
    assert all(plot.width_in <= 7.2 and plot.height_in <= 10 for plot in plots(report))
