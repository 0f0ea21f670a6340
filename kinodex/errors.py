"""The root of all errors that a user can correct. Each room derives its own from it."""

from __future__ import annotations

from kinodex.redaction import redact_values


class KinodexError(Exception):
    """An error that the user can correct; the message is one clear line, without the secrets that made it."""

    def __init__(self, *values: object) -> None:
        super().__init__(*redact_values(values))
