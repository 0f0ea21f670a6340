"""Checks of this machine: keys, a library, room, GPU, packages, decoders, Ray, models, and what is needed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import CachedRepoInfo, scan_cache_dir

from kinodex.doctor.check_result import CheckResult
from kinodex.doctor.cluster import check_ray
from kinodex.doctor.gpu import check_gpu
from kinodex.doctor.keys import check_keys
from kinodex.doctor.library import check_library
from kinodex.doctor.machine import check_machine
from kinodex.doctor.models import MODELS_LISTED, check_default_space, list_cached
from kinodex.doctor.packages import check_packages
from kinodex.doctor.page import failed_needs
from kinodex.doctor.tasks import check_tasks
from kinodex.index.library import Library
from kinodex.index.spaces.model_names import DEFAULT_REPO
from kinodex.jobs.default_space import why_not_here
from kinodex.jobs.errors import UsageError
from tests.support.libraries.random_library import SETTINGS, fingerprint, made, write
from tests.support.runs.check_results import by_name, cached_model, states
from tests.support.servers.model_hub import NOBODY_THERE, hub_at

SECRET = "sk-this-must-not-be-seen"


DETAILS: dict[str, Any] = {
    "pyav": ("ok", "read 13 frames", ""),
    "clip": ("ok", "torch 2", ""),
    "default space": ("missing", "not cached", "fetch it"),
    "hub": ("missing", "the hub is not reached", "set HF_ENDPOINT"),
}
HUB = {"hub": ("ok", "answers", "")}
TRIED = {"chat": ("ok", "said ready", ""), "images": ("missing", "takes no picture", "a model that sees")}
BY_MODEL = 'kinodex ask LIBRARY "..." --model NAME'
FINDING = ("index", "search by words", "search by picture")


@pytest.mark.parametrize(
    ("changes", "verdicts"),
    [
        ({}, {"ask": BY_MODEL}),
        ({"default space": ("ok", "cached", "")}, {"ask": BY_MODEL}),
        (HUB | TRIED, {"ask": BY_MODEL}),
        (HUB | dict.fromkeys(TRIED, TRIED["chat"]), {}),
        ({"clip": ("missing", "no torch", "")}, {"ask": BY_MODEL}),
        (
            HUB | {"pyav": ("missing", "not installed", "")},
            {**dict.fromkeys((*FINDING, "serve"), "pip install"), "ask": BY_MODEL},
        ),
    ],
)
def test_each_task_has_a_verdict_and_what_is_not_ok_one_command(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], verdicts: dict[str, str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    details = [CheckResult("some", name, *facts) for name, facts in (DETAILS | changes).items()]
    found = {each.name: each for each in check_tasks(details, None)}
    assert list(found) == [*FINDING, "ask", "serve"]
    assert {name for name, each in found.items() if each.state != "ok"} == set(verdicts)
    assert all(found[name].todo.startswith(command) for name, command in verdicts.items())


def test_a_library_is_searched_for_the_verdict(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    details = [CheckResult("some", name, *facts) for name, facts in DETAILS.items()]
    found = by_name(check_tasks(details, str(library)))
    assert {name for name, each in found.items() if each.state != "ok"} == {"ask"}
    other = Library.create(str(tmp_path / "other"), SETTINGS, fingerprint())
    assert "kinodex add text-tower" in by_name(check_tasks(details, other.uri))["search by words"].todo


def test_a_key_of_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    found = by_name(check_keys("MY_KEY"))
    assert found["MY_KEY"].said == "set, for the endpoint"
    assert found["AWS_SECRET_ACCESS_KEY"].state == "missing"
    assert SECRET not in repr(found)


def test_a_library_that_is_not_well(tmp_path: Path) -> None:
    library = Library.create(str(tmp_path / "library"), SETTINGS, fingerprint())
    write(library, made("aaaa", 5, seed=1))
    [found] = check_library(library.uri)
    assert (found.state, found.said.startswith(f"{library.uri}: 1 videos, 5 frames")) == ("ok", True)
    write(library, made("left", 3, seed=2), complete=False)
    [found] = check_library(library.uri)
    assert (found.state, found.todo) == ("broken", f"kinodex maintain {library.uri}")
    assert "video left has rows but is not complete" in found.said
    [found] = check_library(str(tmp_path / "nothing"))
    assert (found.state, "there is no library" in found.said) == ("broken", True)


def test_what_is_needed() -> None:
    pyav = CheckResult("decoders", "pyav", "ok", "read 13 frames")
    nvdec = CheckResult("decoders", "nvdec", "missing", "no [NVIDIA] GPU", "PyAV reads everything")
    assert failed_needs([pyav, nvdec], ["pyav"]) == []
    assert failed_needs([pyav, nvdec], ["nvdec", "pyav"]) == [nvdec]
    with pytest.raises(UsageError, match=r"got --need nvenc; this page has lines for pyav, nvdec"):
        failed_needs([pyav, nvdec], ["nvenc"])


def test_this_machine_and_a_folder_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINODEX_CACHE", str(tmp_path / "not" / "made" / "yet"))
    found = by_name(check_machine())
    assert found["kinodex"].said.count("Python 3.") == 1
    assert " usable" in found["cores"].said and found["memory"].said.count(" GB") >= 2
    assert found["room for replies"].said.endswith(f" GB free at {tmp_path / 'not' / 'made' / 'yet'}")
    monkeypatch.setenv("KINODEX_CACHE", "/proc/kinodex")
    room = by_name(check_machine())["room for replies"]
    assert (room.state, room.said) == ("broken", "0.0 GB free at /proc/kinodex")
    assert room.todo == "free some; set KINODEX_CACHE to a folder with room"


def test_a_driver_that_answers_or_not_or_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert states(check_gpu())["driver"] == "missing"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for script, state, said in (
        ("echo Toy, 1.0, 2 MiB, 1 MiB", "ok", "Toy, 1.0, 2 MiB, 1 MiB (name, driver, memory, used)"),
        ("echo mismatch of versions >&2; exit 9", "broken", "nvidia-smi: mismatch of versions"),
        ("true", "broken", "nvidia-smi: lists no GPU"),
    ):
        driver.write_text(f"#!/bin/sh\n{script}\n")
        driver.chmod(0o755)
        found = check_gpu()[0]
        assert (found.state, found.said) == (state, said)


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
    found = by_name(check_packages())
    assert states([*found.values()]) == {"base": "ok", "s3": "missing", "ray": "broken", "http": "ok"}
    assert found["s3"].todo == "pip install 'kinodex[s3]', which brings surely-not-there>=3.1"
    assert "is not >=99" in found["ray"].said


@pytest.mark.ray
def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert states(check_ray(None)) == {"cluster": "missing"}
    assert states(check_ray("127.0.0.1:1")) == {"cluster": "broken"}


def cached(folder: Path) -> Iterable[CachedRepoInfo]:
    return scan_cache_dir(folder).repos


def test_kinds_of_cached_models(tmp_path: Path) -> None:
    cached_model(tmp_path, "org/eyes", {"open_clip_config.json": "{}", "open_clip_model.safetensors": "w" * 1000})
    cached_model(tmp_path, "org/ears", {"config.json": '{"architectures": ["Whisper"]}', "model.safetensors": "w"})
    cached_model(tmp_path, "org/begun", {"config.json": "{}"})
    cached_model(tmp_path, "org/odd", {"config.json": "no JSON", "model.bin": "w"})
    found = by_name(list_cached(cached(tmp_path)))
    assert "(open_clip)" in found["org/eyes"].said
    assert "(transformers, Whisper)" in found["org/ears"].said
    assert (found["org/begun"].state, "without weights" in found["org/begun"].said) == ("missing", True)
    assert "(transformers, config unreadable)" in found["org/odd"].said


def test_a_long_list_ends_in_a_count(tmp_path: Path) -> None:
    for number in range(MODELS_LISTED + 3):
        cached_model(tmp_path, f"org/model-{number}", {"model.bin": "w"})
    found = list_cached(cached(tmp_path))
    assert (len(found), found[-1].said) == (MODELS_LISTED + 1, "3 smaller models in the cache")
    assert [each.state for each in list_cached(())] == ["missing"]


WEIGHTS = {"open_clip_config.json": "{}", "open_clip_model.safetensors": "w"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "is not cached"),
        (WEIGHTS, "its weights are cached, its tokenizer is not"),
        (WEIGHTS | {"vocab.txt": "a"}, "its weights are cached, its tokenizer is not"),
        ({"open_clip_model.bin": "w", "tokenizer.json": "{}"}, "is not cached"),
        (WEIGHTS | {"tokenizer.json": "{}"}, f"cached ({DEFAULT_REPO})"),
    ],
)
def test_the_default_space_is_there_for_a_doctor_where_an_ingest_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], said: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    if files:
        cached_model(tmp_path, DEFAULT_REPO, files)
    found = check_default_space()
    assert said in found.said and bool(found.todo) == (found.state == "missing")
    with hub_at(NOBODY_THERE):
        assert bool(why_not_here()) == (found.state == "missing")
