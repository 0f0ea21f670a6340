"""Standing queries: each new frame of a source that grows is compared with them, and a moment is told of once.

Frames that fit one after another, at most a gap apart, are one moment; it is told of when its first frame is stored. A
notice is kept in the library before it is sent, and until its receiver has taken it: after a crash it may come twice,
never not at all, and both times with the same `id`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from kinodex.agent.errors import ModelError
from kinodex.index.errors import NoVectors
from kinodex.index.library import Library
from kinodex.index.metadata import Row, shown_at
from kinodex.index.rows import Basis, FrameVectors, Hit, VideoRow
from kinodex.jobs.errors import UsageError
from kinodex.jobs.models import ModelChoice
from kinodex.redaction import redact_uri

if TYPE_CHECKING:
    from numpy.typing import NDArray


DEFAULT_PROBABILITY = 0.5
GAP_S = 10.0


@dataclass(frozen=True, slots=True)
class StandingQueries:
    """Texts to look for in each new frame, the score from which on it fits, and whom to tell.

    `threshold` is the least probability where the space has them, else the least cosine. Frames up to `gap_s` apart are
    one moment. With `verify` a model looks first, and only what it confirms is told. `pictures` is a folder for frames.
    """

    texts: tuple[str, ...]
    threshold: float | None = None
    gap_s: float = GAP_S
    verify: ModelChoice | None = None
    notify: str | None = None
    pictures: Path | None = None


def check_queries(library: Library, asked: StandingQueries) -> None:
    """Raise UsageError for queries that cannot be decided in the library's space, or for no address to notify.

    Raise NoVectors in a library without a space, UnknownWords for a text of which the space knows no word.
    """
    if not library.fingerprint.has_vectors:
        raise NoVectors.of(library.uri, "a standing query")
    if not all(text.strip() for text in asked.texts):
        raise UsageError("got an empty --query; give some words to look for")
    if asked.notify is not None:
        parts = urlsplit(asked.notify)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"got --notify {redact_uri(asked.notify)!r}; give http://HOST:PORT/PATH")
    for text in asked.texts:
        if (unknown := library.incomparable(text)) is not None:
            raise unknown
        if asked.threshold is None and library.sigmoid(library.fingerprint, text) is None:
            raise UsageError(
                f"got the query {text!r} in the space {library.space_name}, which has no probability for it; give "
                "--threshold, the least cosine (see `kinodex search`), with --verify to have a model look first"
            )


@dataclass
class Standing:
    """Standing queries of one source in an open library, from the state that an earlier process left."""

    library: Library
    source: str
    asked: StandingQueries
    open_until: dict[str, list[Any]] = field(default_factory=dict)
    """By text, the moment that may go on: video, end in seconds since the epoch, whether it was told of."""
    unsent: list[dict[str, Any]] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """Return the state that the next process needs, as JSON can hold it."""
        return {"open": self.open_until, "unsent": self.unsent}

    def take_over(self, state: Mapping[str, Any]) -> None:
        """Go on from an earlier process's state, for those of its queries that still stand."""
        self.open_until = {text: found for text, found in state.get("open", {}).items() if text in self.asked.texts}
        self.unsent = list(state.get("unsent", []))

    def look(self, video: VideoRow, columns: Row, new: FrameVectors) -> list[dict[str, Any]]:
        """Compare new frames of a video, stored by now; returns the notices of moments that begin with them."""
        found = [
            notice
            for text, vector in zip(self.asked.texts, self._vectors, strict=True)
            for notice in self._moments(text, vector, video, columns, new)
        ]
        self.unsent += found
        return found

    @cached_property
    def _vectors(self) -> NDArray[Any]:
        return np.asarray(self.library.text_tower.embed_text(list(self.asked.texts)), np.float64)

    def _moments(
        self, text: str, vector: NDArray[Any], video: VideoRow, columns: Row, new: FrameVectors
    ) -> list[dict[str, Any]]:
        sigmoid = self.library.sigmoid(self.library.fingerprint, text)
        least = DEFAULT_PROBABILITY if self.asked.threshold is None else self.asked.threshold
        found: list[dict[str, Any]] = []
        looked = False
        for frame_no, time_s, cosine in zip(
            new.frame_no.tolist(), new.time_s.tolist(), (new.vectors.astype(np.float64) @ vector).tolist(), strict=True
        ):
            probability = sigmoid.probability(cosine) if sigmoid else None
            if (cosine if probability is None else probability) < least:
                continue
            shown = shown_at(columns, video, time_s)
            now_s = shown.timestamp() if shown else time_s
            before = self.open_until.get(text)
            goes_on = before is not None and now_s - before[0] <= self.asked.gap_s
            is_told = before is not None and goes_on and bool(before[1])
            if not is_told and not (self.asked.verify and looked):
                looked = True
                basis: Basis = "ranking" if probability is None else "probability"
                end_s = min(video.end_s, time_s + 1 / video.sample_fps)
                hit = Hit(
                    video.video_id, time_s, end_s, frame_no, cosine, None, "frames", cosine,
                    basis=basis, probability=probability, title=video.title,
                )  # fmt: skip
                hit = self._verified(text, hit)
                is_told = self.asked.verify is None or hit.present is True
                if is_told:
                    found.append(self._notice(text, hit, shown))
            self.open_until[text] = [now_s, is_told]
        return found

    def _verified(self, text: str, hit: Hit) -> Hit:
        if self.asked.verify is None:
            return hit
        from kinodex.jobs.verification.look import verified

        try:
            return verified(self.library, text, [hit], 1, self.asked.verify)[0][0]
        except ModelError as error:  # the next frame that fits is looked at again
            return replace(hit, present=None, reason=str(error))

    def _notice(self, text: str, hit: Hit, shown: datetime | None) -> dict[str, Any]:
        key = f"{self.source}\n{text}\n{hit.video_id}\n{hit.frame_no}"
        notice = {
            "id": hashlib.sha256(key.encode()).hexdigest()[:24],
            "query": text,
            "source": self.source,
            "library": redact_uri(self.library.uri),
            "video_id": hit.video_id,
            "title": hit.title,
            "start_s": hit.time_s,
            "end_s": hit.end_s,
            "recorded_at": shown.isoformat(timespec="milliseconds") if shown else None,
            "frame_no": hit.frame_no,
            "basis": hit.basis,
            "probability": hit.probability,
            "cosine": hit.cosine,
            "reason": hit.reason,
            "picture": None,
        }
        if self.asked.pictures is not None and hit.frame_no is not None:
            frame = self.library.frames(hit.video_id, [hit.frame_no])[0]
            path = self.asked.pictures / f"{notice['id']}.jpg"
            path.write_bytes(frame.jpeg)
            notice["picture"] = str(path)
        return notice
