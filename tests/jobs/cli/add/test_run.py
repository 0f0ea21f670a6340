"""`kinodex add` as a user has it: models that cannot be used, and one model under several paths."""

from __future__ import annotations

import os

from kinodex.index.library import Library
from tests.support.servers.model_hub import NOBODY_THERE, hub_at


def test_models_that_cannot_be_used_end_the_run_in_one_line(kinodex, small_library, tiny_model, tmp_path):
    library = Library.open(str(small_library))
    ran = kinodex("add", "captions", library.uri, "--model", tiny_model("rt_detr"))
    assert ran.code == 2
    assert "it is no model for AutoModelForImageTextToText" in ran.error_line
    ran = kinodex("add", "detections", library.uri, "--model", tmp_path / "nothing")
    assert ran.code == 2
    assert "where there is no folder" in ran.error_line
    assert library.additions.pending("captions", str(tiny_model("rt_detr"))) == library.videos()


def test_a_model_of_the_hub_where_there_is_no_network(kinodex, small_library):
    with hub_at(NOBODY_THERE):
        ran = kinodex("add", "detections", small_library, "--model", "nobody/nothing")
    assert ran.code == 2
    assert "cannot get the model nobody/nothing" in ran.error_line


def test_the_folder_of_a_model_is_one_model_from_everywhere(tiny_model, monkeypatch):
    from kinodex.cli.add import local_name

    folder = tiny_model("rt_detr")
    monkeypatch.chdir(folder.parent)
    assert local_name(folder.name) == str(folder) == local_name(os.fspath(folder))
    assert local_name("google/owlv2-base-patch16") == "google/owlv2-base-patch16"
