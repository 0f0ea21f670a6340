"""What can go wrong with a library or an embedding space, one line each for a person to read.

::

    KinodexError
    ├── LibraryError
    │   ├── NotALibrary         the place holds something else, or nothing
    │   ├── NewerLibrary        written by a later kinodex
    │   ├── OlderLibrary        written by an earlier kinodex
    │   ├── LibraryBusy         another run holds what only one may
    │   ├── LeaseLost           another run took over what this one held
    │   ├── SettingsMismatch    made with other ingest settings
    │   ├── SpaceMismatch       made with another embedding space
    │   ├── UnknownVideo        no such video, or several of that name
    │   ├── TimeOutside         a time or frame that the video does not have
    │   ├── QueryError          a search that cannot be run
    │   ├── StorageFull         no room left where the library lives
    │   ├── UnsafeStore         an object store where commits can be lost
    │   └── StorageError        the place cannot be read or written for another reason
    └── SpaceError
        ├── UnknownModel        a name that open_clip does not know
        ├── WeightsMissing      a known model whose weights or tokenizer cannot be had here
        ├── BadCheckpoint       a file that does not hold this model
        └── DeviceMissing       a device that this machine does not have
"""

from __future__ import annotations


class KinodexError(Exception):
    """Something that the user can put right; the message is one clear line."""


class LibraryError(KinodexError):
    """A library that cannot be opened, written or asked."""


class NotALibrary(LibraryError):
    """The place holds something else, or nothing."""


class NewerLibrary(LibraryError):
    """The library was written by a later kinodex than this one."""


class OlderLibrary(LibraryError):
    """The library was written by an earlier kinodex, whose tables this one does not read."""


class LibraryBusy(LibraryError):
    """Another run is doing now what only one may do at a time."""


class LeaseLost(LibraryError):
    """Another run took over what this one held; nothing more may be written."""


class SettingsMismatch(LibraryError):
    """The library was made with other ingest settings."""


class SpaceMismatch(LibraryError):
    """The library was made with another embedding space."""


class UnknownVideo(LibraryError):
    """No video, or more than one, goes by that name."""


class TimeOutside(LibraryError):
    """A time or frame number that the video does not have."""


class QueryError(LibraryError):
    """A search that cannot be run: nothing to look for, or an impossible range."""


class StorageFull(LibraryError):
    """No room is left where the library lives."""


class UnsafeStore(LibraryError):
    """An object store that loses one of two commits made at once."""


class StorageError(LibraryError):
    """The place where the library lives cannot be read or written."""


class SpaceError(KinodexError):
    """An embedding space that cannot be had."""


class UnknownModel(SpaceError):
    """A model name or pretrained tag that open_clip does not know."""


class WeightsMissing(SpaceError):
    """A known model whose weights or tokenizer cannot be had here."""


class BadCheckpoint(SpaceError):
    """A file that does not hold the weights of this model."""


class DeviceMissing(SpaceError):
    """A device that this machine does not have."""
