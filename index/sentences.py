"""Lines of text as vectors of a sentence model: a table for each model, written by `kinodex add sentences`.

The rows hold the text itself, of what was said, shown and captioned; a search by meaning reads no other table. Rows of
text that readers no longer see, an older model's captions, are not found, and their videos are outdated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.annotations.lines import LineKey, count_lines, grouped, stored_lines
from kinodex.index.errors import BadCheckpoint, SpaceMismatch, TorchMissing, WeightsMissing
from kinodex.index.kinds import LINE_KINDS
from kinodex.index.rows import TextLine
from kinodex.index.spaces.fingerprint import Fingerprint
from kinodex.index.spaces.likeness import Likeness
from kinodex.index.spaces.named_models import OF_TRANSFORMERS, check_named
from kinodex.index.spaces.sentence_model import load_sentence_model
from kinodex.index.spaces.sentence_tower import SentenceEmbedder
from kinodex.index.store.carried_towers import open_sentence_tower
from kinodex.index.store.database import Tables
from kinodex.index.store.filters import equal
from kinodex.index.store.held_tables import space_tables
from kinodex.index.store.late_tables import ensure_table
from kinodex.index.store.schema import LIKENESS_KEY, SENTENCES_PREFIX, sentences_schema, vectors_table
from kinodex.index.stored_json import read_facts
from kinodex.index.vector_columns import matrix_of, with_vectors
from kinodex.index.videos.damage import check_vectors
from kinodex.index.videos.visibility import VisibilityCache

STAGE = "sentences"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A query as the unit vector `[dim]` of a sentence model, for `Search.words` and the searches that fuse."""

    vector: NDArray[np.float32]
    space: Fingerprint
    least_cosine: float
    """The least cosine of a line that is found beside other things: a nearest line always exists."""

    def every(self) -> Meaning:
        """Return the same for a search of lines alone: an order of all of them, however far they are."""
        return replace(self, least_cosine=-1.0)


