"""Error texts of other libraries and their meaning: the only place in this room that knows such texts.

Lance and the object stores behind it raise RuntimeError, ValueError or OSError without a class or code of their own,
so their text is all there is to tell errors apart. `tests/index/store/test_foreign_errors.py` provokes each entry
with the installed version.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Meaning(Enum):
    """Meaning of an error text."""

    CONFLICT = auto()
    """Another writer's commit came first; the same commit may succeed on a retry."""
    DISK_FULL = auto()
    NO_MEMORY = auto()
    """Neither memory nor a thread is to be had."""
    DAMAGED = auto()
    """A file that is cut off, or a file or table that is missing."""
    UNREADABLE = auto()
    """Files that are whole, and do not hold what was written."""
    BROKEN_OFF = auto()
    """A task of Lance's ended: over such a file, or for want of a thread, which it says on stderr alone."""
    NO_TABLE = auto()
    TABLE_EXISTS = auto()
    UNREACHABLE = auto()
    """The storage failed for any other reason."""
    NO_BUCKET = auto()
    REFUSED = auto()
    """The store does not accept these credentials."""
    NO_CREDENTIALS = auto()
    OTHER_REGION = auto()
    NO_CONDITIONAL_WRITES = auto()
    PLAIN_HTTP = auto()
    NO_ANSWER = auto()


@dataclass(frozen=True, slots=True)
class Sign:
    """A part of an error's text, and the library that writes it."""

    library: str
    text: str
    meaning: Meaning


def _of(library: str, meaning: Meaning, *texts: str) -> tuple[Sign, ...]:
    return tuple(Sign(library, text, meaning) for text in texts)


def _codes(meaning: Meaning, *codes: str) -> tuple[Sign, ...]:
    return _of("S3", meaning, *(f"<Code>{code}</Code>" for code in codes))


SIGNS = (
    *_of(
        "Lance",
        Meaning.CONFLICT,
        "commit conflict",
        "Commit conflict",
        "concurrent writers",
        "incompatible with concurrent transaction",
    ),
    *_of("libc", Meaning.DISK_FULL, "No space left", "Disk quota exceeded"),
    *_of("Rust", Meaning.DISK_FULL, "os error 28", "os error 122", "os error 27"),
    *_of("Rust", Meaning.NO_MEMORY, "(os error 11)", "(os error 12)"),
    *_of(
        "Lance", Meaning.DAMAGED, "Invalid range", "size is too small", "does not have sufficient data", "Not found: "
    ),
    *_of("Rust", Meaning.DAMAGED, "failed to fill whole buffer"),
    *_of("Lance", Meaning.DAMAGED, "was not found"),
    *_of("Arrow", Meaning.UNREADABLE, "External error: ", "Schema error: "),
    *_of("Lance", Meaning.UNREADABLE, "Task was aborted", "Data file '", "LanceError(Schema)"),
    *_of("Lance", Meaning.BROKEN_OFF, "Task was aborted"),
    *_of("Lance", Meaning.NO_TABLE, "was not found"),
    *_of("Lance", Meaning.TABLE_EXISTS, "Dataset already exists"),
    *_of("Lance", Meaning.UNREACHABLE, "LanceError(IO)", "object store", "Could not parse bucket"),
    *_codes(Meaning.NO_BUCKET, "NoSuchBucket"),
    *_codes(Meaning.REFUSED, "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    *_codes(Meaning.REFUSED, "InvalidToken", "ExpiredToken"),
    *_of("object_store", Meaning.REFUSED, "status code: 403", "status code: 401"),
    *_of("Lance", Meaning.NO_CREDENTIALS, "Failed to get AWS credentials", "CredentialsNotLoaded"),
    *_codes(Meaning.OTHER_REGION, "PermanentRedirect", "AuthorizationHeaderMalformed"),
    *_codes(Meaning.OTHER_REGION, "IllegalLocationConstraintException"),
    *_codes(Meaning.NO_CONDITIONAL_WRITES, "NotImplemented"),
    *_of("object_store", Meaning.PLAIN_HTTP, "HTTP error: builder error"),
    *_of("object_store", Meaning.NO_ANSWER, "HTTP error: error sending request"),
)


def meanings_of(error: BaseException | str) -> frozenset[Meaning]:
    """Find every meaning that an error's text has; none for an error that this room does not know."""
    text = str(error)
    return frozenset(sign.meaning for sign in SIGNS if sign.text in text)
