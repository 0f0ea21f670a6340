"""Export of a space's text tower, and its check: the numpy tower must give the vectors of torch's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from index.embedding.portable.array_file import write_arrays
from index.embedding.portable.check_texts import CHECK_TEXTS
from index.embedding.portable.export_tokenizer import export_tokenizer
from index.embedding.portable.export_transformer import export_transformer
from index.embedding.portable.text_tower import WEIGHTS, TextSettings, TextTower
from index.embedding.portable.tokenizer import TOKENIZER_JSON, VOCABULARY, Tokenizer
from index.embedding.portable.tower_files import TowerFacts, tower_facts
from index.errors import ExportRefused

if TYPE_CHECKING:
    from index.embedding.space import Space

MIN_COSINE = 0.9999
LARGEST_HALF = 65504.0
CHECK_BATCH = 32


@dataclass(frozen=True, slots=True)
class Agreement:
    """The nearness of an exported tower to the original."""

    least_cosine: float
    worst_text: str


def export_text_tower(space: Space, folder: Path) -> TowerFacts:
    """Write the text tower of a loaded space to `folder`, in half precision where that is near enough.

    The folder's `tower.json` is the caller's to write. Raises ExportRefused with the reason if the tower is of a kind
    that is not covered, or if one of the check's texts has other token ids, or a vector with a cosine below 0.9999.
    """
    model, tokenizer = space.text_parts()
    arrays, transformer = export_transformer(model)
    settings = TextSettings(transformer, export_tokenizer(tokenizer, folder))
    _check_ids(space.name, Tokenizer(folder, settings.tokenizer), tokenizer)
    expected = torch_vectors(space)
    found = Agreement(-1.0, "")
    for floats in _precisions(arrays):
        write_arrays(folder / WEIGHTS, arrays, floats)
        found = agreement(TextTower(folder, space.fingerprint, settings), expected)
        if found.least_cosine >= MIN_COSINE:
            names = (WEIGHTS, TOKENIZER_JSON, VOCABULARY)
            return tower_facts(folder, names, asdict(settings), len(CHECK_TEXTS), round(found.least_cosine, 7))
    what = f"its vector of {found.worst_text[:60]!r} has a cosine of {found.least_cosine:.5f} to torch's"
    raise ExportRefused(f"the text tower of {space.name} cannot be exported: {what}, and {MIN_COSINE} is needed")


def torch_vectors(space: Space) -> NDArray[np.float32]:
    """Embed the check's texts by torch, each in the batch that the numpy tower's check has it in."""
    return np.concatenate([space.embed_text(batch) for batch in _batches()])


def agreement(tower: TextTower, expected: NDArray[np.float32]) -> Agreement:
    """Compare a tower's vectors of the check's texts with those expected; a vector that is no number counts as -1."""
    vectors = np.concatenate([tower.embed_text(batch) for batch in _batches()])
    cosines = np.nan_to_num((vectors.astype(np.float64) * expected).sum(1), nan=-1.0)
    worst = int(cosines.argmin())
    return Agreement(float(cosines[worst]), CHECK_TEXTS[worst])


def _precisions(arrays: dict[str, NDArray[np.float32]]) -> tuple[str, ...]:
    fits = all(np.abs(each).max(initial=0) <= LARGEST_HALF for each in arrays.values())
    return ("F16", "F32") if fits else ("F32",)


def _check_ids(space_name: str, exported: Tokenizer, tokenizer: Any) -> None:
    for batch in _batches():
        for text, ours, theirs in zip(batch, exported(batch), tokenizer(batch).numpy(), strict=True):
            if not np.array_equal(ours, theirs):
                place = int((ours != theirs).argmax())
                what = f"token {place} of {text[:60]!r} is {ours[place]}, and {theirs[place]} for open_clip"
                raise ExportRefused(f"the tokenizer of {space_name} cannot be exported: {what}")


def _batches() -> Iterator[list[str]]:
    for first in range(0, len(CHECK_TEXTS), CHECK_BATCH):
        yield list(CHECK_TEXTS[first : first + CHECK_BATCH])
