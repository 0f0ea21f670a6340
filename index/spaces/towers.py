"""Folder of a space's exported towers: `tower.json`, written last, and the files that it names.

::

    tower.json              the space, and of each tower its settings, files and check
    text.safetensors        weights of the text tower
    graphs.safetensors      the graphs that use them
    tokenizer.json          its tokenizer
    vocabulary.safetensors  and the words of that
    image.onnx              the image tower, where it was exported

Without a `tower.json` there are no towers, whatever else lies in the folder: so an interrupted export leaves none.
The same folder lies with a library (see `store/carried_towers`), in the user's cache, and with kinodex for the space
that it brings.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from kinodex.index.errors import LibraryDamaged, TowersDamaged
from kinodex.index.named_files import read_text
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.stored_json import facts_of, read_object

FORMAT_VERSION = 2
TOWER_JSON = "tower.json"
TOWERS = "towers"
"""Name of the folder with towers, in a library, in the cache and in kinodex."""
SHIPPED = {"photo": Path(__file__).parent / "photo" / TOWERS}
"""Exported towers that kinodex brings, by the names of their spaces."""
CHUNK_BYTES = 1 << 20
TowerKind = Literal["text", "image"]


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Hash and size of a file."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class TowerFacts:
    """One exported tower: what its code needs to run it, its files, and how near it comes to the original."""

    settings: Mapping[str, Any]
    """JSON values, of the exporter's own."""
    files: Mapping[str, FileFacts]
    """By name in the folder."""
    samples: int
    """Texts or pictures that both towers embedded."""
    least_cosine: float
    """The least cosine between the two vectors of a sample."""

    @property
    def bytes(self) -> int:
        """Size of all files together."""
        return sum(each.bytes for each in self.files.values())


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """The scale and bias by which a space was trained to say if a text fits a picture (SigLIP, arXiv 2303.15343)."""

    scale: float
    bias: float
    words: str = ""
    """The words that training met, between spaces; "" if they are not known, as of a space of the open world."""

    def reads(self, text: str) -> bool:
        """Return True if training met every word of a text.

        The vector of another text, and so its probability, means nothing.
        """
        return not self.words or set(re.findall(r"\w+", text.lower())) <= set(self.words.split())

    def probability(self, cosine: float) -> float:
        """Return the probability that a text fits a picture with which its vector has this cosine."""
        return 1 / (1 + math.exp(-max(min(self.scale * cosine + self.bias, 50.0), -50.0)))


@dataclass(frozen=True, slots=True)
class SpaceCard:
    """The quality of a space, by a measurement that its maker names."""

    summary: str
    """What it is good for, in a few words: "small, for everyday scenes"."""
    measured_on: str
    """The searches by which it was measured."""
    recall_at_1: float
    """Share of them whose first moment is right."""
    recall_at_10: float


@dataclass(frozen=True, slots=True)
class SpaceTowers:
    """Content of `tower.json`: the towers of one space that were exported."""

    space: Fingerprint
    text: TowerFacts | None = None
    image: TowerFacts | None = None
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why a tower ("text", "image") could not be exported."""
    version: int = FORMAT_VERSION
    sigmoid: Sigmoid | None = None
    """None of a space that was trained otherwise."""
    card: SpaceCard | None = None

    @property
    def files(self) -> dict[str, FileFacts]:
        """Files of both towers by name."""
        return {name: facts for tower in (self.text, self.image) if tower for name, facts in tower.files.items()}

    def tower(self, kind: TowerKind) -> TowerFacts | None:
        """Return the tower of this kind, or None if it is not there."""
        return self.text if kind == "text" else self.image


def tower_facts(folder: Path, names: Iterable[str], settings: Any, samples: int, least_cosine: float) -> TowerFacts:
    """Describe a tower whose files an exporter has just written into `folder`; `settings` are JSON values."""
    files = {name: file_facts(folder / name) for name in sorted(names)}
    return TowerFacts(json.loads(json.dumps(settings)), files, samples, least_cosine)


def file_facts(file: Path) -> FileFacts:
    """Hash and measure a file."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return FileFacts(digest.hexdigest(), file.stat().st_size)


