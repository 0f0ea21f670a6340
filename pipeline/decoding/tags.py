"""Tags of a container, as cameras, editors and downloads write them, under one name each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

TAGS: Mapping[str, tuple[str, ...]] = {
    "recorded_at": ("com.apple.quicktime.creationdate", "creation_time", "date"),
    "place": ("com.apple.quicktime.location.iso6709", "location", "location-eng"),
    "work_title": ("title",),
    "artist": ("artist", "author"),
    "device": ("com.apple.quicktime.model", "com.android.model", "model", "encoded_by"),
}
"""Columns, and the tags that say it, the surest first."""
OTHER_STREAMS = "other_streams"
ISO_6709 = re.compile(r"([+-]\d+(?:\.\d+)?)([+-]\d+(?:\.\d+)?)(?![.\d])")
LATITUDE_DIGITS, LONGITUDE_DIGITS = 2, 3
"""Of whole degrees (ISO 6709, annex H); minutes and then seconds follow with two digits each."""
YEAR_ZERO = 1970
"""Cameras whose clock was never set write the beginning of their count."""


def known_tags(tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns that a container's tags fill: time in UTC, texts, degrees.

    A time that cannot be is left out.
    """
    held = {name.lower(): value.strip() for name, value in tags.items() if value.strip()}
    found: dict[str, Any] = {}
    for column, names in TAGS.items():
        if text := next((held[name] for name in names if name in held), None):
            found[column] = text
    if "recorded_at" in found:
        moment = _moment(found.pop("recorded_at"))
        found |= {} if moment is None else {"recorded_at": moment}
    if place := ISO_6709.match(found.get("place", "")):
        latitude, longitude = _degrees(place[1], LATITUDE_DIGITS, 90), _degrees(place[2], LONGITUDE_DIGITS, 180)
        if latitude is not None and longitude is not None:
            found |= {"latitude": latitude, "longitude": longitude}
    return found


def _degrees(text: str, digits: int, most: int) -> float | None:
    """Read an angle of ISO 6709: degrees of at most this many digits, or with minutes, or with these and seconds."""
    whole, _, fraction = text[1:].partition(".")
    more = max(0, len(whole) - digits)
    parts = [whole[: len(whole) - more], *(whole[at : at + 2] for at in range(len(whole) - more, len(whole), 2))]
    values = [*map(float, parts[:-1]), float(f"{parts[-1]}.{fraction or 0}")]
    angle: float = sum(value / 60**power for power, value in enumerate(values))
    if more not in (0, 2, 4) or max(values[1:], default=0.0) >= 60 or angle > most:
        return None
    return -angle if text.startswith("-") else angle


def _moment(text: str) -> datetime | None:
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        return moment if moment.year > YEAR_ZERO else None
    return None
