"""Convert a decoded frame to an upright RGB image with square pixels, and that to JPEG.

One scaling does everything: straight from the decoder's pixel format (any subsampling, any depth) to
RGB at the working size, with the sample aspect ratio folded in.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av import VideoFrame

Orientation = tuple[bool, bool, bool]
"""Steps that set a frame upright: transpose, then mirror left-right, then mirror top-bottom."""


def display_size(frame: VideoFrame, aspect: Fraction) -> tuple[int, int]:
    """Compute width and height in px of the frame as a player shows it: square pixels, upright."""
    size = max(1, round(frame.width * aspect)), frame.height
    return size[::-1] if _orientation(frame)[0] else size


def rotation_deg(frame: VideoFrame) -> int:
    """Return the counterclockwise rotation in the display matrix, in degrees."""
    return frame.rotation


def rgb_scaler(aspect: Fraction, longest_px: int, shortest_px: int) -> Callable[[VideoFrame], NDArray[np.uint8]]:
    """Make a function from a decoded frame to its RGB image `[height, width, 3]`.

    The image has `working_size`. Transparent pixels are laid over black. Of an
    interlaced frame one field is used, so that moving edges do not comb. The function serves one video: all
    frames are set upright by the display matrix of its first one.
    """
    from av.video.reformatter import Interpolation, VideoReformatter

    reformatter = VideoReformatter()
    flags = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
    orientation: Orientation | None = None

    def to_rgb(frame: VideoFrame) -> NDArray[np.uint8]:
        nonlocal orientation
        # Once a video: a frame whose side data was read is part of a reference cycle in PyAV, so its pixels
        # would stay in memory until the garbage collector happens to run.
        orientation = orientation or _orientation(frame)
        width_px, height_px = working_size(frame.width * aspect, Fraction(frame.height), longest_px, shortest_px)
        transparent = any(component.is_alpha for component in frame.format.components)
        scaled = reformatter.reformat(
            _one_field(frame) if frame.interlaced_frame else frame,
            width=width_px,
            height=height_px,
            format="rgba" if transparent else "rgb24",
            interpolation=flags,
            threads=1,
        )
        pixels = np.asarray(scaled.to_ndarray(), dtype=np.uint8)
        return _upright(_over_black(pixels) if transparent else pixels, orientation)

    return to_rgb


def working_size(width: Fraction, height: Fraction, longest_px: int, shortest_px: int) -> tuple[int, int]:
    """Compute width and height in px of the smallest image for all uses of a frame, never larger than the frame.

    Its longest side is at least `longest_px`, its shortest side at least `shortest_px`.
    """
    shrink = min(Fraction(1), max(longest_px / max(width, height), shortest_px / min(width, height)))
    return max(1, round(width * shrink)), max(1, round(height * shrink))


def jpeg(rgb: NDArray[np.uint8], longest_px: int, quality: int) -> tuple[bytes, int, int]:
    """Encode an image as JPEG, reduced to `longest_px` if larger; returns bytes, width and height in px."""
    from PIL import Image

    image = Image.fromarray(rgb)
    image.thumbnail((longest_px, longest_px), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue(), image.width, image.height


def _over_black(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    colour, alpha = rgba[..., :3].astype(np.uint16), rgba[..., 3:].astype(np.uint16)
    return ((colour * alpha + 127) // 255).astype(np.uint8)


def _one_field(frame: VideoFrame) -> VideoFrame:
    """Take every second line, at the full frame's time."""
    from av.filter import Graph

    graph = Graph()
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base)
    graph.link_nodes(source, graph.add("field", "type=top"), graph.add("buffersink")).configure()
    graph.vpush(frame)
    return graph.vpull()


def _orientation(frame: VideoFrame) -> Orientation:
    """Read the steps that set the frame upright.

    They come from the display matrix (ISO/IEC 14496-12, 6.2.2), whose first rows are `a b u / c d v` with
    x' = a x + c y and y' = b x + d y; angles that are no multiple of 90 degrees go to the nearest.
    """
    from av.buffer import Buffer

    matrix = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(matrix, Buffer):
        return False, False, False
    a, b, _, c, d = struct.unpack_from("<5i", bytes(matrix))
    return (True, c < 0, b < 0) if abs(b) > abs(a) else (False, a < 0, d < 0)


def _upright(rgb: NDArray[np.uint8], orientation: Orientation) -> NDArray[np.uint8]:
    transpose, mirror, flip = orientation
    if transpose:
        rgb = rgb.transpose(1, 0, 2)
    if mirror:
        rgb = rgb[:, ::-1]
    if flip:
        rgb = rgb[::-1]
    return np.ascontiguousarray(rgb)
