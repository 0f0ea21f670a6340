"""The stages: what can be added to the videos of a library, by name, with its settings.

Each is a command (`kinodex add NAME`) and can be added from Python (`Library.add(NAME, ...)`). Stages from elsewhere
are listed beside those of kinodex: a distribution names its class under the entry point group `kinodex.stages`.

    [project.entry-points."kinodex.stages"]
    beats = "my_package.beats:Beats"
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from kinodex.index.flags import Flag
from kinodex.jobs.add.stage import Device, InputPrice, LocalModel, Stage, Written, local_name
from kinodex.jobs.errors import UsageError

if TYPE_CHECKING:
    from kinodex.index.library import Library

GROUP = "kinodex.stages"
"""The entry points of stages from elsewhere."""
CARRIED_READER = "PP-OCRv6-small"
SHOTS_METHOD = "decoded frames 1"
"""Name of the model of shots; another method is another one."""


def _words(given: Any) -> Any:
    """Split texts at commas: "--labels a,b --labels c" are three words, each once."""
    texts = (given,) if isinstance(given, str) else given
    words = [" ".join(word.lower().split()) for text in texts or () for word in text.split(",")]
    return tuple(dict.fromkeys(filter(None, words)))


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


class Captions(Written):
    """Describe every segment in words, from some of its stored frames.

    With --batch-api the command waits for the batches; if it is ended, the same command waits for the same ones.
    """

    name = "captions"
    work = "kinodex.jobs.add.captions:CaptionWriter"
    unit = "segments"
    in_common = ("frames_a_segment", "max_new_tokens")

    frames_a_segment: Annotated[int, Flag("Frames that the model is shown.")] = Field(default=4, ge=1, le=64)
    max_new_tokens: Annotated[int, Flag("Longest caption of a local model.")] = Field(default=96, ge=1)
    retry_failed: Annotated[bool, Flag("Also caption the segments that got no caption before.", "--retry-failed")] = (
        False
    )


class Chapters(Written):
    """Join segments to scenes and scenes to chapters, and give each a title and a summary.

    They are joined without a model, by pictures, words and silence. The model writes from captions, speech and text on
    screen, so add these first.
    """

    name = "chapters"
    work = "kinodex.jobs.add.chapters:ChapterWriter"
    unit = "scenes and chapters"
    in_common = ("frames_a_scene", "max_new_tokens")
    frames_needed = False

    model: Annotated[
        str,
        Flag(
            "A model of transformers (hub id or folder; it need not see), or one that --base-url serves.",
            "--model",
        ),
    ]
    frames_a_scene: Annotated[int, Flag("Frames by which scenes are shown of which nothing is known in words.")] = (
        Field(default=4, ge=1, le=64)
    )
    max_new_tokens: Annotated[int, Flag("Longest title and summary of a local model.")] = Field(default=128, ge=1)
    retry_failed: Annotated[
        bool, Flag("Also the videos of which a scene or chapter got no title.", "--retry-failed")
    ] = False
    renew: Annotated[bool, Flag("Also videos that got captions, speech or text after their summaries.", "--renew")] = (
        False
    )


class Clips(Stage):
    """Embed overlapping windows of some seconds by a model that sees movement; searches find them beside frames."""

    name = "clips"
    work = "kinodex.jobs.add.clips:ClipEmbedder"
    unit = "windows"
    in_common = ("window_s", "stride_s", "fps", "frames")
    is_forecast = True

    model: Annotated[
        str,
        Flag(
            "A video-text model of transformers (X-CLIP, PE; a hub id or folder), or one that --base-url serves.",
            "--model",
        ),
    ]
    base_url: Annotated[str | None, Flag("A server with /v1/embeddings that takes pictures, http://HOST:PORT/v1.")] = (
        None
    )
    window_s: Annotated[float, Flag("Seconds of a window, 2 to 8.", "--window")] = 4.0
    stride_s: Annotated[float, Flag("Seconds from the start of a window to that of the next.", "--stride")] = 2.0
    fps: Annotated[
        float | None, Flag("Decode the sources once at this many frames a second. Default: stored frames.")
    ] = None
    frames: Annotated[int | None, Flag("Frames of a window. Default: the model's own number, or 8.")] = Field(
        default=None, ge=1, le=64
    )
    instruction: Annotated[
        str,
        Flag("Instruction to a served model before each window and query; '' sends only these.", is_rare=True),
    ] = "Represent the user's input."
    batch: Annotated[int, Flag("Windows at once.")] = Field(default=8, ge=1)
    input_price: InputPrice = Field(default=0.0, ge=0)
    device: Device = "auto"

    @model_validator(mode="after")
    def _check_windows(self) -> Clips:
        if not 2.0 <= self.window_s <= 8.0:
            raise UsageError(f"got windows of {self.window_s:g} s; they have 2 to 8")
        if not 0.1 <= self.stride_s <= self.window_s:
            raise UsageError(
                f"got a window every {self.stride_s:g} s; give 0.1 to {self.window_s:g} s, so that nothing lies between"
            )
        if self.fps is not None and not 0 < self.fps <= 60:
            raise UsageError(f"got {self.fps:g} frames a second; give more than 0 and at most 60")
        return self

    @model_validator(mode="before")
    @classmethod
    def _name_folder(cls, given: Any) -> Any:
        is_here = isinstance(given, Mapping) and isinstance(given.get("model"), str) and not given.get("base_url")
        return {**given, "model": local_name(given["model"])} if is_here else given

    @property
    def served(self) -> str:
        """The model's name at the endpoint."""
        return self.model

    @property
    def key(self) -> None:
        return None

    @property
    def runs_on(self) -> str:
        return "cpu" if self.base_url else self.device

    def share(self, processes: int) -> Clips:
        """Divide the requests at once among processes; a local model works on as much as before in each."""
        return self.model_copy(update={"batch": max(1, self.batch // processes)}) if self.base_url else self


class Detections(Stage):
    """Find things in every stored frame, with boxes, and follow them from frame to frame."""

    name = "detections"
    work = "kinodex.jobs.add.detections:DetectionFinder"
    in_common = ("min_score",)

    model: LocalModel
    labels: Annotated[
        Words, Flag('Look for these words with an open-vocabulary model: "red car, dog".', "--labels")
    ] = ()
    min_score: Annotated[float, Flag("Least score that is kept.")] = Field(default=0.3, ge=0.0, le=1.0)
    batch: Annotated[int, Flag("Frames at once.")] = Field(default=4, ge=1)
    device: Device = "auto"

    @property
    def key(self) -> str:
        """The detector's name, with its labels if it has any: other labels are another addition."""
        return f"{self.model} for {', '.join(sorted(self.labels))}" if self.labels else self.model


def _function(given: Any) -> Any:
    """Return the function of a spec FILE.py:NAME; raises UsageError, and any error of the file's own code."""
    from kinodex.jobs.add.functions import function_of

    return function_of(given) if isinstance(given, str) else given


class Map(Stage):
    """Have a Python function of your own make columns of the library from its pictures and vectors.

    Its text is kept with what it makes, and it runs only for videos that lack that.
    """

    name = "map"
    work = "kinodex.jobs.add.map:ColumnMaker"

    function: Annotated[
        Any,
        BeforeValidator(_function),
        Flag("The function, in a file of Python.", metavar="FILE.py:NAME", is_argument=True),
    ]
    into: Annotated[str, Flag("Name of what it makes. Default: the function's.")] = ""
    over: Annotated[str, Flag("What it is called for: frames, segments or videos.")] = "frames"
    batch: Annotated[int, Flag("Frames or segments of one call.")] = Field(default=32, ge=1)
    pictures_each: Annotated[int, Flag("Pictures of each segment or video, at most.")] = Field(default=8, ge=1)
    version: Annotated[str, Flag("A mark for changes that the function's own text does not show.")] = ""
    replace: Annotated[bool, Flag("Make again what another function made.", "--replace")] = False

    @property
    def settings(self) -> Mapping[str, Any]:
        from kinodex.jobs.add.functions import facts_of

        facts = {"over": self.over, "pictures_each": self.pictures_each, "version": self.version}
        return {**facts_of(self.function), **facts}

    @property
    def key(self) -> str:
        """The name of what it makes."""
        return self.into or str(getattr(self.function, "__name__", ""))


class ScreenText(Stage):
    """Read the text on screen: each line with its box, from the first frame that shows it to the last."""

    name = "screen_text"
    work = "kinodex.jobs.add.screen_text:TextFinder"
    in_common = ("min_confidence",)

    model: Annotated[
        str,
        AfterValidator(local_name),
        Flag(
            "PP-OCRv6-small, whose weights are in the extra `text`, or a folder with another recogniser of PaddleOCR "
            "as ONNX (*rec*.onnx), and its detector (*det*.onnx) if it has one.",
            "--model",
        ),
    ] = CARRIED_READER
    language: Annotated[
        Words,
        AfterValidator(lambda codes: tuple(sorted(codes))),
        Flag('Such as "en,de": letters of other scripts are left out. Default: all it reads.', "--language"),
    ] = ()
    full: Annotated[
        bool,
        Flag("Read the sources at full size, up to 1920 px, for small print; not stored frames.", "--full"),
    ] = False
    min_confidence: Annotated[float, Flag("Least confidence that is kept.")] = Field(default=0.75, ge=0.0, le=1.0)
    """Below 0.75 lie most of the letters that a reader finds in leaves and tiles (measured)."""

    @property
    def key(self) -> str:
        """The reader's name, with its languages and the size of the pictures: other ones are another addition."""
        languages = f" for {self.languages}" if self.language else ""
        return f"{self.model}{languages}{' at full size' if self.full else ''}"

    @property
    def languages(self) -> str | None:
        return ", ".join(self.language) or None


class Sentences(Stage):
    """Embed transcripts, text on screen and captions, so that searches find them by meaning as well as by words.

    The model is kept with the library: searching needs neither torch nor a hub. Videos whose texts changed since are
    done again.
    """

    name = "sentences"
    work = "kinodex.jobs.add.sentences:SentenceEmbedder"
    frames_needed = False

    model: Annotated[
        str,
        AfterValidator(local_name),
        Flag(
            "A model of sentence-transformers: a local folder, or a hub id such as "
            "sentence-transformers/all-MiniLM-L6-v2.",
            "--model",
        ),
    ]
    device: Device = "auto"

    @property
    def key(self) -> None:
        return None


class Shots(Stage):
    """Place each cut on its frame, and find where dissolves and fades begin and end, in the sources.

    Ingest knows only between which sampled frames a cut lies. Exports, chapters and all that goes by shots use the new
    ones at once; the sources have to be where they were.
    """

    name = "shots"
    work = "kinodex.jobs.add.shots:ShotFinder"

    @property
    def key(self) -> str:
        return SHOTS_METHOD


class Speech(Stage):
    """Write down what is said, with the times of lines and words, from the sound of the sources (a Whisper model).

    Speakers are named with `kinodex speakers LIBRARY speaker-1 NAME`.
    """

    name = "speech"
    work = "kinodex.jobs.add.speech:SpeechHearer"
    in_common = ("language", "vad", "speakers", "audio_track")

    model: LocalModel
    language: Annotated[
        str | None,
        BeforeValidator(lambda code: (code or "").strip().lower() or None),  # as Whisper's codes are written
        Flag('Such as "en". Default: found out, also where it changes.'),
    ] = None
    vad: Annotated[bool, Flag("Listen only where somebody speaks (found by silero-vad).", "--vad/--no-vad")] = True
    speakers: Annotated[
        bool, Flag("Tell voices apart: speaker-1, ... through all videos.", "--speakers/--no-speakers")
    ] = False
    audio_track: Annotated[
        str | None,
        Flag("Sound track: its number from 1, or its language in the file. Default: a player's choice."),
    ] = None
    batch: Annotated[int, Flag("Windows of half a minute at once.")] = Field(default=4, ge=1)
    device: Device = "auto"


def _whole_space(name: str) -> str:
    from kinodex.index.spaces.fingerprint import NO_SPACE
    from kinodex.index.spaces.model_names import absolute_name

    if name == NO_SPACE.name:
        raise UsageError("got --space none, in which there are no vectors to add; name a space, such as photo")
    return absolute_name(name)


class Vectors(Stage):
    """Embed all stored frames in another space, beside the library's own, or as its first."""

    name = "vectors"
    work = "kinodex.jobs.add.vectors:FrameEmbedder"

    space: Annotated[
        str, AfterValidator(_whole_space), Flag("The embedding space, as for `kinodex ingest`.", "--space --model")
    ]
    batch: Annotated[int, Flag("Frames at once.")] = Field(default=32, ge=1)
    device: Device = "auto"
    text_tower: Annotated[
        bool, Flag("Keep the space's text tower with the library, or leave it out.", "--text-tower/--no-text-tower")
    ] = True

    @property
    def key(self) -> None:
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"space": self.space}

    def finish(self, library: Library) -> None:
        """Make the space the library's own, if it has none."""
        self._work().finish(self, library)


def _row_schema(row: Any) -> str:
    """Return the JSON schema of rows as it is kept; raises UsageError or BadSettings."""
    from kinodex.jobs.add.extract_schema import schema_text

    return schema_text(row)


class Extracts(Written):
    """Fill in a table from each part of the videos, by a model under a schema; run again, it does only what is new.

    Each row has its part, the time of its evidence, the model and its price. Another schema is another version:
    `kinodex remove added LIBRARY extracts NAME@DIGEST` takes one out. `kinodex sql` reads them.
    """

    name = "extracts"
    work = "kinodex.jobs.add.extract:ExtractWriter"
    frames_needed = False

    row: Annotated[
        Any,
        BeforeValidator(_row_schema),
        Flag("A JSON schema: of an object, a row a part, or an array of them.", "--schema", metavar="FILE"),
    ]
    into: Annotated[str, Flag("Name of the table: small letters, digits and _.")]
    model: Annotated[str, Flag("A model of --base-url, or constrained:FOLDER, which sees no frames.", "--model")]
    each: Annotated[str | None, Flag("The parts: video, chapter, scene, shot, or window:SECONDS. Default: scene.")] = (
        None
    )
    search: Annotated[str | None, Flag("Instead: moments of each video that these words find.")] = None
    hits: Annotated[int, Flag("Moments of a video that --search finds.", "-k")] = Field(default=5, ge=1, le=1000)
    frames_a_part: Annotated[int, Flag("Frames of a part that the model is shown.")] = Field(default=8, ge=0, le=64)
    lines_a_part: Annotated[int, Flag("Lines of text of a part that it is given.")] = Field(default=60, ge=0, le=1000)
    retry_failed: Annotated[bool, Flag("Also the parts of which no reply could be used before.", "--retry-failed")] = (
        False
    )
    question: str = ""
    plan: str = ""
    """The question to the whole collection that the table was made for, and its plan as JSON; rows do not depend on
    them."""

    @model_validator(mode="after")
    def _check(self) -> Extracts:
        from kinodex.jobs.add.extract_schema import check_extract
        from kinodex.jobs.models import LOCAL

        check_extract(self.into, self.part)
        if self.each is not None and self.search is not None:
            raise UsageError("got --each and --search; leave one out")
        if self.search is not None and not self.search.strip():
            raise UsageError("got an empty --search; give some words to look for")
        if self.base_url is None and not self.model.startswith(LOCAL):
            raise UsageError(
                f"got the model {self.model!r} without --base-url; name the endpoint that serves it, or a language "
                "model of a folder as constrained:FOLDER"
            )
        return self

    @cached_property
    def key(self) -> str:
        """The key of the table's version: its name with a digest of all that its rows depend on."""
        from kinodex.jobs.add.extract_schema import version_key

        moments = self.part, self.search or "", self.hits
        return version_key(self.into, self.model, self.row, *moments, self.frames_a_part, self.lines_a_part)

    @property
    def part(self) -> str:
        """The unit of a row: "video", "chapter", "scene", "shot", "window:SECONDS", or "search"."""
        return "search" if self.search is not None else self.each or "scene"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**super().settings, "part": self.part}


STAGES: Mapping[str, type[Stage]] = {
    stage.name: stage
    for stage in (
        *(Captions, Detections, Sentences, Speech, ScreenText),
        *(Shots, Chapters, Vectors, Clips, Map),
    )
}
"""The stages of `kinodex add`, in the order of `--help`; extracts have a verb of their own."""


def stage_names() -> list[str]:
    """Return the names of the stages of kinodex, and of those that other distributions register; none is imported."""
    return [*STAGES, *sorted(each.name for each in entry_points(group=GROUP) if each.name not in STAGES)]


def find_stage(name: str) -> type[Stage]:
    """Return the stage of a name; raises UsageError if there is none, or one from elsewhere cannot be loaded."""
    if name in STAGES:
        return STAGES[name]
    registered = next((each for each in entry_points(group=GROUP) if each.name == name), None)
    if registered is None:
        near = get_close_matches(name, stage_names(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"got {name!r} to add; {hint}the stages are {', '.join(stage_names())}")
    where = f"the stage {name!r} of {registered.dist.name if registered.dist else registered.value}"
    try:
        stage = registered.load()
    except Exception as error:  # whatever its module raises
        raise UsageError(f"cannot load {where}: {type(error).__name__}: {error}; mend it, or remove it") from error
    if not (isinstance(stage, type) and issubclass(stage, Stage)):
        raise UsageError(f"{where} is {registered.value}, which is no class of `kinodex.Stage`; mend it, or remove it")
    return stage
