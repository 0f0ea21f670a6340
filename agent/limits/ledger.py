"""The bill of one answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ledger:
    """The bill of one answer.

    `frames` counts different frames that a model saw, `frame_shows` every showing, `index_frames` the embedded frames
    of the videos in question. `frames_with_kept` are `frames` and those behind captions that an earlier run paid for
    and this one read: the number to compare with papers that caption again. In a video without pictures, captions that
    stand in the place of frames count there. Tokens are those of the calls; `cached_tokens` are
    among `input_tokens`. `model_seconds` adds up the calls, some of which run side by side; `seconds` are those of the
    question's own work, without waiting for other questions (`work_clock`). `declined` replies gave up where
    that was not accepted. `estimated_tokens` are those of the `unknown_calls`, whose servers do not count; a budget
    counts them too. `sheets` are contact sheets that stood for several frames, and `left_out_frames` found no place on
    one: counted among `frames` all the same. `screen_lines` are the different lines of text on screen that were quoted,
    `chapters` the scenes and chapters whose titles were, and `videos_without_chapters` the videos that lack them.
    `read_moments` are moments of which words were read in the place of a picture.
    """

    frames: int = 0
    frame_shows: int = 0
    index_frames: int = 0
    frames_with_kept: int = 0
    calls: int = 0
    cached_calls: int = 0
    invalid_replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    model_seconds: float = 0.0
    declined: int = 0
    unknown_calls: int = 0
    estimated_tokens: int = 0
    sheets: int = 0
    left_out_frames: int = 0
    screen_lines: int = 0
    chapters: int = 0
    videos_without_chapters: int = 0
    read_moments: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out, known and estimated: what a budget counts."""
        return self.input_tokens + self.output_tokens + self.estimated_tokens
