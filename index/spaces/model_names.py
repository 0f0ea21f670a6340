"""Names of spaces, resolved to folders of exported towers or to the arguments of open_clip.

The default is SigLIP 2 (Tschannen et al. 2025, arXiv 2502.14786; weights Apache-2.0) in its base size with 32-pixel
patches at 256 px, which understands many languages and needs `transformers` for its tokenizer. It finds the right COCO
picture for a caption first in 47.2 % of cases, where ViT-B-32/laion2b_s34b_b79k finds it in 39.3 %, and
ViT-B-16-SigLIP2-256/webli, at four times the patches, in 53.2 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from kinodex.index.errors import BadCheckpoint, UnknownModel, WeightsMissing
from kinodex.index.spaces.checked_copy import WEIGHT_SUFFIX
from kinodex.index.spaces.towers import SHIPPED, TOWER_JSON, TowerKind, read_towers

DEFAULT_SPACE, PHOTO_SPACE = "ViT-B-32-SigLIP2-256/webli", "photo"
DEFAULT_REPO = "timm/ViT-B-32-SigLIP2-256"
"""Repository of the hub with the default space's weights and tokenizer. open_clip names it too, but takes seconds to
import; a test compares the two.
"""
HUB, LOCAL, EXPORTED = "hf-hub:", "local-dir:", "towers:"
IN_FOLDERS = (LOCAL, EXPORTED)
WHERE_TOWERS_LIE = "those that a library carries lie in LIBRARY/towers/DIGEST"
IMAGE_OPTION = " --with-image-tower"
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
    config: Mapping[str, Any] | None = None
    """The configuration of a model that is not of open_clip's own list, as it was given."""

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
    kind, separator, path = name.partition(":" if name.startswith(IN_FOLDERS) else "/")
    if not name.startswith(IN_FOLDERS) and (name.startswith(HUB) or not path.endswith(WEIGHT_SUFFIX)):
        return name
    given = Path(path)
    found = given.expanduser() if given.parts[:1] == ("~",) else given  # of ~nobody it would raise a RuntimeError
    return f"{kind}{separator}{found.absolute()}"


def exported_folder(name: str) -> Path | None:
    """Return the folder with the exported towers that a name stands for; None for a model that torch loads."""
    if name.startswith(EXPORTED):
        return Path(absolute_name(name).removeprefix(EXPORTED))
    return SHIPPED.get(name)


def check_exported(name: str, kind: TowerKind | None = None) -> None:
    """Raise WeightsMissing for a folder without exported towers, or without that of a `kind`; other names pass.

    Raises TowersDamaged for a description that cannot be read.
    """
    folder = exported_folder(name)
    if folder is None:
        return
    if not _is_folder(folder):
        raise WeightsMissing(f"got space {name!r}, but there is no such folder; {WHERE_TOWERS_LIE}")
    towers = read_towers(folder)
    if towers is None:
        raise WeightsMissing(f"got space {name!r}, but {folder} holds no {TOWER_JSON}; {WHERE_TOWERS_LIE}")
    if kind is not None and towers.tower(kind) is None:
        what = f"a library carries one after `kinodex add text-tower LIBRARY{IMAGE_OPTION if kind == 'image' else ''}`"
        raise WeightsMissing(f"got space {name!r}, but {folder} holds no {kind} tower; {what}")


def check_local(name: str) -> None:
    """Raise WeightsMissing or BadCheckpoint for a name of a folder that holds no model; other names pass."""
    if name.startswith(LOCAL):
        _check_folder(name, Path(name.removeprefix(LOCAL)))


def check_unloaded(name: str) -> None:
    """Check the name of a space as far as that takes no import of open_clip, which takes seconds; raises UnknownModel.

    Of a folder that holds no model it raises as `check_local` does, of one that holds no towers as `check_exported`.
    """
    check_local(name)
    check_exported(name)
    architecture = name.partition("/")[0]
    known = _architectures()
    is_listed = exported_folder(name) is None and not name.startswith((LOCAL, HUB))
    if is_listed and known and architecture not in known:
        raise _unknown(name, architecture, known)


def _architectures() -> list[str]:
    """Names of open_clip's architectures, by the files of their configurations; empty where it is not installed."""
    found = find_spec("open_clip")
    folders = (found.submodule_search_locations if found else None) or ()
    return sorted(file.stem for folder in folders for file in Path(folder, "model_configs").glob("*.json"))


def _unknown(name: str, given: str, known: Sequence[str]) -> UnknownModel:
    return UnknownModel(f"got space {name!r}, which open_clip does not know; {_nearest(given, known)}; {HOW_TO_LIST}")


def model_name(open_clip: ModuleType, name: str) -> ModelName:
    """Check the name of a space as far as possible without loading anything."""
    name = absolute_name(name)
    if exported_folder(name) is not None:
        raise UnknownModel(f"got space {name!r}, which is exported towers and no model of open_clip")
    if name.startswith(LOCAL):
        check_local(name)
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
        raise _unknown(name, name, ["/".join(pair) for pair in open_clip.list_pretrained()])
    if settings := open_clip.get_pretrained_cfg(architecture, pretrained):
        return ModelName(name, architecture, pretrained, settings)
    if pretrained.endswith(WEIGHT_SUFFIX) and Path(pretrained).is_file():
        return ModelName(name, architecture, pretrained, preprocess=_usual_preprocess(open_clip, architecture))
    if Path(pretrained).is_file():
        what = "files of other kinds may hold code; convert it by safetensors.torch.save_file"
        raise BadCheckpoint(f"got space {name!r}, whose weights are no {WEIGHT_SUFFIX}: {what}")
    if "/" in pretrained or pretrained.endswith(WEIGHT_SUFFIX):
        what = f"there is no file {pretrained}; give the path of a checkpoint ({WEIGHT_SUFFIX})"
        raise WeightsMissing(f"got space {name!r}, but {what}")
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


def _is_folder(path: Path) -> bool:
    """Return True of a folder; False also for a name that no file can have."""
    try:
        return path.is_dir()
    except OSError:  # it is too long, say
        return False


def _check_folder(name: str, folder: Path) -> None:
    if not _is_folder(folder):
        what = "there is no such folder; give one that holds open_clip_config.json and the weights"
        raise WeightsMissing(f"got space {name!r}, but {what}")
    if not (folder / "open_clip_config.json").is_file():
        what = f"{folder} holds no open_clip_config.json; add it beside the weights"
        raise BadCheckpoint(f"got space {name!r}, but {what}")
    if not any(file.suffix == WEIGHT_SUFFIX for file in folder.iterdir()):
        what = f"{folder} holds no weights; add open_clip_model.safetensors"
        raise WeightsMissing(f"got space {name!r}, but {what}")
