"""Tone mapping: frames of high dynamic range (PQ and HLG, ITU-R BT.2100) to the RGB that an ordinary screen shows.

Shown as they are, such frames are pale and flat, to people and to models that learned from ordinary pictures.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av import VideoFrame

# Code points of ITU-T H.273: transfer characteristics (table 3), colour primaries (table 2), matrices (table 4).
PQ, HLG = 16, 18
BT2020_PRIMARIES, UNSPECIFIED = 9, 2
BT2020_MATRIX = 9
WHITE_NITS = 100.0  # what becomes 1 before the curve: white of an ordinary screen (ITU-R BT.1886)
PEAK_NITS = 1000.0  # what becomes white after it: the peak of HLG's reference display, and of most PQ masters
LUMINANCE = np.array([0.2627, 0.6780, 0.0593], np.float32)  # of BT.2020 primaries
TO_BT709 = np.array([[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], np.float32)
"""From BT.2020 primaries to BT.709's, in linear light (ITU-R BT.2087, section 4.2)."""
LEVELS = 1 << 16


def is_hdr(frame: VideoFrame) -> bool:
    return frame.color_trc in (PQ, HLG)


def tone_map(rgb: NDArray[np.uint16], transfer: int, primaries: int) -> NDArray[np.uint8]:
    """Map an image `[height, width, 3]` of all 16-bit levels to sRGB of one byte.

    By luminance, so that hues stay: L (1 + L / W^2) / (1 + L) with the white point W (Reinhard, Stark, Shirley and
    Ferwerda, Photographic tone reproduction for digital images, SIGGRAPH 2002, equation 4).

    Args:
        rgb: not linear, as its transfer function has it.
        transfer: `PQ` or `HLG`.
        primaries: code point; BT.2020's where it is unspecified. Others than that are taken for BT.709's.
    """
    light = _linear(transfer)[rgb]
    luminance = light @ LUMINANCE
    if transfer == HLG:  # from the scene to a display of PEAK_NITS: system gamma 1.2 (BT.2100, table 5)
        light *= PEAK_NITS / WHITE_NITS * luminance[..., None] ** 0.2
        luminance = light @ LUMINANCE
    white = PEAK_NITS / WHITE_NITS
    light *= ((1 + luminance / white**2) / (1 + luminance))[..., None]
    if primaries in (BT2020_PRIMARIES, UNSPECIFIED):
        light = light @ TO_BT709.T
    encoded: NDArray[np.uint8] = _srgb()[np.rint(light.clip(0, 1) * (LEVELS - 1)).astype(np.uint16)]
    return encoded


@lru_cache
def _linear(transfer: int) -> NDArray[np.float32]:
    """Tabulate linear light by level: of PQ in `WHITE_NITS` on a display, of HLG in the scene, 0 to 1."""
    signal = np.arange(LEVELS) / (LEVELS - 1)
    if transfer == PQ:  # SMPTE ST 2084, BT.2100 table 4
        root = signal ** (1 / (2523 / 32))
        above = np.maximum(root - 3424 / 4096, 0)
        light = 10_000 / WHITE_NITS * (above / (2413 / 128 - 2392 / 128 * root)) ** (1 / (2610 / 16384))
    else:  # BT.2100 table 5: the inverse of the OETF
        a = 0.17883277
        b, c = 1 - 4 * a, 0.5 - a * np.log(4 * a)
        light = np.where(signal <= 0.5, signal**2 / 3, (np.exp((signal - c) / a) + b) / 12)
    table: NDArray[np.float32] = light.astype(np.float32)
    return table


@lru_cache
def _srgb() -> NDArray[np.uint8]:
    """Tabulate sRGB (IEC 61966-2-1) by linear light, 0 to 1 in `LEVELS` steps."""
    light = np.arange(LEVELS) / (LEVELS - 1)
    encoded = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    table: NDArray[np.uint8] = np.rint(encoded * 255).astype(np.uint8)
    return table
