"""Source of a space's model: its name resolved to the arguments of open_clip, and the hub without its long retries.

An unknown name raises an error with the nearest names.

The hub's client and open_clip's log lines are each a switch of the whole process: the client reads one module
constant, and open_clip logs through the root logger. So each is turned by the first block that needs it and turned
back by the last one that ends, however blocks nest and whichever threads they run in.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from kinodex.index.errors import BadCheckpoint, UnknownModel, WeightsMissing

DEFAULT_SPACE = "ViT-B-32-SigLIP2-256/webli"
BUILTIN = Path(__file__).parent / "builtin"
HUB, LOCAL = "hf-hub:", "local-dir:"
WEIGHT_SUFFIXES = (".safetensors", ".pt", ".bin", ".pth")
OR_BUILTIN = ", or use --space builtin, which knows only the sketch world"
PROBE_TIMEOUT_S = 5.0
HOW_TO_LIST = "`python -c 'import open_clip; print(open_clip.list_pretrained())'` lists all"


@dataclass(frozen=True, slots=True)
class ModelName:
    """Arguments of `open_clip.create_model`."""

    given: str
    model: str
    """An architecture, or a "hf-hub:" or "local-dir:" name."""
    pretrained: str | None = None
    """A pretrained tag or the path of a checkpoint, for an architecture."""
    tag_settings: Mapping[str, Any] = field(default_factory=dict)
    """open_clip's own settings of the tag; empty for anything but a tag."""
    preprocess: Mapping[str, Any] = field(default_factory=dict)
    """Preprocessing for a bare checkpoint, which the file itself does not describe."""

    @property
    def hub_id(self) -> str:
        """Name of the model on the hub."""
        return self.model.removeprefix(HUB)

    @property
    def asks_hub(self) -> bool:
        """True if weights or a tokenizer may have to come from the hub."""
        return not self.model.startswith(LOCAL)

    @property
    def quick_gelu(self) -> bool:
        """True if the tag's weights were trained with QuickGELU, which its architecture does not say."""
        return bool(self.tag_settings.get("quick_gelu"))


def absolute_name(name: str) -> str:
    """Make the path in a space's name absolute, if it has one: a library stores it, and may be opened anywhere."""
    kind, separator, path = name.partition(":" if name.startswith(LOCAL) else "/")
    if not name.startswith(LOCAL) and (name.startswith(HUB) or not path.endswith(WEIGHT_SUFFIXES)):
        return name
    given = Path(path)
    found = given.expanduser() if given.parts[:1] == ("~",) else given  # of ~nobody it would raise a RuntimeError
    return f"{kind}{separator}{found.absolute()}"


def model_name(open_clip: ModuleType, name: str) -> ModelName:
    """Check the name of a space as far as possible without loading anything."""
    name = absolute_name(name)
    if name == "builtin":
        _check_folder(name, BUILTIN)
        return ModelName(name, f"{LOCAL}{BUILTIN}")
    if name.startswith(LOCAL):
        _check_folder(name, Path(name.removeprefix(LOCAL)))
        return ModelName(name, name)
    if name.startswith(HUB):
        if name.count("/") != 1 or name.endswith("/"):
            raise UnknownModel(f"got space {name!r}; a model on the hub is named hf-hub:ORGANISATION/MODEL")
        return ModelName(name, name)
    return _architecture(open_clip, name)


def _architecture(open_clip: ModuleType, name: str) -> ModelName:
    architecture, _, pretrained = name.partition("/")
    known = open_clip.list_models()
    if architecture not in known:
        pairs = ["/".join(pair) for pair in open_clip.list_pretrained()]
        raise UnknownModel(f"got space {name!r}, which open_clip does not know; {_nearest(name, pairs)}; {HOW_TO_LIST}")
    if settings := open_clip.get_pretrained_cfg(architecture, pretrained):
        return ModelName(name, architecture, pretrained, settings)
    if Path(pretrained).is_file():
        return ModelName(name, architecture, pretrained, preprocess=_usual_preprocess(open_clip, architecture))
    if pretrained.endswith(WEIGHT_SUFFIXES):
        what = f"there is no file {pretrained}; give the path of a checkpoint"
        raise WeightsMissing(f"got space {name!r}, but {what}{OR_BUILTIN}")
    tags = [f"{architecture}/{tag}" for tag in open_clip.list_pretrained_tags_by_model(architecture)]
    near = _nearest(name, tags) if tags else "it takes a checkpoint's path"
    what = f"{architecture} has no pretrained tag {pretrained!r}"
    raise UnknownModel(f"got space {name!r}, but {what}; {near}; {HOW_TO_LIST}")


