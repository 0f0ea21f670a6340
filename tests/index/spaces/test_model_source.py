"""Names are resolved, unknown ones refused with the nearest, and switches of the whole process are turned back."""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from huggingface_hub import constants

from kinodex.index.errors import BadCheckpoint, UnknownModel, WeightsMissing
from kinodex.index.spaces.space import (
    DEFAULT_SPACE,
    import_open_clip,
    load_space,
    model_name,
    quick_hub,
    silent_root_logger,
)
from tests.support.models.tiny_models import TINY, write_model

open_clip = import_open_clip()
SIGLIP_LIKE = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("tiny"), TINY)


def test_the_name_of_a_folder_means_the_same_from_everywhere(tmp_path, monkeypatch):
    name = write_model(tmp_path / "model", TINY)
    monkeypatch.chdir(tmp_path)
    assert load_space("local-dir:model", towers="image").name == name
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model_name(open_clip, "local-dir:~/model").given == name
    with pytest.raises(WeightsMissing, match="~nobody-is-called-this"):
        model_name(open_clip, "local-dir:~nobody-is-called-this/model")
    (tmp_path / "weights.pt").touch()
    assert model_name(open_clip, "ViT-B-32/weights.pt").given == f"ViT-B-32/{tmp_path}/weights.pt"


def test_a_bare_checkpoint_is_prepared_as_its_architecture_usually_is(tmp_path):
    path = tmp_path / "weights.pt"
    path.write_bytes(b"")
    siglip = model_name(open_clip, f"ViT-B-32-SigLIP2-256/{path}").preprocess
    assert siglip == SIGLIP_LIKE | {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    assert model_name(open_clip, f"ViT-L-14/{path}").preprocess == {}  # its tags differ


def test_the_default_and_other_names_are_known_to_open_clip():
    for name in (DEFAULT_SPACE, "ViT-B-32/laion2b_s34b_b79k", "MobileCLIP2-S0/dfndr2b"):
        found = model_name(open_clip, name)
        assert "/".join((found.model, found.pretrained or "")) == name
        assert found.asks_hub
    assert model_name(open_clip, "ViT-B-32/openai").quick_gelu
    assert not model_name(open_clip, "ViT-B-32/laion2b_s34b_b79k").quick_gelu


def test_an_unknown_name_is_told_its_nearest():
    for name, near in {
        "ViT-B32/laion2b": "ViT-B-32/laion2b_e16",
        "siglip2": "ViT-B-16-SigLIP2/webli",
        "ViT-B-32-SigLIP2-256": "ViT-B-32-SigLIP2-256/webli",
        "ViT-B-32/laion2b": "ViT-B-32/laion2b_e16",
        "hf-hub:tiny": "hf-hub:ORGANISATION/MODEL",
        "": "nearest names",
    }.items():
        with pytest.raises(UnknownModel) as error:
            load_space(name)
        assert near in str(error.value) and "\n" not in str(error.value), name


def test_local_places_without_a_model(tmp_path):
    with pytest.raises(WeightsMissing, match="no such folder"):
        load_space(f"local-dir:{tmp_path}/nothing")
    with pytest.raises(WeightsMissing, match=r"no file .*weights\.pt"):
        load_space(f"ViT-B-32/{tmp_path}/weights.pt")
    with pytest.raises(BadCheckpoint, match=r"no open_clip_config\.json"):
        load_space(f"local-dir:{tmp_path}")
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY}))
    with pytest.raises(WeightsMissing, match="holds no weights"):
        load_space(f"local-dir:{tmp_path}")


NOBODY_THERE = "http://127.0.0.1:9"


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", NOBODY_THERE)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.mark.usefixtures("silent_hub")
def test_blocks_that_overlap_leave_the_client_as_it_was() -> None:
    first, second = ExitStack(), ExitStack()
    assert first.enter_context(quick_hub()) is False
    assert second.enter_context(quick_hub()) is False
    first.close()
    assert constants.HF_HUB_OFFLINE  # the second block still needs it
    second.close()
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.usefixtures("silent_hub")
def test_threads_that_ask_at_once_leave_the_client_as_it_was() -> None:
    inside = threading.Barrier(4)

    def ask(_: int) -> bool:
        with quick_hub() as answers:
            inside.wait(60)
            return answers or not constants.HF_HUB_OFFLINE

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(ask, range(4)))
    assert not constants.HF_HUB_OFFLINE


@pytest.mark.usefixtures("silent_hub")
def test_an_error_inside_turns_it_back() -> None:
    with pytest.raises(KeyError), quick_hub():
        raise KeyError
    assert not constants.HF_HUB_OFFLINE


def test_a_user_who_is_offline_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with quick_hub() as answers:
        assert not answers
    assert constants.HF_HUB_OFFLINE


def test_a_hub_that_answers_changes_nothing(monkeypatch: pytest.MonkeyPatch, server_address: str) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", server_address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with quick_hub() as answers:
        assert answers
        assert not constants.HF_HUB_OFFLINE


@pytest.fixture
def server_address(tmp_path) -> object:
    from tests.support.servers.model_hub import hub_of

    with hub_of(tmp_path) as address:
        yield address


def test_log_blocks_that_overlap_leave_the_root_logger_as_it_was() -> None:
    root = logging.getLogger()
    before = list(root.handlers), list(root.filters)
    first, second = ExitStack(), ExitStack()
    first.enter_context(silent_root_logger())
    second.enter_context(silent_root_logger())
    first.close()
    assert (root.handlers, root.filters) != before
    second.close()
    assert (root.handlers, root.filters) == before
