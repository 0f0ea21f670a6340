"""Waits that a server asks for, wherever it says so: in a header, in a field of its refusal, or in words."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from kinodex.index.nesting import values_within

UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
EPOCH_S = 1e9
EPOCH_MS = 1e12
"""A reset that is given as a larger number is a moment since 1970: in seconds, or in milliseconds."""
RETRY_INFO = "google.rpc.RetryInfo"
RESET = re.compile(r"(?:x-)?ratelimit-reset(-\w+)?|anthropic-ratelimit-(\w+)-reset")
REMAINING = re.compile(r"(?:x-)?ratelimit-remaining(-\w+)?|anthropic-ratelimit-(\w+)-remaining")
_UNIT = r"(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)(?![a-z])"
_DURATION = rf"(?:\d+(?:\.\d+)?\s*{_UNIT}\s*)+"
_WORDS = re.compile(rf"(?:try again|retry|wait)(?: for)?(?: in| after)?:?\s+({_DURATION})", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|mil|s|m|h)", re.IGNORECASE)
_DEPTH = 8


def asked_wait_s(status: int, headers: Mapping[str, str], body: object, now_s: float) -> float | None:
    """Seconds that a refusal asks to wait; None if it does not say.

    What is said of this request goes before what headers say of the account's quotas, of which those that are used up
    count, and those only where the refusal is for them (429).
    """
    said: list[Callable[[], float | None]] = [
        lambda: _milliseconds(headers.get("retry-after-ms")),
        lambda: retry_after_s(headers.get("retry-after"), now_s),
        lambda: _of_body(body),
        lambda: _of_quotas(headers, now_s) if status == 429 else None,
    ]
    found = next((wait_s for each in said if (wait_s := each()) is not None), None)
    return None if found is None or not math.isfinite(found) else max(found, 0.0)


def retry_after_s(header: str | None, now_s: float) -> float | None:
    """Seconds to wait that a Retry-After header gives as a number or a date; None if it gives neither."""
    text, wait_s = header or "", math.nan
    try:
        wait_s = float(text)
    except ValueError:
        with suppress(ValueError, OverflowError):  # of the year 99999, say
            if date := email.utils.parsedate_tz(text):
                wait_s = email.utils.mktime_tz(date) - now_s
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None


def duration_s(text: str) -> float | None:
    """Seconds of "25s", "1m2.3s", "644ms" or "20 seconds"; None for anything else."""
    if not re.fullmatch(_DURATION, text.strip(), re.IGNORECASE):
        return None
    parts = _PART.findall(text)
    return sum(float(number) * UNITS_S["ms" if unit.lower() == "mil" else unit.lower()] for number, unit in parts)


def _milliseconds(header: str | None) -> float | None:
    with suppress(ValueError):
        return float(header or "") / 1000
    return None


def _of_body(body: object) -> float | None:
    inside = list(values_within(body, _DEPTH))
    objects = (each for each in inside if isinstance(each, dict))
    delays = [each.get("retryDelay") for each in objects if str(each.get("@type", "")).endswith(RETRY_INFO)]
    named = next((wait_s for each in delays if (wait_s := duration_s(str(each))) is not None), None)
    if named is not None:
        return named
    found = (_WORDS.search(each) for each in inside if isinstance(each, str))
    return next((duration_s(each[1].rstrip(". ")) for each in found if each), None)


def _of_quotas(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return the longest wait for a quota of which nothing is left.

    A quota that does not say what is left counts as used up.
    """
    left = {_kind(match): value for name, value in headers.items() if (match := REMAINING.fullmatch(name.lower()))}
    resets = {_kind(match): value for name, value in headers.items() if (match := RESET.fullmatch(name.lower()))}
    waits = [_until(value, now_s) for kind, value in resets.items() if left.get(kind, "0").strip() == "0"]
    return max((each for each in waits if each is not None), default=None)


def _kind(match: re.Match[str]) -> str:
    return (match[1] or match[2] or "").strip("-")


def _until(text: str, now_s: float) -> float | None:
    """Seconds until a reset: a duration, seconds, a moment since 1970 in seconds or milliseconds, or a date."""
    if (wait_s := duration_s(text)) is not None:
        return wait_s
    with suppress(ValueError):
        number = float(text)
        moment_s = number / 1000 if number > EPOCH_MS else number
        return moment_s - now_s if moment_s > EPOCH_S else number
    with suppress(ValueError):
        return datetime.fromisoformat(text).timestamp() - now_s
    return None
