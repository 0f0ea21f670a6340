"""Images: a decoded frame to RGB, and RGB to JPEG and to a model's input.

One scaling does everything: straight from the decoder's pixel format (any subsampling, any depth) to RGB at the working
size, with the sample aspect ratio folded in. A model's input is made without open_clip, by its preprocessing settings
and PIL, so that a process that only decodes need not load torch. Pixels stay whole bytes: `Space.embed` scales them to
0..1 and normalises them, on its own device.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kinodex.pipeline.tone_mapping import BT2020_MATRIX, UNSPECIFIED, is_hdr, tone_map

if TYPE_CHECKING:
    from av import VideoFrame

Orientation = tuple[bool, bool, bool]
"""Steps that set a frame upright: transpose, then mirror left-right, then mirror top-bottom."""


class Scaler(Protocol):
    """A function from a decoded frame, and the shape of its pixels if it has its own, to RGB `[height, width, 3]`."""

    def __call__(self, frame: VideoFrame, own_aspect: Fraction | None = None, /) -> NDArray[np.uint8]: ...


Fit = Literal["shortest", "longest", "squash"]


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A function from an image to a model's input; the same bytes as open_clip's transform makes.

    `fit` is how an image comes to `height_px` x `width_px`: its shortest side is scaled and the rest cut off
    evenly, its longest side is scaled and the rest filled with `fill` (0 to 255), or it is squashed.
    """

    height_px: int
    width_px: int
    fit: Fit = "shortest"
    resampling: Literal["bicubic", "bilinear"] = "bicubic"
    fill: int = 0

    @classmethod
    def from_json(cls, text: str) -> ModelInput:
        """Read an open_clip preprocessing configuration, as a space's fingerprint holds it."""
        settings = json.loads(text)
        size = settings.get("size", 224)
        height_px, width_px = (size[0], size[-1]) if isinstance(size, Sequence) else (size, size)
        fit: Fit = settings.get("resize_mode") or "shortest"
        is_bilinear = settings.get("interpolation") == "bilinear"
        return cls(height_px, width_px, fit, "bilinear" if is_bilinear else "bicubic", settings.get("fill_color") or 0)

    @property
    def side_px(self) -> int:
        """Shortest side that an image should have, so that nothing is enlarged."""
        return max(self.height_px, self.width_px)

    def __call__(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Make the model's input `[3, height_px, width_px]` of an image `[H, W, 3]`; not normalised."""
        image = Image.fromarray(rgb)
        width_px, height_px = self.scaled_size(image.width, image.height)
        if (width_px, height_px) != image.size:
            resampling = Image.Resampling.BILINEAR if self.is_bilinear else Image.Resampling.BICUBIC
            image = image.resize((width_px, height_px), resampling)
        if (width_px, height_px) != (self.width_px, self.height_px):
            image = self._crop_or_pad(image)
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))

    @property
    def is_bilinear(self) -> bool:
        # open_clip leaves the resampling at its default where it cuts to a model input that is not square.
        is_square = self.height_px == self.width_px
        return self.resampling == "bilinear" and (is_square or self.fit != "shortest")

    def scaled_size(self, width: int, height: int) -> tuple[int, int]:
        """Compute width and height in px after scaling, before anything is cropped or filled."""
        if self.fit == "squash":
            return self.width_px, self.height_px
        if self.fit == "shortest" and self.width_px == self.height_px:
            side = self.width_px
            return (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
        ratios = height / self.height_px, width / self.width_px
        ratio = max(ratios) if self.fit == "longest" else min(ratios)
        return max(1, round(width / ratio)), max(1, round(height / ratio))

    def _crop_or_pad(self, image: Image.Image) -> Image.Image:
        """Crop or fill to size, evenly on both sides; of an odd number the larger half is filled right and below."""
        width, height = max(image.width, self.width_px), max(image.height, self.height_px)
        if (width, height) != image.size:
            filled = Image.new("RGB", (width, height), (self.fill,) * 3)
            filled.paste(image, ((width - image.width) // 2, (height - image.height) // 2))
            image = filled
        left, top = round((width - self.width_px) / 2), round((height - self.height_px) / 2)
        return image.crop((left, top, left + self.width_px, top + self.height_px))


def display_size(frame: VideoFrame, aspect: Fraction) -> tuple[int, int]:
    """Compute width and height in px of the frame as a player shows it: square pixels, upright."""
    size = max(1, round(frame.width * aspect)), frame.height
    return size[::-1] if _orientation(frame)[0] else size


def rgb_scaler(aspect: Fraction, longest_px: int, shortest_px: int, deinterlace: bool = False) -> Scaler:
    """Make a function from a decoded frame to its RGB image `[height, width, 3]`.

    `aspect` is the shape of pixels of frames that come without their own. The image has `working_size`. High dynamic
    range is tone-mapped; transparent pixels are laid over black. Of an interlaced frame one field is used, so that
    moving edges do not comb, its missing lines made up along edges with `deinterlace`. The function serves one video:
    all frames are set upright by the display matrix of its first one.
    """
    from av.video.reformatter import Interpolation, VideoReformatter

    reformatter = VideoReformatter()
    flags = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
    orientation: Orientation | None = None

    def to_rgb(frame: VideoFrame, own_aspect: Fraction | None = None) -> NDArray[np.uint8]:
        nonlocal orientation
        # Once a video: a frame whose side data was read is part of a reference cycle in PyAV, so its pixels
        # would stay in memory until the garbage collector happens to run.
        orientation = orientation or _orientation(frame)
        width_px, height_px = working_size(
            frame.width * (own_aspect or aspect), Fraction(frame.height), longest_px, shortest_px
        )
        transparent = any(component.is_alpha for component in frame.format.components)
        hdr = is_hdr(frame)
        scaled = reformatter.reformat(
            _one_field(frame, deinterlace) if frame.interlaced_frame else frame,
            width=width_px,
            height=height_px,
            format="rgb48le" if hdr else "rgba" if transparent else "rgb24",
            src_colorspace=(BT2020_MATRIX if frame.colorspace == UNSPECIFIED else frame.colorspace) if hdr else None,
            interpolation=flags,
            threads=1,
        )
        if hdr:
            levels = np.asarray(scaled.to_ndarray(), dtype=np.uint16)
            return _upright(tone_map(levels, frame.color_trc, frame.color_primaries), orientation)
        pixels = np.asarray(scaled.to_ndarray(), dtype=np.uint8)
        if transparent:
            colour, alpha = pixels[..., :3].astype(np.uint16), pixels[..., 3:].astype(np.uint16)
            pixels = ((colour * alpha + 127) // 255).astype(np.uint8)
        return _upright(pixels, orientation)

    return to_rgb


def working_size(width: Fraction, height: Fraction, longest_px: int, shortest_px: int) -> tuple[int, int]:
    """Width and height of the smallest image with at least these sides, never larger than the frame."""
    shrink = min(Fraction(1), max(longest_px / max(width, height), shortest_px / min(width, height)))
    return max(1, round(width * shrink)), max(1, round(height * shrink))


def jpeg(rgb: NDArray[np.uint8], longest_px: int, quality: int) -> tuple[bytes, int, int]:
    """Encode an image as JPEG, reduced to `longest_px` if larger; returns bytes, width and height in px."""
    image = Image.fromarray(rgb)
    image.thumbnail((longest_px, longest_px), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue(), image.width, image.height


def _one_field(frame: VideoFrame, whole: bool = False) -> VideoFrame:
    """Take every second line, at the full frame's time; `whole`: and make up the others from these (FFmpeg's estdif).

    Other filters, such as bwdif, compare with the frames before and after, which a sampled pass does not decode.
    """
    from av.filter import Graph

    graph, way = Graph(), ("estdif", "mode=frame") if whole else ("field", "type=top")
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=frame.time_base)
    graph.link_nodes(source, graph.add(*way), graph.add("buffersink")).configure()
    graph.vpush(frame)
    if whole:
        graph.vpush(None)
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
