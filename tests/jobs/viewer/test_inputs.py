"""Places are sorted into traces, runs and libraries; a run brings its library."""

from __future__ import annotations

import json

import pytest

from kinodex.jobs.errors import UsageError
from kinodex.web.inputs import classify_inputs


def test_places_are_sorted(shown, run):
    trace, other = map(str, shown.traces)
    inputs = classify_inputs([shown.library.uri, trace, str(run), other, trace])
    assert [str(path) for path in inputs.traces] == [trace, other]
    assert [each.folder for each in inputs.runs] == [run]
    assert [each.uri for each in inputs.libraries] == [shown.library.uri, inputs.runs[0].plan.library]
    assert inputs.missing == ()


def test_a_library_that_a_run_lost(run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for path in run.glob("*.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    plan = json.loads((folder / "run.json").read_text())
    library = plan["library"]
    (folder / "run.json").write_text((folder / "run.json").read_text().replace(library, f"{library}-moved"))
    inputs = classify_inputs([str(folder)])
    assert (inputs.libraries, inputs.missing) == ((), (f"{library}-moved",))


def test_other_places_are_refused(tmp_path):
    for place in ("nowhere", str(tmp_path)):
        with pytest.raises(UsageError, match="which is no trace, run or library"):
            classify_inputs([place])
