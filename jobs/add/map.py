"""A function of the user's own over frames, segments or videos: columns that it makes, added as those of models are.

The function names what it wants by its parameters (see `GIVEN`), gets it batch by batch, and returns a column, or
several by name. The text of the function is kept with its rows: another function would make others.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinodex.index.additions import MAPPED_KEYS, MAPPED_NAME, as_one_type
from kinodex.index.rows import VideoRow
from kinodex.jobs.add.functions import name_of
from kinodex.jobs.add.run import AddedRows
from kinodex.jobs.add.stage import StageWork
from kinodex.jobs.add.stages import Map
from kinodex.jobs.errors import UsageError
from kinodex.jobs.library import BATCHES_AHEAD, batched, frames_between, picture_of
from kinodex.pipeline.prefetch import prefetch

Over = Literal["frames", "segments", "videos"]
OVERS: tuple[Over, ...] = get_args(Over)
GIVEN: Mapping[Over, tuple[str, ...]] = {
    "frames": ("pictures", "vectors", "times_s", "frame_no", "video"),
    "segments": ("pictures", "vectors", "start_s", "end_s", "video"),
    "videos": ("pictures", "vectors", "video"),
}
"""Parameters that a function may have.

Over frames `pictures` are uint8 `[n, height, width, 3]` and `vectors` float32 `[n, dim]`. Over segments and videos they
are lists of such arrays, of some pictures of each (`pictures_each`), and of the vectors of all its frames.
"""


@dataclass(frozen=True, slots=True)
class ColumnMaker(StageWork[Map]):
    """Columns of a library that a function makes."""

    def prepare(self) -> None:
        """Check the function; raises UsageError for one that is another than the one that made what is there."""
        stage, library, into = self.stage, self.library, self.model
        if stage.over not in OVERS:
            raise UsageError(f"got over={stage.over!r}; give one of {', '.join(OVERS)}")
        if not MAPPED_NAME.fullmatch(into) or into in MAPPED_KEYS:
            raise UsageError(f"got into={into!r}; give a name of small letters, digits and _, a letter first")
        self._wanted()
        stored, mine = library.additions.settings(self.name, into), self.settings
        changed = [key for key in ("source_sha256", "version", "over", "pictures_each") if stored.get(key) != mine[key]]
        if stored and changed and not stage.replace:
            what = "the function" if changed[0] == "source_sha256" else changed[0]
            raise UsageError(
                f"{library.uri} holds {into} by {stored['function']} ({stored['source_sha256']}), and {what} is "
                f"another now ({mine['function']}, {mine['source_sha256']}): give replace=True, on the command line "
                "--replace, to make all rows again, or another name to keep both"
            )
        if stored and changed:
            library.additions.drop_mapped(into)

    def rows_of(self, video: VideoRow) -> AddedRows:
        keys, batches = self._batches(video)
        with closing(prefetch(batches, BATCHES_AHEAD)) as ahead:
            made = [self._columns(len(first), self.stage.function(**given)) for first, given in ahead]
        if not made:
            return AddedRows(None, 0)
        rows = as_one_type(made, self.model)
        for number, (name, values) in enumerate(keys.items()):
            rows = rows.add_column(number, name, pa.array(values))
        return AddedRows(rows, rows.num_rows)

    def write(self, rows: Mapping[str, Any]) -> None:
        self.library.additions.add_mapped(rows, self.model, is_of_videos=self.stage.over == "videos")

    @property
    def _over(self) -> Over:
        return cast(Over, self.stage.over)

    def _wanted(self) -> tuple[str, ...]:
        """Return the function's parameters; raises UsageError for one that nothing is given for."""
        wanted = tuple(inspect.signature(self.stage.function).parameters)
        others = [name for name in wanted if name not in GIVEN[self._over]]
        if others or not wanted:
            got = f"a parameter {others[0]}" if others else "no parameter"
            raise UsageError(
                f"got {name_of(self.stage.function)} with {got}; over {self.stage.over} a function takes some of "
                f"{', '.join(GIVEN[self._over])}, by these names"
            )
        return wanted

    def _batches(
        self, video: VideoRow
    ) -> tuple[dict[str, Any], Generator[tuple[Sequence[Any], dict[str, Any]], None, None]]:
        """Return the columns that say of what each row is; and what the function gets, batch by batch."""
        library = self.library
        match self.stage.over:
            case "frames":
                numbers, times_s = library.frame_times(video.video_id)
                return {"frame_no": numbers, "time_s": times_s}, self._of_frames(video, numbers, times_s)
            case "segments":
                parts = [(each.start_s, each.end_s) for each in library.segments(video.video_id)]
                start_s, end_s = np.array(parts, np.float64).reshape(-1, 2).T
                keys = {"segment_no": np.arange(len(parts), dtype=np.int32), "start_s": start_s, "end_s": end_s}
                return keys, self._of_parts(video, parts, self.stage.batch)
            case _:
                return {}, self._of_parts(video, [(video.start_s, video.end_s)], 1)

    def _of_frames(
        self, video: VideoRow, numbers: NDArray[np.int32], times_s: NDArray[np.float64]
    ) -> Generator[tuple[Sequence[Any], dict[str, Any]], None, None]:
        library, wanted = self.library, self._wanted()
        vectors = library.vectors(video.video_id).vectors if "vectors" in wanted else None
        for rows in batched(range(len(numbers)), self.stage.batch):
            part = slice(rows[0], rows[-1] + 1)
            given: dict[str, Any] = {"times_s": times_s[part], "frame_no": numbers[part], "video": video}
            if vectors is not None:
                given["vectors"] = vectors[part].astype(np.float32)
            if "pictures" in wanted:
                given["pictures"] = _pictures(library.frames(video.video_id, numbers[part].tolist()))
            yield rows, {name: given[name] for name in wanted}

    def _of_parts(
        self, video: VideoRow, spans_s: Sequence[tuple[float, float]], batch: int
    ) -> Generator[tuple[Sequence[Any], dict[str, Any]], None, None]:
        library, wanted = self.library, self._wanted()
        held = library.vectors(video.video_id) if "vectors" in wanted and video.frames else None
        for spans in batched(spans_s, batch):
            given: dict[str, Any] = {"video": video}
            given["start_s"], given["end_s"] = np.array(spans, np.float64).reshape(-1, 2).T
            if "vectors" in wanted:
                given["vectors"] = (
                    [] if held is None else [_between(held.time_s, held.vectors, *span) for span in spans]
                )
            if "pictures" in wanted:
                found = frames_between(library, video, spans, self.stage.pictures_each) if video.frames else []
                given["pictures"] = [_pictures(frames) for frames in found]
            yield spans, {name: given[name] for name in wanted}

    def _columns(self, count: int, made: Any) -> pa.Table:
        """Return a table of this many rows from what the function returned; raises UsageError for what is none."""
        name = name_of(self.stage.function)
        try:
            columns = _as_columns(made, self.model)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise UsageError(f"{name} returned values that Arrow cannot hold in a column: {error}") from error
        for column, values in columns.items():
            if len(values) != count:
                raise UsageError(
                    f"{name} returned {len(values)} values of {column} for {count} {self.stage.over}; give each one"
                )
            if not MAPPED_NAME.fullmatch(column) or column in MAPPED_KEYS:
                raise UsageError(f"{name} returned a column {column!r}; small letters, digits and _ name one")
        return pa.table(columns)


