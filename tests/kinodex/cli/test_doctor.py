"""`kinodex doctor`: the whole page, as JSON and for people, and options that do not fit."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest

from kinodex.cli.doctor import show
from kinodex.doctor.check_result import CheckResult
from kinodex.index.library import Library
from kinodex.pipeline.decoding.open import DECODERS
from tests.support.command import Kinodex, bad
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.runs.check_results import able
from tests.support.servers.chat_server import ChatServer

SECRET = "sk-this-must-not-be-seen"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 5, seed=1))
    return library


@pytest.mark.slow
def test_the_whole_page(kinodex: Kinodex, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    has_gpu = shutil.which("nvidia-smi") is not None
    if not has_gpu:  # a driver that lists a GPU which nothing can use
        driver = tmp_path / "bin" / "nvidia-smi"
        driver.parent.mkdir()
        driver.write_text("#!/bin/sh\necho Toy, 1.0, 2 MiB, 1 MiB\n")
        driver.chmod(0o755)
        monkeypatch.setenv("PATH", f"{driver.parent}:{os.environ['PATH']}")
    with ChatServer(able, key=SECRET) as server:
        ran = kinodex(
            *("doctor", library.uri, "--json", "--base-url", server.base_url),
            *("--need", "AWS_SECRET_ACCESS_KEY", "--need", "pyav"),
        )
    assert ran.code == 3, ran.err
    assert SECRET not in ran.out + ran.err
    page = json.loads(ran.out)
    found = {each["name"]: each for each in page["findings"]}
    assert page["failed"] == ["AWS_SECRET_ACCESS_KEY"]
    assert all(each["todo"] for each in page["findings"] if each["state"] != "ok")
    assert found["pyav"]["said"] == "read 12 frames of a film that was made for it"
    assert found["photo"]["said"].startswith("loaded, embeds a text in 256 dimensions")
    assert found["library"]["said"].startswith(f"{library.uri}: 1 videos, 5 frames")
    assert (found["OPENAI_API_KEY"]["state"], found["AWS_SECRET_ACCESS_KEY"]["state"]) == ("ok", "missing")
    assert [each["name"] for each in page["findings"] if each["section"] == "decoders"] == list(DECODERS)
    if importlib.util.find_spec("decord") is None:
        assert (found["decord"]["state"], found["decord"]["todo"]) == ("missing", "pip install 'kinodex[decord]'")
    assert {"cores", "base", "cluster", "hub", "default space"} < set(found)
    for name in ("chat", "images", "json_schema", "tools"):
        assert found[name]["state"] == "ok", found[name]
    if not has_gpu:
        assert found["driver"]["said"].startswith("Toy, 1.0, 2 MiB, 1 MiB")
        assert "does not see the GPU" in found["cuda"]["said"]
        assert found["nvdec"]["state"] != "ok"
    assert server.problems == []


def test_the_page_and_what_is_needed(kinodex: Kinodex, capsys: pytest.CaptureFixture[str]) -> None:
    bad(kinodex, "doctor", "--model", "m", code=2, says="without --base-url; name the endpoint")
    found = [
        CheckResult("machine", "cores", "ok", "2 of 2 usable"),
        CheckResult("decoders", "pyav", "ok", "read 13 frames"),
        CheckResult("decoders", "nvdec", "missing", "no [NVIDIA] GPU", "PyAV reads everything"),
    ]
    show(found, found[-1:])
    assert capsys.readouterr().out.splitlines() == [
        "machine", "  ok      cores  2 of 2 usable", "",
        "decoders", "  ok      pyav   read 13 frames", "  missing nvdec  no [NVIDIA] GPU",
        "                 → PyAV reads everything", "",
        "needed, and not ok: nvdec",
    ]  # fmt: skip
    show(found, [])
    assert capsys.readouterr().out.endswith("of the other lines those matter that your task needs\n")