def _usual_preprocess(open_clip: ModuleType, architecture: str) -> dict[str, Any]:
    """Find the preprocessing that all pretrained tags of an architecture share; empty if they differ."""
    keys = ("mean", "std", "interpolation", "resize_mode")
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    settings = [open_clip.get_pretrained_cfg(architecture, tag) for tag in tags]
    usual = [{key: each[key] for key in keys if key in each} for each in settings]
    return usual[0] if usual and all(each == usual[0] for each in usual) else {}


def _nearest(name: str, known: Sequence[str]) -> str:
    lowered = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lowered, n=3, cutoff=0.0)
    return "the nearest names are " + ", ".join(lowered[each] for each in near)


def _check_folder(name: str, folder: Path) -> None:
    if not folder.is_dir():
        what = "there is no such folder; give one that holds open_clip_config.json and the weights"
        raise WeightsMissing(f"got space {name!r}, but {what}{OR_BUILTIN}")
    if not (folder / "open_clip_config.json").is_file():
        what = f"{folder} holds no open_clip_config.json; add it beside the weights"
        raise BadCheckpoint(f"got space {name!r}, but {what}")
    if not any(file.suffix in WEIGHT_SUFFIXES for file in folder.iterdir()):
        what = f"{folder} holds no weights; add open_clip_model.safetensors"
        raise WeightsMissing(f"got space {name!r}, but {what}{OR_BUILTIN}")


class SharedSwitch:
    """A switch of the process that stays on while any block holds it; `turn_on` returns what turns it off."""

    def __init__(self, turn_on: Callable[[], Callable[[], None]]) -> None:
        self.lock = threading.Lock()
        self.holders = 0
        self._turn_on = turn_on
        self._turn_off: Callable[[], None] = lambda: None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the switch within this block."""
        with self.lock:
            if not self.holders:
                self._turn_off = self._turn_on()
            self.holders += 1
        try:
            yield
        finally:
            with self.lock:
                self.holders -= 1
                if not self.holders:
                    self._turn_off()


def _use_cache_only() -> Callable[[], None]:
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    return lambda: setattr(constants, "HF_HUB_OFFLINE", before)


def _drop_open_clip_logs() -> Callable[[], None]:
    """Filter the root logger, and give it a handler: `logging.warning` would install one for the whole program."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def not_open_clip(record: logging.LogRecord) -> bool:
        return "open_clip" not in record.pathname

    def turn_off() -> None:
        root.removeFilter(not_open_clip)
        root.removeHandler(handler)

    root.addHandler(handler)
    root.addFilter(not_open_clip)
    return turn_off


_cache_only = SharedSwitch(_use_cache_only)
_without_open_clip_logs = SharedSwitch(_drop_open_clip_logs)


@contextmanager
def quick_hub() -> Iterator[bool]:
    """Use the hub's cache alone within this block if the hub is silent; yield True if the hub answers.

    The client retries each file five times with growing pauses: 46 s for one model on a machine without a
    network before it reports an error. One request beforehand settles it; files already in the cache still load.
    """
    from huggingface_hub import constants

    with _cache_only.lock:
        is_held, is_offline = _cache_only.holders > 0, constants.HF_HUB_OFFLINE
    if is_offline and not is_held:  # the user's own setting
        yield False
    elif is_held or not _answers(constants.ENDPOINT):
        with _cache_only.held():
            yield False
    else:
        yield True


@contextmanager
def silent_root_logger() -> Iterator[None]:
    """Drop what open_clip logs within this block: what matters of it becomes an error of ours."""
    with _without_open_clip_logs.held():
        yield


def _answers(url: str) -> bool:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PROBE_TIMEOUT_S):
            return True
    except urllib.error.HTTPError:
        return True  # a refusal is an answer
    except OSError:
        return False
