"""Errors of libraries and embedding spaces. Each message is one line for a person to read."""

from __future__ import annotations

from shlex import quote

from kinodex.errors import KinodexError


def vectors_command(uri: str) -> str:
    """Return the command that gives a library's frames their first vectors."""
    return f"kinodex add vectors {quote(uri)} --space photo"


class LibraryError(KinodexError):
    """A library that cannot be opened, written or searched."""


class NotALibrary(LibraryError):
    """The place holds something else, or nothing."""


class NewerLibrary(LibraryError):
    """The library was written by a later kinodex than this one."""


class LibraryBusy(LibraryError):
    """Another run does now what only one run may do at a time."""


class LeaseLost(LibraryError):
    """Another run took over the lease of this one; nothing more may be written."""


class SettingsMismatch(LibraryError):
    """The library was made with other ingest settings."""


class SpaceMismatch(LibraryError):
    """The library was made with another embedding space."""


class UnknownVideo(LibraryError):
    """No video, or more than one, has that name."""


class TimeOutside(LibraryError):
    """A time or frame number that the video does not have."""


class DamagedRows(LibraryError):
    """Stored pictures or vectors that are not as they were written."""


class QueryError(LibraryError):
    """A search or a reading that cannot be run: nothing to look for, an unknown column, an impossible range."""


class NoVectors(QueryError):
    """Frames are to be compared by their vectors, in a library that was made without: the one line of all faces."""

    @classmethod
    def of(cls, uri: str, wanted: str = "comparing pictures") -> NoVectors:
        """Say what needs them in which library, and what makes them."""
        return cls(f"{wanted} needs vectors, and {uri} has none; `{vectors_command(uri)}` makes them")


class UnknownWords(QueryError):
    """Pictures are to be compared with a text of which the space knows no word: the one line of all faces."""

    @classmethod
    def of(cls, space: str, text: str) -> UnknownWords:
        """Say which space knows no word of which text."""
        return cls(f"{space} is a table of English words and knows none in {text[:60]!r}")


class MetadataConflict(LibraryError):
    """A column of metadata that cannot be: its name, a value, or values of two types."""


class StorageFull(LibraryError):
    """No room is left where the library lives."""


class UnsafeStore(LibraryError):
    """An object store that loses one of two commits made at once."""


class StorageError(LibraryError):
    """The place where the library lives cannot be read or written."""


class LibraryDamaged(StorageError):
    """A part of the library is missing, cut off or altered; nothing was changed."""


class SpaceError(KinodexError):
    """An embedding space that cannot be loaded."""


class UnknownModel(SpaceError):
    """A model name or pretrained tag that open_clip does not know."""


class WeightsMissing(SpaceError):
    """A known model whose weights or tokenizer are missing here."""


class ModelNotNamed(WeightsMissing):
    """A model that a library names and the user does not."""


class BadCheckpoint(SpaceError):
    """A file that does not hold the weights of this model."""


class DeviceMissing(SpaceError):
    """A device that this machine does not have."""


class TorchMissing(SpaceError):
    """A model that only torch and open_clip can run here, where they are not installed."""


class ExportRefused(SpaceError):
    """A tower that cannot be exported, or whose export does not give the same vectors."""


class TowersDamaged(SpaceError):
    """Files of exported towers that are missing, cut off, or written by a later kinodex."""
