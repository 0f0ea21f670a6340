"""`kinodex view`: one file instead of a server, and inputs that are refused."""

from __future__ import annotations

import inspect
from ipaddress import ip_address

from kinodex.cli.serve import view
from kinodex.guards import listen
from tests.support.command import bad
from tests.support.libraries.viewer_library import EVIL, held_in


def test_one_file_instead_of_a_server(kinodex, shown, tmp_path):
    out = tmp_path / "trace.html"
    ran = kinodex("view", shown.traces[0], shown.library.uri, "--out", out)
    assert ran.code == 0, ran
    assert ran.out.startswith(f"{out}: 0.") and "MB, needs no network" in ran.out
    assert EVIL in held_in(out.read_text(encoding="utf-8"))["data"]["home"]["traces"][0]["question"]["text"]


def test_inputs_that_are_refused(kinodex, tmp_path, shown):
    bad(kinodex, "view", tmp_path, code=2, says="which is no trace, run or library")
    (tmp_path / "notes.txt").write_text("hello")
    bad(kinodex, "view", tmp_path / "notes.txt", code=2, says="cannot be read as a trace")
    bad(kinodex, "view", shown.library.uri, "--out", tmp_path / "no" / "x.html", code=2, says="cannot write")
    bad(kinodex, "view", shown.library.uri, "--space", "ViT-B-32/openai", code=2, says="ViT-B-32/openai")
    out = tmp_path / "x.html"
    bad(kinodex, "view", shown.library.uri, "--space", "builtin", "--out", out, code=2, says="leave one of them out")
    assert not out.exists()


def test_it_listens_on_loopback_unless_another_host_is_named():
    host = inspect.signature(view).parameters["host"].default
    with listen(host, 0) as listener:
        assert ip_address(listener.getsockname()[0]).is_loopback