class Sentences:
    """Lines of one library as vectors of its sentence models."""

    def __init__(self, tables: Tables, visible: VisibilityCache) -> None:
        self._tables = tables
        self._visible = visible
        self._embedders: dict[str, SentenceEmbedder] = {}
        self._unloadable = ""  # digest of the model that `missing` is about
        self.missing = ""
        """Why this machine cannot embed queries, once `meaning` was called; empty if it can."""

    def spaces(self) -> tuple[Fingerprint, ...]:
        """List the sentence models that lines have vectors of."""
        return tuple(space_tables(self._tables, SENTENCES_PREFIX).values())

    def space(self, name: str | None = None) -> Fingerprint | None:
        """Find a sentence model by its name or digest; None if the library has none.

        Without a name it is the one that embedded the most videos, of several the one that was used last: a model that
        is tried on one video, or still at work, hides no line of the others. Raises SpaceMismatch for a name that the
        library does not hold.
        """
        if name is not None:
            found = [each for each in self.spaces() if name in (each.name, each.digest)]
            if len(found) != 1:
                held = ", ".join(f"{each.name} ({each.digest})" for each in self.spaces()) or "none"
                raise SpaceMismatch(
                    f"got sentence model {name}, and {self._tables.uri} holds {held}; "
                    f"{'give a digest' if found else '`kinodex add sentences` adds one'}"
                )
            return found[0]
        return self._visible.usual_space(STAGE)

    def seen_in(self, visible: VisibilityCache) -> Sentences:
        """Return the same lines of other videos; models that are loaded serve both."""
        found = copy(self)
        found._visible = visible
        return found

    def add_space(self, fingerprint: Fingerprint, likeness: Likeness) -> None:
        """Create the table of a sentence model, if it is missing."""
        schema = sentences_schema(fingerprint, asdict(likeness))
        ensure_table(self._tables, vectors_table(fingerprint, SENTENCES_PREFIX), schema)

    def lines(self, video_id: str) -> list[TextLine]:
        """Read the lines of a complete video that readers see: what there is to embed, in presentation times."""
        return stored_lines(self._tables, self._visible, video_id)

    def add(
        self, videos: Mapping[str, tuple[Sequence[TextLine], NDArray[np.floating[Any]]]], fingerprint: Fingerprint
    ) -> None:
        """Append `lines` and their vectors `[n, dim]` by video id; `Additions.complete` makes them visible."""
        table = vectors_table(fingerprint, SENTENCES_PREFIX)
        parts = [self._tables.schema(table).empty_table()]
        for video_id, (lines, vectors) in videos.items():
            columns = [[getattr(line, name) for line in lines] for name in parts[0].column_names[1:-1]]
            parts.append(with_vectors(video_id, columns, vectors, parts[0].schema))
        self._tables.append(table, pa.concat_tables(parts))

    def vectors(self, video_id: str, fingerprint: Fingerprint) -> dict[str, NDArray[np.float32]]:
        """Read the vectors `[dim]` of the lines of a video by a model, by their text; none before it is complete."""
        if fingerprint.digest not in self._visible.models(STAGE, [video_id]).get(video_id, ()):
            return {}
        of_video = equal("video_id", video_id)
        columns = ["video_id", "text", "vector"]
        rows = self._tables.rows(vectors_table(fingerprint, SENTENCES_PREFIX), of_video, columns)
        check_vectors(rows, self._tables.uri)
        return dict(zip(rows["text"].to_pylist(), matrix_of(rows["vector"]).astype(np.float32), strict=True))

    def outdated(self, fingerprint: Fingerprint) -> list[str]:
        """List the videos whose lines are no longer those that this model embedded."""
        names = {space.digest: table for table, space in space_tables(self._tables, SENTENCES_PREFIX).items()}
        complete = {id_ for id_, models in self._visible.models(STAGE).items() if fingerprint.digest in models}
        if not complete or fingerprint.digest not in names:
            return []
        shown, held = count_lines(self._tables, self._visible), self._held(names[fingerprint.digest])
        changed = {key[0] for key in shown.keys() | held.keys() if shown[key] != held[key]}
        return sorted((changed | self._older(fingerprint.digest)) & complete)

    def load(self, name: str | None = None) -> SentenceEmbedder | None:
        """Load a sentence model of the library (see `space`) to embed queries; None if the library has none.

        It is the exported one, without torch, where the library carries it. Raises SpaceMismatch if the name stands
        for other weights here, or a SpaceError: TorchMissing where there is neither an exported one nor torch.
        """
        space = self.space(name)
        return None if space is None else self._loaded_once(space)

    def meaning(self, text: str) -> Meaning | None:
        """Embed a query by the library's sentence model; None, with a reason in `missing`, where that cannot be had."""
        space = self.space()
        if space is None or space.digest == self._unloadable or not text.strip():
            return None
        try:
            embedder = self._loaded_once(space)
        except (TorchMissing, WeightsMissing, BadCheckpoint, SpaceMismatch) as error:
            self.missing, self._unloadable = str(error), space.digest
            return None
        self.missing = ""
        return Meaning(embedder.embed_texts([text])[0], embedder.space, self._likeness(embedder.space).least)

    def least_cosine(self) -> float:
        """Return the least cosine of a line that counts as found by its meaning; -1 without a sentence model."""
        space = self.space()
        return -1.0 if space is None else self._likeness(space).least

    def _likeness(self, space: Fingerprint) -> Likeness:
        name = vectors_table(space, SENTENCES_PREFIX)
        metadata = self._tables.schema(name).metadata or {}
        return read_facts(Likeness, metadata.get(LIKENESS_KEY, ""), f"the likeness of {name}")

    def _loaded_once(self, space: Fingerprint) -> SentenceEmbedder:
        if space.digest not in self._embedders:
            self._embedders[space.digest] = self._loaded(space)
        return self._embedders[space.digest]

    def _loaded(self, space: Fingerprint) -> SentenceEmbedder:
        exported = open_sentence_tower(self._tables.uri, space)
        if exported is not None:
            return exported
        check_named(space.name, self._tables.uri, OF_TRANSFORMERS)
        loaded = load_sentence_model(space.name)
        if loaded.space.digest != space.digest:
            raise SpaceMismatch(
                f"got sentence model {loaded.space}, but {self._tables.uri} holds {space}: here the same name stands "
                "for other weights; use those that its lines were embedded with"
            )
        return loaded

    def _held(self, table: str) -> Counter[LineKey]:
        counts: Counter[LineKey] = Counter()
        for batch in self._tables.batches(table, None, ["video_id", "source", "model"]):
            for row in grouped(batch, ["video_id", "source", "model"]):
                counts[row["video_id"], row["source"], row["model"]] += row["count_all"]
        return counts

    def _older(self, digest: str) -> set[str]:
        """List the videos that a model wrote text of after their lines were embedded."""
        rows = self._tables.rows("additions", None, ["video_id", "stage", "model", "added_at"]).to_pylist()
        embedded = {row["video_id"]: row["added_at"] for row in rows if (row["stage"], row["model"]) == (STAGE, digest)}
        stages = set(LINE_KINDS)
        return {
            row["video_id"]
            for row in rows
            if row["stage"] in stages and row["video_id"] in embedded and row["added_at"] > embedded[row["video_id"]]
        }
