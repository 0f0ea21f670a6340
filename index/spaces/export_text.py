"""Export of a text tower to ONNX graphs, and its check: they must give the vectors of torch."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import ExportRefused, TowersDamaged
from kinodex.index.spaces.arrays import ArrayFile, write_arrays
from kinodex.index.spaces.export_tokenizer import export_tokenizer
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.onnx_graphs import beside, cut, halved, trace, weights_of
from kinodex.index.spaces.text_tower import GRAPHS, IDS, PART, ROWS, VECTORS, WEIGHTS, WORDS, TextSettings, TextTower
from kinodex.index.spaces.tokenizer import TOKENIZER_JSON, VOCABULARY, Tokenizer, TokenizerSettings
from kinodex.index.spaces.towers import TowerFacts, tower_facts

if TYPE_CHECKING:
    import torch

    from kinodex.index.spaces.space import Space

MIN_COSINE = 0.9999
CHECK_BATCH = 32
PART_BYTES = 16 << 20
"""Weights of a graph: more take more memory, and fewer are no quicker."""
CHECKS = json.loads((Path(__file__).parent / "check_texts.json").read_text(encoding="utf-8"))
CHECK_TEXTS: tuple[str, ...] = tuple(CHECKS["towers"])
"""Texts on which an exported tower must agree with the original: many scripts, lengths, and what goes wrong."""
VECTOR_TEXTS = CHECK_TEXTS[::16]
"""Those whose vectors are compared: all 200 took ViT-B-32 26 CPU s, torch's transformer 18 of them."""
TRACED_TEXTS = ("a red boat on a calm lake", "two dogs")
"""Of two lengths, so that one has padding."""

Floats = NDArray[np.float32]


def export_text_tower(space: Space, folder: Path) -> TowerFacts:
    """Write the text tower of a loaded space to `folder`, in half precision where that is near enough.

    Raises ExportRefused with the reason: torch cannot export a tower of this kind, or the export differs. All texts of
    the check must have the same token ids, and every sixteenth a vector with a cosine of at least 0.9999.
    """
    model, tokenizer = space.text_parts()
    settings = export_tokenizer(tokenizer, folder)
    check_ids(space.name, Tokenizer(folder, settings), lambda texts: tokenizer(texts).numpy())
    embed = partial(TextTower.embed_text, texts=VECTOR_TEXTS)
    what, expected = f"the text tower of {space.name}", space.embed_text(VECTOR_TEXTS)
    return write_tower(folder, what, space.fingerprint, model, _features, settings, VECTOR_TEXTS, expected, embed)


def _features(model: Any, ids: Any) -> Any:
    return model.encode_text(ids)


def write_tower(
    folder: Path,
    what: str,
    space: Fingerprint,
    model: Any,
    features: Callable[[Any, Any], Any],
    tokenizer: TokenizerSettings,
    texts: Sequence[str],
    expected: Floats,
    embed: Callable[[TextTower], Floats],
) -> TowerFacts:
    """Write the tower that computes `features` by a model of torch and token ids.

    Padding is left out and weights are halved where the texts keep their `expected` vectors. Raises ExportRefused.
    """
    model = _on_cpu(model)
    words = _word_table(what, model)
    graph, weights = _traced(what, model, features, words, Tokenizer(folder, tokenizer)(TRACED_TEXTS))
    why = ""
    for is_half in (True, False):
        table = {WORDS: words.weight.detach().numpy()}
        stored = halved(weights) if is_half else weights
        write_arrays(folder / WEIGHTS, {**stored, **(halved(table) if is_half else table)})
        parts = cut(graph, stored, beside(ArrayFile(folder / WEIGHTS)), PART_BYTES)
        graphs = {PART.format(number): np.frombuffer(part.graph, np.uint8) for number, part in enumerate(parts)}
        write_arrays(folder / GRAPHS, graphs)
        untrimmed = TextSettings(tokenizer, tuple(part.takes for part in parts), trims=False)
        settings = replace(untrimmed, trims=_may_trim(folder, space, untrimmed))
        cosines = np.nan_to_num((embed(TextTower(folder, space, settings)) * expected).sum(1), nan=-1.0)
        least, worst = float(cosines.min()), texts[int(cosines.argmin())]
        if least >= MIN_COSINE:
            names = (WEIGHTS, GRAPHS, TOKENIZER_JSON, VOCABULARY)
            return tower_facts(folder, names, asdict(settings), len(texts), round(least, 7))
        why = f"its vector of {worst[:60]!r} has a cosine of {least:.5f} to torch's, and {MIN_COSINE} is needed"
    raise ExportRefused(f"{what} cannot be exported: {why}")


def _may_trim(folder: Path, space: Fingerprint, untrimmed: TextSettings) -> bool:
    """Return True if the graphs make of texts without padding what they make of them with it.

    Some graphs take only one length.
    """
    trimmed = replace(untrimmed, trims=True)
    try:
        short, whole = (TextTower(folder, space, each).embed_text(TRACED_TEXTS) for each in (trimmed, untrimmed))
    except TowersDamaged:
        return False
    return bool((short * whole).sum(1).min() >= MIN_COSINE)


def _on_cpu(model: Any) -> Any:
    """Return a model, or its copy, whose weights are float32 in the memory of the CPU."""
    kinds = {(str(weight.dtype), weight.device.type) for weight in model.parameters()}
    return model if kinds <= {("torch.float32", "cpu")} else copy.deepcopy(model).cpu().float()


def _word_table(what: str, model: Any) -> Any:
    """Find the module that looks up the words of a text, which is no part of the graphs."""
    import torch

    tables = [each for each in model.modules() if isinstance(each, torch.nn.Embedding)]
    if not tables:
        raise ExportRefused(f"{what} has no table of words")
    return max(tables, key=lambda each: each.num_embeddings)


def _traced(
    what: str, model: Any, features: Callable[[Any, Any], Any], words: Any, ids: NDArray[np.int64]
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Trace the way from token ids and their rows of the table of words to unit vectors; return its weights too."""
    import torch

    class Embedding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            with _given(words, rows):
                return torch.nn.functional.normalize(features(self.model, ids).float(), dim=-1)

    module, given = Embedding().eval(), torch.from_numpy(ids)
    both = {0: "texts", 1: "length"}
    with torch.no_grad():
        values = {IDS: given, ROWS: words(given)}
    graph = trace(what, module, values, VECTORS, {IDS: both, ROWS: both, VECTORS: {0: "texts"}})
    return graph, weights_of(module, graph)


@contextmanager
def _given(words: Any, rows: Any) -> Iterator[None]:
    """Have the table of words find these rows within the block."""
    hook = words.register_forward_hook(lambda *_: rows)
    try:
        yield
    finally:
        hook.remove()


def check_ids(space_name: str, exported: Tokenizer, ids_of: Callable[[list[str]], NDArray[np.int64]]) -> None:
    """Raise ExportRefused if a text of the check has other token ids than those that `ids_of` gives."""
    for batch in _batches():
        for text, ours, theirs in zip(batch, exported(batch), ids_of(batch), strict=True):
            if not np.array_equal(ours, theirs):
                place = int((ours != theirs).argmax())
                what = f"token {place} of {text[:60]!r} is {ours[place]}, and {theirs[place]} in the original"
                raise ExportRefused(f"the tokenizer of {space_name} cannot be exported: {what}")


def _batches() -> Iterator[list[str]]:
    for first in range(0, len(CHECK_TEXTS), CHECK_BATCH):
        yield list(CHECK_TEXTS[first : first + CHECK_BATCH])
