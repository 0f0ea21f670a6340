"""Tags of a video's container, as cameras, editors and downloads write them, under one name each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

NAMES: Mapping[str, tuple[str, ...]] = {
    "recorded_at": ("com.apple.quicktime.creationdate", "creation_time", "date"),
    "place": ("com.apple.quicktime.location.iso6709", "location", "location-eng"),
    "work_title": ("title",),
    "artist": ("artist", "author"),
    "device": ("com.apple.quicktime.model", "com.android.model", "model", "encoded_by"),
}
"""Columns, and the tags that say it, the surest first."""
ISO_6709 = re.compile(r"([+-]\d+(?:\.\d+)?)([+-]\d+(?:\.\d+)?)")
YEAR_ZERO = 1970
"""Cameras whose clock was never set write the beginning of their count."""


def known_tags(tags: Mapping[str, str]) -> dict[str, Any]:
    """The columns that the tags of a container fill: a time in UTC, texts, and degrees of latitude and longitude.

    A time that cannot be read is left out, as is one of a clock that was never set.
    """
    held = {name.lower(): value.strip() for name, value in tags.items() if value.strip()}
    found: dict[str, Any] = {}
    for column, names in NAMES.items():
        if text := next((held[name] for name in names if name in held), None):
            found[column] = text
    if "recorded_at" in found:
        moment = _moment(found.pop("recorded_at"))
        found |= {} if moment is None else {"recorded_at": moment}
    if place := ISO_6709.match(found.get("place", "")):
        found |= {"latitude": float(place[1]), "longitude": float(place[2])}
    return found


def _moment(text: str) -> datetime | None:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        return moment if moment.year > YEAR_ZERO else None
    return None