def _as_columns(made: Any, into: str) -> dict[str, pa.Array]:
    if isinstance(made, pa.RecordBatch | pa.Table):
        return {name: _combined(made.column(name)) for name in made.schema.names}
    if isinstance(made, Mapping):
        return {str(name): _as_array(values) for name, values in made.items()}
    values = _as_array(made)
    if pa.types.is_struct(values.type):
        return {each.name: part for each, part in zip(values.type, values.flatten(), strict=True)}
    return {into: values}


def _as_array(values: Any) -> pa.Array:
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return _combined(values)
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).ravel()), values.shape[1])
    return pa.array(values if isinstance(values, np.ndarray) else list(values))


def _combined(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _pictures(frames: Sequence[Any]) -> NDArray[np.uint8] | list[NDArray[np.uint8]]:
    """Return the pictures as `[n, height, width, 3]`, or as a list where they differ in size."""
    pictures = [np.asarray(picture_of(frame)) for frame in frames]
    return np.stack(pictures) if len({each.shape for each in pictures}) == 1 else pictures


def _between(
    times_s: NDArray[np.float64], vectors: NDArray[np.float16], start_s: float, end_s: float
) -> NDArray[np.float32]:
    first, last = np.searchsorted(times_s, [start_s, end_s])
    return vectors[first:last].astype(np.float32)
