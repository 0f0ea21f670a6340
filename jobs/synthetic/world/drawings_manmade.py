"""Vehicles and buildings of the sketch world: one small drawing a thing, on a sheet of 100 by 100."""

from __future__ import annotations

import math

from jobs.synthetic.world.canvas import GLASS, INK, METAL, PALE, WOOD, Pen


def _wheels(pen: Pen, y: float, radius: float, *xs: float) -> None:
    for x in xs:
        pen.dot(INK, x, y, radius)
        pen.dot(METAL, x, y, radius * 0.45)


def boat(pen: Pen) -> None:
    pen.line(WOOD, 4, (48, 6), (48, 70))
    pen.poly(pen.light, (52, 8), (52, 60), (90, 60))
    pen.poly(pen.light, (44, 16), (44, 60), (16, 60))
    pen.poly(pen.body, (4, 66), (96, 66), (80, 94), (20, 94))
    pen.line(pen.shade, 3, (8, 72), (92, 72))


def car(pen: Pen) -> None:
    pen.poly(pen.body, (24, 52), (36, 28), (68, 28), (82, 52))
    pen.poly(GLASS, (32, 50), (40, 33), (51, 33), (51, 50))
    pen.poly(GLASS, (55, 50), (55, 33), (65, 33), (74, 50))
    pen.box(pen.body, 3, 48, 97, 74, 9)
    pen.box((255, 240, 160), 3, 54, 10, 62)
    _wheels(pen, 75, 12, 25, 75)


def truck(pen: Pen) -> None:
    pen.box(pen.body, 2, 18, 62, 72, 2)
    pen.line(pen.shade, 2, (22, 20), (22, 70))
    pen.line(pen.shade, 2, (42, 20), (42, 70))
    pen.poly(pen.shade, (65, 34), (82, 34), (97, 54), (97, 74), (65, 74))
    pen.poly(GLASS, (70, 39), (81, 39), (90, 54), (70, 54))
    _wheels(pen, 77, 11, 18, 44, 82)


def bus(pen: Pen) -> None:
    pen.box(pen.body, 2, 18, 98, 78, 7)
    for x in (8, 26, 44, 62):
        pen.box(GLASS, x, 27, x + 14, 47, 2)
    pen.box(GLASS, 80, 27, 94, 70, 2)
    pen.line(pen.shade, 4, (4, 57), (76, 57))
    _wheels(pen, 79, 10, 24, 74)


def train(pen: Pen) -> None:
    pen.box(pen.body, 26, 44, 94, 72, 6)
    pen.box(pen.body, 2, 14, 36, 72)
    pen.box(GLASS, 9, 22, 28, 40)
    pen.box(pen.shade, 0, 9, 40, 17, 3)
    pen.poly(pen.shade, (76, 46), (72, 18), (92, 18), (88, 46))
    pen.poly(METAL, (92, 62), (99, 84), (78, 84), (80, 66))
    _wheels(pen, 80, 13, 18)
    _wheels(pen, 83, 10, 46, 68)


def bicycle(pen: Pen) -> None:
    for x in (22, 78):
        pen.ring(INK, x, 68, 21, 5)
        pen.dot(METAL, x, 68, 4)
    pen.line(pen.body, 6, (22, 68), (38, 38), (68, 38), (48, 68), (22, 68))
    pen.line(pen.body, 6, (48, 68), (34, 28))
    pen.line(pen.body, 6, (78, 68), (64, 24))
    pen.line(INK, 6, (26, 26), (44, 26))
    pen.line(INK, 5, (56, 20), (72, 22))


def plane(pen: Pen) -> None:
    pen.poly(pen.shade, (44, 44), (62, 10), (74, 10), (66, 46))
    pen.poly(pen.body, (2, 18), (16, 18), (28, 44), (10, 50))
    pen.box(pen.body, 6, 40, 96, 62, 11)
    pen.poly(pen.shade, (38, 54), (24, 92), (38, 92), (66, 54))
    for x in (34, 46, 58, 70):
        pen.dot(GLASS, x, 48, 3.5)
    pen.pie(GLASS, (78, 41, 96, 60), 270, 360)


def helicopter(pen: Pen) -> None:
    pen.line(METAL, 5, (4, 14), (92, 14))
    pen.line(METAL, 4, (48, 14), (48, 32))
    pen.poly(pen.shade, (58, 42), (98, 40), (98, 48), (60, 62))
    pen.ring(METAL, 93, 40, 10, 4)
    pen.oval(pen.body, 12, 28, 74, 78)
    pen.pie(GLASS, (16, 32, 66, 74), 180, 270)
    pen.line(METAL, 4, (32, 76), (30, 88))
    pen.line(METAL, 4, (56, 76), (58, 88))
    pen.line(METAL, 5, (14, 90), (72, 90))


def rocket(pen: Pen) -> None:
    pen.poly((250, 190, 40), (40, 80), (60, 80), (50, 99))
    pen.poly(pen.shade, (34, 52), (14, 84), (36, 78))
    pen.poly(pen.shade, (66, 52), (86, 84), (64, 78))
    pen.poly(pen.body, (50, 1), (66, 26), (68, 82), (32, 82), (34, 26))
    pen.dot(PALE, 50, 38, 10)
    pen.dot(GLASS, 50, 38, 7)


