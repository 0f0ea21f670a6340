"""Scenes and chapters of a library as an agent's coarse first level: lines for its prompts, and where to cut a video.

`kinodex add chapters` writes them; agents read them with the setting `chapters`. Of a video its chapters are read if
it has at least `ENOUGH`, else its scenes if it has two or more, else nothing: then the agent searches in its usual
way, which a run says once, in an event and in the ledger. Titles and summaries were written by a model from what was
said and shown, so prompts quote them; they lead to a place and are no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kinodex.agent.protocol.notes import Note
from kinodex.agent.protocol.videos import EXACT_S, Segment
from kinodex.agent.session import Session
from kinodex.agent.traces.events import Acted
from kinodex.agent.videos.environment import Environment
from kinodex.agent.videos.scale import Floats

if TYPE_CHECKING:
    from kinodex.index.rows import ChapterRow

ENOUGH = 3
"""With fewer chapters the scenes of a video are its first level."""
MOST_LINES = 60
"""Titles in a prompt at most: of two hours there are 8 to 20 chapters."""
ACTION = "chapters"
ADVICE = "`kinodex add chapters` writes them; the search goes its usual way"


def coarse_parts(environment: Environment, video_id: str) -> list[ChapterRow]:
    """Return the parts of a video on its first level, by time: its chapters, else its scenes; none if it has no two."""
    rows = environment.chapters(video_id)
    chapters = [row for row in rows if row.level == "chapter"]
    scenes = [row for row in rows if row.level == "scene"]
    parts = chapters if len(chapters) >= ENOUGH else scenes
    return parts if len(parts) > 1 else []


def show_chapters(session: Session) -> None:
    """Have the prompts of a run list the first level of its videos: times, titles and summaries.

    Called once the videos are chosen. Emits one event, which says of which videos there is none.
    """
    parts = {video.video_id: coarse_parts(session.environment, video.video_id) for video in session.environment.videos}
    notes = tuple(_note(part) for each in parts.values() for part in each if part.title)
    session.chapters = notes[:MOST_LINES]
    without = [video.title for video in session.environment.videos if not parts[video.video_id]]
    session.account.count_chapters(session.chapters, without=len(without))
    counts = {"parts": sum(map(len, parts.values())), "listed": len(session.chapters)}
    session.emit(Acted(session.account.rounds, ACTION, counts, problem=_problem(without)))


def first_level_s(environment: Environment, segment: Segment, unseen_s: Floats, most: int) -> Floats:
    """Return the times of stored frames at which a whole video is cut into its first level.

    They are those of the first unseen frame of each part.

    At most `most` parts: neighbours that are short are joined. Empty for a part of a video, and for a video without a
    first level. `unseen_s` are times of frames [n], ascending.
    """
    video = environment.video(segment.video_id)
    if (segment.start_s, segment.end_s) != (video.start_s, video.end_s):
        return unseen_s[:0]
    cuts_s = first_level_cuts_s(environment, segment.video_id, most)
    if len(cuts_s) < 3:
        return unseen_s[:0]
    found = np.searchsorted(unseen_s, np.array(cuts_s) - EXACT_S)
    times: Floats = unseen_s[np.unique([at for at, end in pairwise(found) if at < end])]
    return times


def first_level_cuts_s(environment: Environment, video_id: str, most: int) -> list[float]:
    """Return the starts of a video's parts on the first level, `most` at most, and its end.

    Without a first level there are none.

    While there are too many, the two neighbours that are shortest together are joined. The first part begins with the
    video, whatever its row says.
    """
    video = environment.video(video_id)
    starts_s = [part.start_s for part in coarse_parts(environment, video_id) if video.start_s < part.start_s]
    cuts_s = [video.start_s, *(start_s for start_s in starts_s if start_s < video.end_s), video.end_s]
    while len(cuts_s) - 1 > max(1, most):
        del cuts_s[min(range(1, len(cuts_s) - 1), key=lambda at: cuts_s[at + 1] - cuts_s[at - 1])]
    return cuts_s if len(cuts_s) > 2 else []


def _note(part: ChapterRow) -> Note:
    text = f"{part.title}: {part.text}" if part.text else part.title
    return Note(part.video_id, part.start_s, part.end_s, part.level, text)


def _problem(without: Sequence[str]) -> str:
    if not without:
        return ""
    more = f" and of {len(without) - 1} more" if len(without) > 1 else ""
    return f"there are no scenes or chapters to read of {without[0]!r}{more}; {ADVICE}"
