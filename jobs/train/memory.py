"""The memory that training needs on a GPU, by formula: what is always there, and what a text adds.

Of P weights, T of them trained, with AdamW and mixed precision as TRL sets them up:

- weights: 4 P bytes; with LoRA 2 (P - T) + 4 T, since what is not trained stays in 16 bits (on a GPU)
- gradients: 4 T
- optimiser: 8 T, two moments in 32 bits
- reference, for the divergence: 4 P; none with LoRA, where the model without its adapters is the reference

A text of n tokens adds, for each rollout in the batch of an update, with gradient checkpointing, 2 n h L bytes (the
input of each of L layers of width h, in 16 bits) and the largest layer's inner values once; while rollouts are
sampled without vLLM, 4 n L d bytes (keys and values of width d, in 16 bits) for each of those sampled together.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDE, NARROW = 4, 2
"""Bytes of a number in 32 and in 16 bits."""


@dataclass(frozen=True, slots=True)
class StaticMemory:
    """Bytes that are there during the whole of training."""

    weights: int
    gradients: int
    optimiser: int
    reference: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimiser + self.reference


def static_memory(whole: int, trained: int, *, reference: bool, bf16: bool) -> StaticMemory:
    """Return the bytes for `whole` weights of which some are `trained`, by adapters if they are fewer than all.

    `reference`: the divergence is measured. `bf16`: 16-bit arithmetic is used, as on a GPU.
    """
    adapters = trained < whole
    frozen = (NARROW if bf16 else WIDE) * (whole - trained)
    return StaticMemory(
        weights=frozen + WIDE * trained,
        gradients=WIDE * trained,
        optimiser=2 * WIDE * trained,
        reference=WIDE * whole if reference and not adapters else 0,
    )
