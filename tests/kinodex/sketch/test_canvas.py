"""The pen draws where it is told to, on a sheet of any size, and the paints differ."""

from __future__ import annotations

import numpy as np
import pytest

from kinodex.sketch.drawings import COLOUR_RGB, Pen, paint_of, star_points

RED = (214, 32, 38)


def covered(pen: Pen) -> float:
    """Share of the sheet that is drawn on."""
    return float((np.asarray(pen.sheet)[..., 3] > 0).mean())


@pytest.mark.parametrize("side_px", [100, 320])
def test_shapes_cover_their_share_of_a_sheet_of_any_size(side_px: int) -> None:
    def share(draw) -> float:
        pen = Pen("red", side_px)
        draw(pen)
        return covered(pen)

    assert share(lambda pen: pen.box(RED, 0, 0, 50, 50)) == pytest.approx(0.25, abs=0.02)
    assert share(lambda pen: pen.dot(RED, 50, 50, 20)) == pytest.approx(np.pi * 0.04, abs=0.01)
    assert share(lambda pen: pen.poly(RED, (0, 0), (100, 0), (0, 100))) == pytest.approx(0.5, abs=0.02)
    assert share(lambda pen: pen.pie(RED, (0, 0, 100, 100), 0, 90)) == pytest.approx(np.pi / 16, abs=0.02)
    ring, disc = (share(lambda pen, width=width: pen.ring(RED, 50, 50, 40, width)) for width in (5, 40))
    assert 0 < ring < disc


def test_a_hole_is_transparent_again() -> None:
    pen = Pen("red", 100)
    pen.box(RED, 0, 0, 100, 100)
    pen.erase(50, 50, 20)
    assert covered(pen) == pytest.approx(1 - np.pi * 0.04, abs=0.01)
    assert pen.sheet.getpixel((5, 5)) == (*RED, 255)


def test_shade_is_darker_and_light_is_lighter_but_for_black() -> None:
    for colour in COLOUR_RGB:
        body, shade, light = map(sum, paint_of(colour))
        assert light > body and (shade < body) == (colour != "black")


def test_a_star_begins_at_the_top_and_alternates() -> None:
    corners = star_points(50, 50, 40, 20, 5)
    assert len(corners) == 10
    assert corners[0] == pytest.approx((50, 10))
    radii = [np.hypot(x - 50, y - 50) for x, y in corners]
    assert radii == pytest.approx([40, 20] * 5)
