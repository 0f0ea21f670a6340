"""`kinodex doctor`: what it says is so, on this machine and of servers, caches and packages made for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from index.library import Library
from jobs.cli.doctor import show
from jobs.doctor import Finding
from tests.support.chat_server import ChatServer
from tests.support.command import bad, runner
from tests.support.findings import able, cached_model
from tests.support.random_library import SETTINGS, fingerprint, made, write

SECRET = "sk-this-must-not-be-seen"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 5, seed=1))
    return library


@pytest.mark.slow
def test_the_whole_page(library: Library, tmp_path: Path) -> None:
    cache = tmp_path / "hub"
    cached_model(cache, "org/eyes", {"open_clip_config.json": "{}", "open_clip_model.safetensors": "w" * 1000})
    cached_model(cache, "org/ears", {"config.json": '{"architectures": ["Whisper"]}', "model.safetensors": "w"})
    cached_model(cache, "org/begun", {"config.json": "{}"})
    cached_model(
        cache, "timm/ViT-B-32-SigLIP2-256", {"open_clip_config.json": "{}", "open_clip_model.safetensors": "w"}
    )
    surroundings = os.environ | {
        "HF_HUB_CACHE": str(cache),
        "HF_HUB_OFFLINE": "1",
        "OPENAI_API_KEY": SECRET,
        "AWS_SECRET_ACCESS_KEY": "",
    }
    has_gpu = shutil.which("nvidia-smi") is not None
    if not has_gpu:  # a driver that speaks of a GPU which nothing can use
        driver = tmp_path / "bin" / "nvidia-smi"
        driver.parent.mkdir()
        driver.write_text("#!/bin/sh\necho Toy, 1.0, 2 MiB, 1 MiB\n")
        driver.chmod(0o755)
        surroundings["PATH"] = f"{driver.parent}:{surroundings['PATH']}"
    with ChatServer(able, key=SECRET) as server:
        command = [sys.executable, "-c", "from jobs.cli.main import main; main()", "doctor", library.uri, "--json"]
        command += ["--base-url", server.base_url, "--need", "org/begun", "--need", "pyav"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings)
    assert ran.returncode == 3, ran.stderr
    assert SECRET not in ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    found = {each["name"]: each for each in told["findings"]}
    assert told["failed"] == ["org/begun"]
    assert all(each["todo"] for each in told["findings"] if each["state"] != "ok")
    assert found["pyav"]["said"] == "read 13 frames of a film that was drawn for it"
    assert found["builtin"]["said"].startswith("loaded, embeds a text in 256 dimensions")
    assert found["library"]["said"].startswith(f"{library.uri}: 1 videos, 5 frames")
    assert "(open_clip)" in found["org/eyes"]["said"]
    assert "(transformers, Whisper)" in found["org/ears"]["said"]
    assert found["default space"]["state"] == "missing"
    assert "its weights are cached, its tokenizer is not" in found["default space"]["said"]
    assert (found["OPENAI_API_KEY"]["state"], found["AWS_SECRET_ACCESS_KEY"]["state"]) == ("ok", "missing")
    for name in ("chat", "images", "json_schema", "tools"):
        assert found[name]["state"] == "ok", found[name]
    if not has_gpu:
        assert found["driver"]["said"].startswith("Toy, 1.0, 2 MiB, 1 MiB")
        assert "does not see the GPU" in found["cuda"]["said"]
        assert found["nvdec"]["state"] != "ok"
    assert server.problems == []


def test_the_page_and_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        Finding("machine", "cores", "ok", "2 of 2 usable"),
        Finding("decoders", "pyav", "ok", "read 13 frames"),
        Finding("decoders", "nvdec", "missing", "no [NVIDIA] GPU", "PyAV reads everything"),
    ]
    show(found, found[-1:])
    assert capsys.readouterr().out.splitlines() == [
        "machine", "  ok      cores  2 of 2 usable", "",
        "decoders", "  ok      pyav   read 13 frames", "  missing nvdec  no [NVIDIA] GPU",
        "                 → PyAV reads everything", "",
        "needed, and not ok: nvdec",
    ]  # fmt: skip
    show(found, [])
    assert capsys.readouterr().out.endswith("a line that is not ok matters only if you need what it names\n")


def test_a_model_without_an_endpoint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bad(runner(monkeypatch, capsys), "doctor", "--model", "m", code=2, says="without --base-url; name the endpoint")
