"""What can go wrong between a source and its rows.

    PipelineError
    ├── SourceError            the bytes could not be had            stage "fetch"
    │   ├── SourceMissing          nothing is there
    │   ├── SourceForbidden        something is there, reading it is not allowed
    │   └── SourceUnreachable      it cannot be reached now, or not from here
    ├── VideoError             the bytes are no usable video
    │   ├── EmptyFile              no bytes at all                   stage "open"
    │   ├── NotAVideo              no container that can be read     stage "open"
    │   ├── NoVideoStream          a container without moving pictures  stage "open"
    │   ├── NothingDecodes         not one frame came out            stage "decode"
    │   ├── DecoderHung            it says nothing, or takes for ever  stage "decode"
    │   ├── DecoderDied            it took its process down          stage "decode"
    │   └── DecoderOutOfMemory     it wants more than it may have    stage "decode"
    ├── SubtitleError          a subtitle file or track is unreadable   stage "subtitles"
    ├── SoundError             a sound track of which nothing decodes   stage "speech"
    ├── PictureError           a stored picture that cannot be read     stage of whoever needed it
    └── ModelUnusable          a model of an optional stage: ends the run, is never a failure row
        ├── ModelMissing           no such folder or id, files missing, or no hub
        ├── WrongModel             a model for another task, or not all of its weights
        ├── ModelTooLarge          the device's memory does not hold the model with a batch
        └── NoSuchDevice           a device that this machine does not have

Every message is one line: what was got, what is allowed, what to do. The class name is the
`error_class` of a failure row and `stage` its stage.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Stage = Literal["fetch", "open", "decode", "subtitles", "captions", "detections", "speech", "vectors"]


class PipelineError(Exception):
    """Anything about one source that its owner, not a programmer, has to put right."""

    stage: ClassVar[Stage] = "open"


class SourceError(PipelineError):
    """The bytes of a source could not be had."""

    stage: ClassVar[Stage] = "fetch"


class SourceMissing(SourceError):
    """No file, folder, match or object under this name."""


class SourceForbidden(SourceError):
    """It exists, but this process may not read it."""


class SourceUnreachable(SourceError):
    """The network, the host, or the package that speaks the protocol is missing."""


class VideoError(PipelineError):
    """The bytes were had, but no frame can be made of them."""


class EmptyFile(VideoError):
    """Zero bytes."""


class NotAVideo(VideoError):
    """No video container that FFmpeg knows."""


class NoVideoStream(VideoError):
    """A media container without a moving picture: audio only, or cover art."""


class NothingDecodes(VideoError):
    """A video stream of which not one frame decodes."""

    stage: ClassVar[Stage] = "decode"


class DecoderHung(VideoError):
    """The process that reads it said nothing for too long, or took too long over all."""

    stage: ClassVar[Stage] = "decode"


class DecoderDied(VideoError):
    """The process that reads it was ended by a signal: a crash in native code, or somebody's kill."""

    stage: ClassVar[Stage] = "decode"


class DecoderOutOfMemory(VideoError):
    """The process that reads it took more memory than a reader may have."""

    stage: ClassVar[Stage] = "decode"


class SubtitleError(PipelineError):
    """A sidecar file or an embedded text track that cannot be read."""

    stage: ClassVar[Stage] = "subtitles"


class SoundError(PipelineError):
    """A sound track of which not one sample decodes."""

    stage: ClassVar[Stage] = "speech"


class PictureError(PipelineError):
    """A picture in the library that is no readable JPEG."""


class ModelUnusable(PipelineError):
    """A model of an optional stage that cannot be used here."""


class ModelMissing(ModelUnusable):
    """No such folder or hub id, files missing in it, a package missing, or a hub that does not answer."""


class WrongModel(ModelUnusable):
    """A model for another task, or weights that leave part of it at random."""


class ModelTooLarge(ModelUnusable):
    """The device's memory does not hold the model with a batch of what it is shown."""


class NoSuchDevice(ModelUnusable):
    """A device that this machine does not have."""
