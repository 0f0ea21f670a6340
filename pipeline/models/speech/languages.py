"""Languages of a video's windows of sound: one for all of it, unless there is good evidence that it changes.

A window by itself may be taken for another language, for a name or a song; so a change has its price, and the
cheapest sequence of languages is found (Viterbi 1967, doi 10.1109/TIT.1967.1054010).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LOOK_AHEAD = 16
"""Windows whose languages are found together: eight minutes of speech."""
FLOOR = float(np.log(1e-3))
"""No window speaks more strongly against a language."""
CHANGE = 3.0
"""Price of a change, in nats: one whole window in another language must be sure of it, two need not be."""
FULL_S = 10.0
"""A window with less speech counts for less."""


def follow_languages(
    log_probabilities: NDArray[np.float64], speech_s: NDArray[np.float64], before: NDArray[np.float64] | None
) -> tuple[list[int], NDArray[np.float64]]:
    """Choose a language for each window from `[windows, languages]` and the seconds of speech in each.

    Returns their numbers, and the standing of each language after the last window, `before` of those that follow.
    """
    evidence = np.maximum(log_probabilities, FLOOR) * np.minimum(speech_s / FULL_S, 1.0)[:, None]
    windows, languages = evidence.shape
    standing = np.zeros(languages) if before is None else before
    came = np.zeros((windows, languages), np.int64)
    for at in range(windows):
        leader = int(np.argmax(standing))
        changed = standing < standing[leader] - CHANGE
        came[at] = np.where(changed, leader, np.arange(languages))
        standing = np.maximum(standing, standing[leader] - CHANGE) + evidence[at]
    chosen = [int(np.argmax(standing))]
    for at in range(windows - 1, 0, -1):
        chosen.append(int(came[at, chosen[-1]]))
    return chosen[::-1], standing - standing.max()
