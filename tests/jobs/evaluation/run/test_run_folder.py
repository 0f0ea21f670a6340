"""The folder of a run: torn lines, two writers, and places where no folder can be."""

from __future__ import annotations

from kinodex.jobs.eval.folder import ANSWERS, open_for_append
from tests.support.command import bad
from tests.support.runs.eval_runs import ALL, asked, at, command


def test_a_torn_last_line_is_asked_again_and_nothing_else(place, kinodex, server, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "blind", "--no-controls", *at(server, tmp_path))
    kinodex(*options)
    answers = tmp_path / "run" / ANSWERS
    whole = answers.read_bytes()
    answers.write_bytes(whole[:-20])
    server.seen.clear()
    assert kinodex(*options).code == 0
    assert len(server.seen) == 1
    assert sorted(asked(tmp_path / "run", "blind")) == sorted(ALL)


def test_two_processes_do_not_write_the_same_run(place, kinodex, tmp_path):
    options = command(place, tmp_path / "run", "--agent", "random", "--no-controls")
    assert kinodex(*options).code == 0
    with open_for_append(tmp_path / "run" / ANSWERS):
        bad(kinodex, *options, code=2, says="another process is writing")


def test_what_is_refused_while_another_begins_leaves_no_plan(place, kinodex, tmp_path):
    with open_for_append(tmp_path / "run" / ANSWERS):
        bad(kinodex, *command(place, tmp_path / "run", "--agent", "random"), code=2, says="another process is writing")
    assert [each.name for each in (tmp_path / "run").iterdir()] == [ANSWERS]


def test_a_place_where_no_folder_can_be_is_refused(place, kinodex, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out, says in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "run", "Not a directory")):
        bad(kinodex, *command(place, out, "--agent", "random"), code=2, says=says)
    assert (tmp_path / "file").read_text() == "mine"
