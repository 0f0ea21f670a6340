"""Errors between a source and its rows.

Every message is one line: the value or fact met, what is allowed, what to do. The class name is the
`error_class` of a failure row and `stage` its stage.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from kinodex.errors import KinodexError

Stage = Literal["fetch", "open", "decode", "subtitles", "captions", "detections", "speech", "vectors"]


class PipelineError(KinodexError):
    """A fault of one source that its owner, not a programmer, has to repair."""

    stage: ClassVar[Stage] = "open"


class SourceError(PipelineError):
    """A source whose bytes could not be read."""

    stage: ClassVar[Stage] = "fetch"


class SourceMissing(SourceError):
    """No file, folder, match or object under this name."""


class SourceForbidden(SourceError):
    """A source that exists, but that this process may not read."""


class SourceUnreachable(SourceError):
    """A source that cannot be reached: no network, no host, or no package for its protocol."""


class SourceChanged(SourceError):
    """A source whose bytes changed between its identification and the end of its decoding."""


class PlaylistRefused(SourceError):
    """A playlist that nobody allowed, or that names what a playlist may never name."""


class VideoError(PipelineError):
    """Bytes of which no frame can be made."""


class EmptyFile(VideoError):
    """A file of zero bytes."""


class NotAVideo(VideoError):
    """A file that is no video container known to FFmpeg."""


class NoVideoStream(VideoError):
    """A media container without a moving picture: audio only, or cover art."""


class NothingDecodes(VideoError):
    """A video stream of which not one frame decodes."""

    stage: ClassVar[Stage] = "decode"


class DecoderHung(VideoError):
    """A decoding process that returned nothing for too long, or took too long in all."""

    stage: ClassVar[Stage] = "decode"


class DecoderDied(VideoError):
    """A decoding process that was ended by a signal: a crash in native code, or a kill from outside."""

    stage: ClassVar[Stage] = "decode"


class DecoderOutOfMemory(VideoError):
    """A decoding process that took more memory than allowed."""

    stage: ClassVar[Stage] = "decode"


class WrongClip(PipelineError):
    """A video of which a clip, opened again, shows other pictures than were asked for."""


class SubtitleError(PipelineError):
    """A sidecar file or an embedded text track that cannot be read."""

    stage: ClassVar[Stage] = "subtitles"


class SoundError(PipelineError):
    """A sound track of which not one sample decodes."""

    stage: ClassVar[Stage] = "speech"


class PictureError(PipelineError):
    """An image in the library that is no readable JPEG; its stage is the one that needed it."""


class ModelUnusable(PipelineError):
    """A model of an optional stage that cannot be used here: it ends the run, and is never a failure row."""


class ModelMissing(ModelUnusable):
    """No such folder or hub id, files missing in it, a package missing, or a hub that does not answer."""


class WrongModel(ModelUnusable):
    """A model for another task, or weights that leave part of it at random."""


class ModelTooLarge(ModelUnusable):
    """The device's memory does not hold the model with a batch of its input."""


class NoSuchDevice(ModelUnusable):
    """A device that this machine does not have."""


def first_line(error: Exception) -> str:
    """Return the beginning of an error's message, which may go on for pages, as part of a message of one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".: ")