def write_towers(folder: Path, towers: SpaceTowers) -> None:
    """Write `tower.json`, which makes the folder's files count; at once or not at all."""
    partial = folder / f".{TOWER_JSON}.{os.getpid()}"
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(towers), indent=1, sort_keys=True) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(folder / TOWER_JSON)


def read_towers(folder: Path, place: str | None = None) -> SpaceTowers | None:
    """Read the `tower.json` of a folder, which came from `place`; None if there is none. Raises TowersDamaged."""
    place = f"{place or folder}/{TOWER_JSON}"
    try:
        text = read_text(folder / TOWER_JSON)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TowersDamaged(f"cannot read {place}: {error}") from error
    try:
        found = read_object(text, place)
        version = int(found["version"])
        if version == FORMAT_VERSION:
            text_tower, image_tower = _tower(found["text"]), _tower(found["image"])
            sigmoid = facts_of(Sigmoid, found["sigmoid"], place) if found.get("sigmoid") else None
            card = facts_of(SpaceCard, found["card"], place) if found.get("card") else None
            space, refusals = facts_of(Fingerprint, found["space"], place), dict(found["refusals"])
            return SpaceTowers(space, text_tower, image_tower, refusals, sigmoid=sigmoid, card=card)
    except (LibraryDamaged, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise TowersDamaged(f"{place} is no description of towers: {error!r}") from error
    raise TowersDamaged(f"{place} has format {version}, and this kinodex reads {FORMAT_VERSION}")


def find_whole(folder: Path, kind: TowerKind) -> tuple[Fingerprint, TowerFacts] | None:
    """Find a tower in a folder whose files are of their sizes; None if none is held. Raises TowersDamaged."""
    towers = read_towers(folder)
    tower = towers.tower(kind) if towers else None
    if towers is None or tower is None:
        return None
    check_sizes(folder, tower.files)
    return towers.space, tower


def read_whole(folder: Path, kind: TowerKind, name: str | None = None) -> tuple[Fingerprint, TowerFacts]:
    """Find a tower as `find_whole` does, of a space called `name` or as it was exported.

    Raises TowersDamaged also if the folder holds none.
    """
    found = find_whole(folder, kind)
    if found is None:
        raise TowersDamaged(f"{folder} holds no {kind} tower")
    space, tower = found
    return (space if name is None else replace(space, name=name)), tower


def check_sizes(folder: Path, files: Mapping[str, FileFacts]) -> None:
    """Raise TowersDamaged if a file is missing or not of its size; its content is not read."""
    for name, facts in files.items():
        file = folder / name
        if not file.is_file():
            raise TowersDamaged(f"{file} is missing")
        if (size := file.stat().st_size) != facts.bytes:
            raise TowersDamaged(f"{file} has {size:,} bytes, and {facts.bytes:,} were written")


def check_content(folder: Path, files: Mapping[str, FileFacts], place: str) -> None:
    """Raise TowersDamaged if a file that was fetched from `place` has another size or hash than was written there."""
    for name, facts in files.items():
        found = file_facts(folder / name)
        if found != facts:
            got, written = f"{found.bytes:,} bytes, sha256 {found.sha256[:12]}", f"{facts.bytes:,}, {facts.sha256[:12]}"
            raise TowersDamaged(f"{place}/{name} is not what was written: it has {got}, and {written} was written")


def _tower(found: Mapping[str, Any] | None) -> TowerFacts | None:
    if found is None:
        return None
    files = {str(name): FileFacts(str(facts["sha256"]), int(facts["bytes"])) for name, facts in found["files"].items()}
    if any(Path(name).name != name for name in files):
        raise ValueError("names of files have no folders")
    return TowerFacts(dict(found["settings"]), files, int(found["samples"]), float(found["least_cosine"]))


def describe_tower(towers: SpaceTowers, kind: TowerKind) -> str:
    """Describe a tower that a library carries, or say why it carries none: "carried, 78.0 MB, least cosine ..."."""
    tower = towers.tower(kind)
    if tower is None:
        reason = towers.refusals.get(kind)
        return f"not carried: {reason}" if reason else "not carried"
    return f"carried, {tower.bytes / 1e6:,.1f} MB, least cosine {tower.least_cosine:.6f} of {tower.samples}"