def balloon(pen: Pen) -> None:
    pen.line(INK, 2, (30, 50), (42, 82))
    pen.line(INK, 2, (70, 50), (58, 82))
    pen.poly(pen.body, (19, 46), (81, 46), (60, 74), (40, 74))
    pen.dot(pen.body, 50, 36, 35)
    pen.oval(pen.light, 40, 1, 60, 72)
    pen.box(WOOD, 40, 80, 60, 98, 2)


def tractor(pen: Pen) -> None:
    pen.box(pen.body, 44, 42, 96, 68, 4)
    pen.box(pen.shade, 12, 8, 56, 16, 2)
    pen.box(pen.body, 18, 14, 24, 60)
    pen.box(pen.body, 46, 14, 52, 60)
    pen.box(pen.body, 16, 46, 54, 70)
    pen.line(INK, 5, (78, 42), (78, 22))
    _wheels(pen, 68, 27, 28)
    _wheels(pen, 81, 14, 82)


def house(pen: Pen) -> None:
    pen.box(pen.shade, 68, 10, 80, 40)
    pen.poly(pen.shade, (50, 4), (98, 46), (2, 46))
    pen.box(pen.body, 12, 46, 88, 97)
    pen.box(WOOD, 42, 66, 58, 97)
    for x in (20, 66):
        pen.box(PALE, x, 56, x + 14, 72)
        pen.line(INK, 1.5, (x + 7, 56), (x + 7, 72))


def castle(pen: Pen) -> None:
    pen.box(pen.body, 24, 44, 76, 96)
    for x in (24, 38, 52, 66):
        pen.box(pen.body, x, 36, x + 9, 46)
    for x in (2, 74):
        pen.box(pen.shade, x, 26, x + 24, 96)
        pen.poly(pen.body, (x - 2, 28), (x + 12, 0), (x + 26, 28))
        pen.box(INK, x + 9, 42, x + 15, 54)
    pen.pie(INK, (38, 62, 62, 100), 180, 360)
    pen.box(INK, 38, 80, 62, 96)


def lighthouse(pen: Pen) -> None:
    pen.poly((255, 244, 150), (56, 14), (98, 4), (98, 30))
    pen.poly((255, 244, 150), (44, 14), (2, 4), (2, 30))
    pen.poly(pen.shade, (34, 10), (50, 0), (66, 10))
    pen.box((255, 236, 120), 40, 10, 60, 24)
    pen.box(INK, 34, 23, 66, 28)
    pen.poly(pen.body, (38, 28), (62, 28), (72, 97), (28, 97))
    for y in (44, 70):
        flare = (y - 28) / 7
        pen.poly(PALE, (38 - flare, y), (62 + flare, y), (64 + flare, y + 12), (36 - flare, y + 12))


def windmill(pen: Pen) -> None:
    pen.poly(pen.body, (38, 36), (62, 36), (72, 98), (28, 98))
    pen.poly(pen.shade, (34, 38), (50, 20), (66, 38))
    pen.box(WOOD, 44, 78, 56, 98)
    for step in range(4):
        angle = math.pi / 4 + step * math.pi / 2
        tip = (50 + 46 * math.cos(angle), 38 + 46 * math.sin(angle))
        side = (-6 * math.sin(angle), 6 * math.cos(angle))
        pen.line(INK, 2.5, (50, 38), tip)
        pen.poly(
            PALE,
            tip,
            (tip[0] + 2 * side[0], tip[1] + 2 * side[1]),
            (50 + 10 * math.cos(angle) + 2 * side[0], 38 + 10 * math.sin(angle) + 2 * side[1]),
            (50 + 10 * math.cos(angle), 38 + 10 * math.sin(angle)),
        )
    pen.dot(INK, 50, 38, 4)


def tent(pen: Pen) -> None:
    pen.poly(pen.body, (50, 14), (98, 92), (2, 92))
    pen.poly(INK, (50, 34), (66, 92), (34, 92))
    pen.poly(pen.light, (50, 30), (34, 92), (24, 92))
    pen.line(WOOD, 3, (50, 14), (54, 6))
    pen.line(WOOD, 3, (50, 14), (46, 6))


def bridge(pen: Pen) -> None:
    pen.box(pen.shade, 18, 12, 26, 92)
    pen.box(pen.shade, 74, 12, 82, 92)
    pen.arc(pen.body, 4, (22, -36, 78, 56), 0, 180)
    pen.line(pen.body, 4, (1, 52), (22, 14))
    pen.line(pen.body, 4, (99, 52), (78, 14))
    for x in (34, 42, 50, 58, 66):
        pen.line(pen.body, 2, (x, 48), (x, 62))
    pen.box(pen.body, 0, 60, 100, 70)


MADE = (
    boat,
    car,
    truck,
    bus,
    train,
    bicycle,
    plane,
    helicopter,
    rocket,
    balloon,
    tractor,
    house,
    castle,
    lighthouse,
    windmill,
    tent,
    bridge,
)
