"""`kinodex add summaries`: options that contradict one another end it in one line, before anything is sent."""

from __future__ import annotations


def test_a_forecast_of_a_local_model(kinodex, small_library):
    ran = kinodex("add", "summaries", small_library, "--model", "x", "--dry-run")
    assert ran.code == 2
    assert "for a local model, which costs nothing; give --base-url" in ran.error_line


def test_a_model_that_cannot_be_used(kinodex, small_library, tiny_model, tmp_path):
    ran = kinodex("add", "summaries", small_library, "--model", tiny_model("rt_detr"))
    assert ran.code == 2
    assert "it is no model for AutoModelForCausalLM" in ran.error_line
    assert kinodex("add", "summaries", small_library, "--model", tmp_path / "nothing").code == 2
