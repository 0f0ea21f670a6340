"""The text tower of a space without torch: token ids, rows of the table of words, and ONNX graphs, one after another.

A command embeds one line of text. So a tower is cut into parts of some megabytes (`onnx_graphs.cut`), each of which is
opened, run and closed: as one graph ViT-B-32-SigLIP2-256's would take 0.4 GB of memory. Its table of words, another 0.4
GB, is in no graph: it is mapped into memory, and the rows of the text's words are read.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinodex.index.errors import BadCheckpoint, TowersDamaged
from kinodex.index.spaces.arrays import ArrayFile
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.onnx_runtime import open_session
from kinodex.index.spaces.tokenizer import Tokenizer, TokenizerSettings, settings_from_json
from kinodex.index.spaces.towers import read_whole

WEIGHTS, GRAPHS = "text.safetensors", "graphs.safetensors"
"""The files with the weights, which ONNX Runtime maps into memory, and with the graphs that use them."""
WORDS, PART = "words", "part.{}"
"""Names in these files: of the table of words, and of the graphs by their number."""
IDS, ROWS, VECTORS = "ids", "rows", "vectors"
"""Names of values: token ids int64 [n, length], their rows of the table, and unit vectors float32 [n, dim]."""
TEXT_BATCH = 16
SPELLING = 2
"""Letters of pieces that tell nothing of their word: "xqzjv" is made of x, q, z, j and v."""
KEPT_BYTES = 256 << 20
"""Most bytes of weights of graphs that stay in memory, where they take twice as many."""


@dataclass(frozen=True, slots=True)
class TextSettings:
    """Settings of an exported text tower; JSON values in `tower.json`."""

    tokenizer: TokenizerSettings
    parts: tuple[tuple[str, ...], ...]
    """The names of the values that each graph takes."""
    trims: bool
    """The padding that a batch of texts has in common may be left out."""
    is_table: bool = False
    """A text's vector is the mean of its words' rows: without a word that is known it says nothing of the text."""

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TextSettings:
        """Read settings from JSON values; raises TypeError or KeyError if they are another's."""
        return cls(**{**found, "tokenizer": settings_from_json(found["tokenizer"]), "parts": _names(found["parts"])})


def _names(parts: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(str(name) for name in part) for part in parts)


class TextTower:
    """Embeds texts as the space does whose text tower was exported. Several threads may use one at once."""

    def __init__(self, folder: Path, fingerprint: Fingerprint, settings: TextSettings) -> None:
        """Read the tokenizer and map the weights; raises BadCheckpoint if a file is damaged."""
        self.fingerprint, self.name, self.dim = fingerprint, fingerprint.name, fingerprint.dim
        self.settings = settings
        self._folder = folder
        weights, graphs = ArrayFile(folder / WEIGHTS), ArrayFile(folder / GRAPHS)
        self._words = weights.map(WORDS)
        self._graphs = [graphs.map(PART.format(number)) for number in range(len(settings.parts))]
        self._may_keep = weights.path.stat().st_size - self._words.nbytes <= KEPT_BYTES
        self._kept: list[Any] = []
        self._lock = threading.Lock()
        self._calls = 0
        self._tokenizer = Tokenizer(folder, settings.tokenizer)

    @classmethod
    def open(cls, folder: Path, name: str | None = None) -> TextTower:
        """Open the text tower of a folder, of a space called `name` or as it was exported.

        Raises TowersDamaged, or BadCheckpoint if a file cannot be read.
        """
        space, tower = read_whole(folder, "text", name)
        try:
            settings = TextSettings.from_json(tower.settings)
        except (TypeError, KeyError) as error:
            raise TowersDamaged(f"the settings of the text tower in {folder} are not known here: {error}") from error
        return cls(folder, space, settings)

    def embed_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as unit vectors float32 [n, dim]; as zeros those of which a table of words knows no word.

        From the second batch on the graphs stay in memory: who asks once, as a command does, need not hold them.
        """
        vectors = np.empty((len(texts), self.dim), np.float32)
        if not texts:
            return vectors
        ids, tokens = self._tokenizer.encode(texts)
        shortest_first = np.argsort(_lengths(ids), kind="stable")  # so that a batch is as short as it can
        self._calls += 1
        keeps = self._may_keep and (self._calls > 1 or len(texts) > TEXT_BATCH)
        for first in range(0, len(texts), TEXT_BATCH):
            rows = shortest_first[first : first + TEXT_BATCH]
            vectors[rows] = self._computed(ids[rows], self._sessions() if keeps else [])
        if self.settings.is_table:
            vectors[[not any(map(_is_known, self._tokenizer.words(row))) for row in tokens]] = 0
        return vectors

    def _computed(self, ids: NDArray[np.int64], sessions: Sequence[Any]) -> NDArray[np.float32]:
        """Compute the vectors of token ids by sessions that are open, or by one after another."""
        if self.settings.trims:
            ids = ids[:, : int(_lengths(ids).max())]
        values: dict[str, NDArray[Any]] = {IDS: ids, ROWS: self._rows(ids)}
        for number, names in enumerate(self.settings.parts):
            session = sessions[number] if sessions else self._session(number, once=True)
            later = {name for part in self.settings.parts[number + 1 :] for name in part}
            made = _run(session, {name: values[name] for name in names if name in values}, self._folder)
            values = {name: value for name, value in (values | made).items() if name in later or name == VECTORS}
        vectors = values.get(VECTORS)
        if vectors is None or vectors.shape != (len(ids), self.dim):
            raise TowersDamaged(f"the text tower in {self._folder} makes no vectors of {self.dim} dimensions")
        return np.asarray(vectors, np.float32)

    def _rows(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        if ids.min() < 0 or ids.max() >= len(self._words):
            raise BadCheckpoint(
                f"got word {ids.max()} of {len(self._words)} in {self._folder}: its tokenizer is another's"
            )
        return self._words[ids].astype(np.float32)

    def _sessions(self) -> list[Any]:
        with self._lock:
            if not self._kept:
                self._kept = [self._session(number) for number in range(len(self._graphs))]
            return self._kept

    def _session(self, number: int, *, once: bool = False) -> Any:
        return open_session(self._graphs[number].tobytes(), self._folder, 1, once=once)


def _lengths(ids: NDArray[np.int64]) -> NDArray[np.intp]:
    """Count the tokens of each text with one of its padding, if it has any."""
    differs = ids != ids[:, -1:]
    return np.where(differs.any(axis=1), ids.shape[1] - differs[:, ::-1].argmax(axis=1) + 1, 1).clip(max=ids.shape[1])


def _is_known(pieces: Sequence[str]) -> bool:
    """Return True for a word that a table holds whole, or by a piece that is more than spelling."""
    return len(pieces) == 1 or max(map(len, pieces)) > SPELLING


def _run(session: Any, values: Mapping[str, NDArray[Any]], folder: Path) -> dict[str, NDArray[Any]]:
    names = [each.name for each in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, values), strict=True))
    except Exception as error:  # its classes are the compiled module's own, and a graph may fail in any way
        reason = str(error).splitlines()[0][:200]
        raise TowersDamaged(f"cannot compute with the text tower in {folder}: {reason}") from error
