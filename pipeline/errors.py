"""Errors between a source and its rows.

    PipelineError
    ├── SourceError            the bytes could not be read           stage "fetch"
    │   ├── SourceMissing          nothing is there
    │   ├── SourceForbidden        something is there, reading it is not allowed
    │   ├── SourceUnreachable      it cannot be reached now, or not from here
    │   ├── SourceChanged          somebody wrote to it while it was read
    │   └── PlaylistRefused        it shows what other files hold, and nobody allowed that
    ├── VideoError             the bytes are no usable video
    │   ├── EmptyFile              no bytes at all                   stage "open"
    │   ├── NotAVideo              no container that can be read     stage "open"
    │   ├── NoVideoStream          a container without moving pictures  stage "open"
    │   ├── NothingDecodes         not one frame came out            stage "decode"
    │   ├── DecoderHung            it returns nothing, or takes too long  stage "decode"
    │   ├── DecoderDied            it took its process down          stage "decode"
    │   ├── DecoderOutOfMemory     it takes more memory than allowed  stage "decode"
    │   └── NotDrawn               kinodex did not draw it, and nothing else was allowed  stage "space"
    ├── WrongClip              a clip that was cut shows other pictures than were asked for
    ├── SubtitleError          a subtitle file or track is unreadable   stage "subtitles"
    ├── SoundError             a sound track of which nothing decodes   stage "speech"
    ├── PictureError           a stored image that cannot be read       stage that needed it
    └── ModelUnusable          a model of an optional stage: ends the run, is never a failure row
        ├── ModelMissing           no such folder or id, files missing, or no hub
        ├── WrongModel             a model for another task, or not all of its weights
        ├── ModelTooLarge          the device's memory does not hold the model with a batch
        └── NoSuchDevice           a device that this machine does not have

Every message is one line: the value or fact met, what is allowed, what to do. The class name is the
`error_class` of a failure row and `stage` its stage.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Stage = Literal["fetch", "open", "decode", "space", "subtitles", "captions", "detections", "speech", "vectors"]


class PipelineError(Exception):
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


class NotDrawn(VideoError):
    """A film that kinodex did not draw, for a space that knows nothing else."""

    stage: ClassVar[Stage] = "space"


class WrongClip(PipelineError):
    """A video of which a clip, opened again, shows other pictures than were asked for."""


class SubtitleError(PipelineError):
    """A sidecar file or an embedded text track that cannot be read."""

    stage: ClassVar[Stage] = "subtitles"


class SoundError(PipelineError):
    """A sound track of which not one sample decodes."""

    stage: ClassVar[Stage] = "speech"


class PictureError(PipelineError):
    """An image in the library that is no readable JPEG."""


class ModelUnusable(PipelineError):
    """A model of an optional stage that cannot be used here."""


class ModelMissing(ModelUnusable):
    """No such folder or hub id, files missing in it, a package missing, or a hub that does not answer."""


class WrongModel(ModelUnusable):
    """A model for another task, or weights that leave part of it at random."""


class ModelTooLarge(ModelUnusable):
    """The device's memory does not hold the model with a batch of its input."""


class NoSuchDevice(ModelUnusable):
    """A device that this machine does not have."""
