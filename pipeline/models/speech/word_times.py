"""Times of words, from where the decoder of a Whisper model attends to the sound as it writes them.

The model reads its text once more, all at once, and some of its heads attend to the sound of each token (those of
`alignment_heads`, which a checkpoint lists). The cheapest monotonic path through their mean weights gives a token its
time: dynamic time warping (Sakoe and Chiba 1978, doi 10.1109/TASSP.1978.1163055, with equal weights for all steps),
as Whisper's own release does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

STEP_S = 0.02
"""Sound of one state of the encoder."""
SMOOTH_STEPS = 7
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue", "km", "bo"})
"""Languages that are written without spaces between words: each character is one."""
BROKEN = "\ufffd"
"""Decoded from a token that holds part of a character."""


class Word(NamedTuple):
    """A word with its punctuation, said in `[start_s, end_s)`."""

    text: str
    start_s: float
    end_s: float


@contextmanager
def attention_weights(model: Any) -> Iterator[None]:
    """Have the model return its attention in this block, which its fast kernels do not compute."""
    kernel = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(kernel)


def token_times(
    model: Any, states: Any, prompt: Sequence[int], tokens: Sequence[int], steps: int
) -> NDArray[np.float64]:
    """Return when each of `tokens` begins and the last ends, `[len(tokens) + 1]` seconds from the window's start.

    `states` `[1, positions, dim]` are the encoder's, `steps` those with sound; the `prompt` goes before the text. Call
    it within `attention_weights`.
    """
    import torch

    ids = torch.tensor([[*prompt, *tokens]], device=states.device)
    output = model.model.decoder(
        input_ids=ids, encoder_hidden_states=states, output_attentions=True, use_cache=False, return_dict=True
    )
    heads = model.generation_config.alignment_heads
    chosen = [output.cross_attentions[layer][0, head, :, :steps] for layer, head in heads]
    weights = torch.stack(chosen).float().cpu().numpy()[:, len(prompt) - 1 :]  # a token is written one place earlier
    return path_times(_mean_attention(weights)) * STEP_S


def _mean_attention(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Join heads `[heads, tokens, steps]` to `[tokens, steps]`: each step's weights normalised, smoothed over time."""
    spread = weights.std(axis=1, keepdims=True)
    even = (weights - weights.mean(axis=1, keepdims=True)) / np.maximum(spread, 1e-9)
    half = SMOOTH_STEPS // 2
    padded = np.pad(even, ((0, 0), (0, 0), (half, half)), mode="edge" if even.shape[2] <= half else "reflect")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTH_STEPS, axis=2), axis=3)
    mean: NDArray[np.float32] = smooth.mean(axis=0)
    return mean


def path_times(likeness: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the first step of each row on the best path through `[rows, steps]`, which begins and ends at corners.

    A path goes on by a row, a step, or both. Computed diagonal by diagonal, since each needs only the two before it.
    """
    rows, steps = likeness.shape
    cost = np.full((rows + 1, steps + 1), np.inf)
    cost[0, 0] = 0.0
    came = np.zeros((rows + 1, steps + 1), np.int8)  # 0: by both, 1: by a row, 2: by a step
    for diagonal in range(2, rows + steps + 1):
        row = np.arange(max(1, diagonal - steps), min(rows, diagonal - 1) + 1)
        step = diagonal - row
        ways = np.stack([cost[row - 1, step - 1], cost[row - 1, step], cost[row, step - 1]])
        came[row, step] = ways.argmin(axis=0)
        cost[row, step] = ways.min(axis=0) - likeness[row - 1, step - 1]
    row, step = rows, steps
    first = np.zeros(rows)
    while row > 0:
        first[row - 1] = step - 1
        way = came[row, step]
        row, step = row - int(way != 2), step - int(way != 1)
    return first


def words_of(tokens: Sequence[int], times_s: Sequence[float], decode: Any, language: str) -> list[Word]:
    """Join tokens to words with their punctuation; `times_s` are those of `token_times`, `decode` makes text of tokens.

    A word begins with a space, but in `UNSPACED` languages, where each character is a word.
    """
    words: list[Word] = []
    first = 0
    for at in range(len(tokens)):
        text = decode(list(tokens[first : at + 1]), skip_special_tokens=True)
        if BROKEN in text and at + 1 < len(tokens):
            continue
        start_s, end_s = float(times_s[first]), float(times_s[at + 1])
        first = at + 1
        begins_word = any(map(str.isalnum, text)) and (language in UNSPACED or text.startswith(" "))
        if words and not begins_word:
            is_mark = not regex.search(r"\w", text)
            before = words.pop()  # a mark is not said: its time would be that of the pause after the word
            words.append(Word(before.text + text, before.start_s, before.end_s if is_mark else end_s))
        else:
            words.append(Word(text, start_s, end_s))
    return [Word(word.text.strip(), word.start_s, word.end_s) for word in words if word.text.strip()]
