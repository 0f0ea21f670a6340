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
from jobs.cli.doctor import not_ok, show
from jobs.doctor.api_keys import keys
from jobs.doctor.endpoint import endpoint
from jobs.doctor.finding import Finding
from jobs.doctor.library import shelf
from jobs.doctor.packages import packages
from jobs.doctor.ray import clusters
from jobs.errors import UsageError
from tests.support.chat_server import Behaviour, ChatServer, failing
from tests.support.command import bad, runner
from tests.support.random_library import SETTINGS, fingerprint, made, write

SECRET = "sk-this-must-not-be-seen"


def able(body: dict) -> Behaviour | dict | str:
    """A server that does all that it is asked for."""
    if "tools" in body:
        return Behaviour(calls=(("name_colour", '{"colour": "blue"}'),))
    if "response_format" in body:
        return {"colour": "blue"}
    return "It is blue." if "image_url" in json.dumps(body) else "ready"


def by_name(found: list[Finding]) -> dict[str, Finding]:
    return {each.name: each for each in found}


def states(found: list[Finding]) -> dict[str, str]:
    return {each.name: each.state for each in found}


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 5, seed=1))
    return library


def cached_model(cache: Path, name: str, files: dict[str, str]) -> None:
    """A model as the hub's client keeps it."""
    folder = cache / f"models--{name.replace('/', '--')}"
    snapshot = folder / "snapshots" / "0123456789abcdef"
    for path in (folder / "blobs", folder / "refs", snapshot):
        path.mkdir(parents=True)
    (folder / "refs" / "main").write_text(snapshot.name)
    for number, (file, text) in enumerate(files.items()):
        (folder / "blobs" / str(number)).write_text(text)
        (snapshot / file).symlink_to(folder / "blobs" / str(number))


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


def test_endpoints_that_can_do_less() -> None:
    def blind(body: dict) -> Behaviour | dict | str:
        return failing(400, "image input is not supported") if "image_url" in json.dumps(body) else "Blue, I think."

    with ChatServer(blind, rejects=["json_schema", "tools"]) as server:
        found = by_name(endpoint(server.base_url, None, None))
    assert states([*found.values()]) == {
        "model list": "ok", "chat": "ok", "images": "missing", "json_schema": "missing", "tools": "missing",
    }  # fmt: skip
    assert "image input is not supported" in found["images"].said
    assert "asks it for json_object" in found["json_schema"].said
    with ChatServer(lambda body: "It is green.") as server:
        found = by_name(endpoint(server.base_url, "tester", None))
    assert found["images"].said == "says of a blue picture: 'It is green.'"
    assert found["json_schema"].said == "takes one, and says 'It is green.'"
    assert found["tools"].said == "takes some, called none and said 'It is green.'"


def test_endpoints_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ChatServer(able, key="another") as server:
        found = endpoint(server.base_url, "tester", None)
    with ChatServer(able, models=()) as empty:
        unlisted = endpoint(empty.base_url, None, None)
    assert "check the key" in by_name(found)["chat"].said
    assert "lists no model; name one with --model" in by_name(unlisted)["chat"].said
    found = endpoint(server.base_url, "tester", None)
    assert f"nobody answers at {server.base_url}" in by_name(found)["chat"].said
    assert states(found) == {"chat": "broken", "images": "missing", "json_schema": "missing", "tools": "missing"}
    found = endpoint("https://models.example.org/v1", "tester", "KEY_OF_EXAMPLE")
    assert "KEY_OF_EXAMPLE is not set" in by_name(found)["chat"].said


def test_what_an_extra_would_bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "kinodex-9.dist-info"
    info.mkdir()
    lines = [
        "Metadata-Version: 2.4", "Name: kinodex", "Version: 9", "Requires-Dist: numpy>=1.26",
        *(f"Provides-Extra: {name}" for name in ("s3", "ray", "http", "dev")),
        "Requires-Dist: surely-not-there>=3.1; extra == 's3'", "Requires-Dist: numpy>=1; extra == 's3'",
        "Requires-Dist: pillow>=99; extra == 'ray'", "Requires-Dist: pillow>=1; extra == 'http'",
    ]  # fmt: skip
    (info / "METADATA").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    found = by_name(packages())
    assert states([*found.values()]) == {"base": "ok", "s3": "missing", "ray": "broken", "http": "ok"}
    assert found["s3"].todo == "pip install 'kinodex[s3]', which brings surely-not-there>=3.1"
    assert "is not >=99" in found["ray"].said


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert states(clusters(None)) == {"cluster": "missing"}
    assert states(clusters("127.0.0.1:1")) == {"cluster": "broken"}


def test_a_library_that_is_not_well(library: Library, tmp_path: Path) -> None:
    write(library, made("left", 3, seed=2), complete=False)
    [found] = shelf(library.uri)
    assert (found.state, found.todo) == ("broken", f"kinodex maintain {library.uri}")
    assert "video left has rows but is not complete" in found.said
    [found] = shelf(str(tmp_path / "nothing"))
    assert (found.state, "there is no library" in found.said) == ("broken", True)


def test_the_page_and_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        Finding("machine", "cores", "ok", "2 of 2 usable"),
        Finding("decoders", "pyav", "ok", "read 13 frames"),
        Finding("decoders", "nvdec", "missing", "no [NVIDIA] GPU", "PyAV reads everything"),
    ]
    assert not_ok(found, ["pyav"]) == []
    show(found, not_ok(found, ["nvdec", "pyav"]))
    assert capsys.readouterr().out.splitlines() == [
        "machine", "  ok      cores  2 of 2 usable", "",
        "decoders", "  ok      pyav   read 13 frames", "  missing nvdec  no [NVIDIA] GPU",
        "                 → PyAV reads everything", "",
        "needed, and not ok: nvdec",
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"got --need nvenc; this page has lines for cores, pyav, nvdec"):
        not_ok(found, ["nvenc"])


def test_a_key_of_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    found = by_name(keys("MY_KEY"))
    assert found["MY_KEY"].said == "set, for the endpoint"
    assert SECRET not in repr(found)


def test_a_model_without_an_endpoint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bad(runner(monkeypatch, capsys), "doctor", "--model", "m", code=2, says="without --base-url; name the endpoint")
