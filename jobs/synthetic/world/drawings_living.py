"""Animals, people and plants of the sketch world: one small drawing a thing, on a sheet of 100 by 100."""

from __future__ import annotations

import math

from jobs.synthetic.world.canvas import INK, PALE, WOOD, Pen

SKIN = (236, 188, 150)


def _legs(pen: Pen, *xs: float, top: float = 66, bottom: float = 96, width: float = 7) -> None:
    for x in xs:
        pen.line(pen.shade, width, (x, top), (x, bottom))


def fish(pen: Pen) -> None:
    pen.poly(pen.shade, (68, 50), (98, 24), (90, 50), (98, 76))
    pen.poly(pen.shade, (36, 32), (58, 12), (62, 34))
    pen.oval(pen.body, 4, 26, 76, 74)
    pen.arc(pen.shade, 3, (14, 30, 40, 70), -60, 60)
    pen.dot(PALE, 20, 44, 6)
    pen.dot(INK, 19, 44, 3)


def bird(pen: Pen) -> None:
    pen.poly(pen.body, (50, 60), (2, 18), (20, 14), (58, 44))
    pen.poly(pen.shade, (50, 60), (98, 12), (80, 8), (44, 44))
    pen.oval(pen.body, 32, 42, 68, 74)
    pen.poly(pen.shade, (44, 70), (36, 96), (58, 96), (56, 70))
    pen.dot(pen.body, 50, 36, 12)
    pen.poly((240, 160, 30), (45, 38), (50, 54), (55, 38))
    pen.dot(INK, 45, 33, 2.5)
    pen.dot(INK, 55, 33, 2.5)


def cat(pen: Pen) -> None:
    pen.line(pen.body, 8, (74, 88), (92, 78), (92, 54), (84, 44))
    pen.oval(pen.body, 24, 50, 78, 98)
    pen.poly(pen.body, (22, 34), (20, 2), (44, 18))
    pen.poly(pen.body, (78, 34), (80, 2), (56, 18))
    pen.oval(pen.body, 20, 12, 80, 60)
    pen.oval((120, 210, 90), 32, 28, 44, 40)
    pen.oval((120, 210, 90), 56, 28, 68, 40)
    pen.dot(INK, 38, 34, 3)
    pen.dot(INK, 62, 34, 3)
    pen.poly(pen.light, (46, 44), (54, 44), (50, 50))
    for y in (44, 50):
        pen.line(pen.shade, 2, (6, y), (34, 47))
        pen.line(pen.shade, 2, (94, y), (66, 47))


def dog(pen: Pen) -> None:
    _legs(pen, 30, 42, 72, 82)
    pen.line(pen.body, 7, (84, 50), (98, 28))
    pen.box(pen.body, 26, 44, 88, 72, 12)
    pen.poly(pen.body, (24, 60), (26, 26), (48, 26), (48, 60))
    pen.box(pen.body, 4, 24, 44, 48, 9)
    pen.oval(pen.shade, 34, 20, 50, 56)
    pen.dot(INK, 6, 30, 5)
    pen.dot(PALE, 24, 31, 3.5)
    pen.dot(INK, 24, 31, 2)
    pen.line((220, 40, 40), 4, (28, 54), (46, 56))


def horse(pen: Pen) -> None:
    _legs(pen, 32, 42, 76, 86, top=56)
    pen.line(pen.shade, 8, (88, 44), (97, 60), (96, 78))
    pen.oval(pen.body, 26, 36, 92, 68)
    pen.poly(pen.body, (28, 58), (14, 14), (32, 8), (54, 42))
    pen.poly(pen.body, (20, 6), (34, 12), (12, 38), (2, 34))
    pen.poly(pen.body, (24, 10), (28, 0), (32, 12))
    pen.line(pen.shade, 7, (32, 8), (46, 26), (54, 40))
    pen.dot(INK, 20, 18, 2.5)


def elephant(pen: Pen) -> None:
    for x in (36, 52, 72, 86):
        pen.box(pen.shade, x - 7, 62, x + 6, 96, 3)
    pen.box(pen.body, 26, 26, 96, 76, 24)
    pen.dot(pen.body, 28, 40, 22)
    pen.line(pen.body, 11, (12, 46), (8, 66), (8, 84), (16, 90))
    pen.oval(pen.shade, 28, 20, 54, 60)
    pen.line(PALE, 5, (17, 60), (24, 70), (32, 70))
    pen.dot(INK, 18, 36, 3)


def snake(pen: Pen) -> None:
    wave = [(10 + x, 62 + 18 * math.sin(x / 11)) for x in range(0, 76, 2)]
    pen.line(pen.body, 13, *wave)
    for x, y in wave[3::6]:
        pen.dot(pen.light, x, y, 3)
    pen.line(pen.body, 13, (84, 62), (86, 40), (80, 30))
    pen.oval(pen.body, 62, 16, 94, 38)
    pen.line((230, 30, 60), 2.5, (64, 30), (50, 34))
    pen.dot(PALE, 74, 23, 4)
    pen.dot(INK, 73, 23, 2)


def butterfly(pen: Pen) -> None:
    for side, left in ((-1, 10), (1, 56)):
        pen.poly(pen.body, (50, 48), (50 + 46 * side, 6), (50 + 46 * side, 46), (50 + 20 * side, 56))
        pen.oval(pen.body, left, 50, left + 34, 90)
        pen.dot(pen.light, 50 + 34 * side, 28, 7)
        pen.dot(pen.shade, 50 + 24 * side, 70, 6)
        pen.line(INK, 2, (50, 30), (50 + 14 * side, 8))
    pen.oval(INK, 45, 24, 55, 84)


def snail(pen: Pen) -> None:
    pen.box((214, 190, 140), 8, 76, 94, 90, 7)
    pen.line((214, 190, 140), 10, (14, 82), (14, 52))
    pen.line((214, 190, 140), 3, (12, 50), (6, 34))
    pen.line((214, 190, 140), 3, (16, 50), (22, 34))
    pen.dot(INK, 6, 33, 3)
    pen.dot(INK, 22, 33, 3)
    pen.dot(pen.body, 60, 52, 34)
    pen.ring(pen.shade, 60, 52, 24, 4)
    pen.ring(pen.shade, 60, 52, 12, 4)


def turtle(pen: Pen) -> None:
    skin = (150, 176, 96)
    pen.dot(skin, 12, 58, 11)
    for x in (30, 72):
        pen.box(skin, x - 8, 66, x + 8, 88, 5)
    pen.poly(skin, (84, 68), (99, 76), (84, 78))
    pen.pie(pen.body, (16, 20, 90, 120), 180, 360)
    pen.box(pen.shade, 14, 66, 92, 74, 4)
    for x in (36, 53, 70):
        pen.poly(pen.shade, *[(x + 8 * math.cos(a), 48 + 8 * math.sin(a)) for a in (0, 1.05, 2.1, 3.14, 4.2, 5.2)])
    pen.dot(INK, 8, 55, 2.5)


def rabbit(pen: Pen) -> None:
    pen.oval(pen.body, 30, 0, 44, 46)
    pen.oval(pen.body, 56, 0, 70, 46)
    pen.oval(pen.light, 34, 6, 40, 40)
    pen.oval(pen.light, 60, 6, 66, 40)
    pen.oval(pen.body, 24, 56, 76, 99)
    pen.oval(pen.body, 26, 32, 74, 70)
    pen.oval(pen.shade, 24, 88, 46, 99)
    pen.oval(pen.shade, 54, 88, 76, 99)
    for x in (40, 60):
        pen.dot(INK, x, 48, 3.5)
    pen.box(PALE, 46, 58, 54, 68)
    pen.dot((240, 120, 140), 50, 56, 3.5)


def duck(pen: Pen) -> None:
    pen.poly(pen.body, (70, 62), (98, 44), (92, 72))
    pen.oval(pen.body, 18, 48, 92, 90)
    pen.line(pen.body, 15, (32, 62), (32, 34))
    pen.dot(pen.body, 30, 26, 17)
    pen.poly((244, 140, 24), (16, 24), (0, 30), (2, 38), (18, 36))
    pen.pie(pen.shade, (40, 44, 84, 80), 0, 180)
    pen.dot(PALE, 26, 22, 4)
    pen.dot(INK, 25, 22, 2.5)


def spider(pen: Pen) -> None:
    for side in (-1, 1):
        for knee, foot in ((22, 34), (36, 48), (60, 66), (76, 86)):
            pen.line(pen.shade, 4, (50, 52), (50 + 28 * side, knee - 6), (50 + 46 * side, foot))
    pen.dot(pen.body, 50, 60, 22)
    pen.dot(pen.body, 50, 34, 13)
    pen.dot(PALE, 45, 30, 4)
    pen.dot(PALE, 55, 30, 4)


def tree(pen: Pen) -> None:
    pen.box(WOOD, 42, 56, 58, 98)
    pen.dot(pen.shade, 28, 46, 22)
    pen.dot(pen.shade, 72, 46, 22)
    pen.dot(pen.body, 50, 30, 28)
    pen.dot(pen.body, 36, 52, 16)
    pen.dot(pen.body, 64, 52, 16)


def flower(pen: Pen) -> None:
    stem = (60, 130, 60)
    pen.line(stem, 5, (50, 40), (50, 98))
    pen.oval(stem, 50, 68, 80, 82)
    pen.oval(stem, 20, 76, 50, 90)
    for step in range(6):
        angle = step * math.pi / 3
        pen.dot(pen.body, 50 + 20 * math.cos(angle), 30 + 20 * math.sin(angle), 13)
    pen.dot((250, 200, 60), 50, 30, 11)


def mushroom(pen: Pen) -> None:
    pen.box(PALE, 38, 48, 62, 96, 8)
    pen.pie(pen.body, (6, 8, 94, 98), 180, 360)
    for x, y, radius in ((30, 36, 7), (54, 24, 8), (74, 40, 6)):
        pen.dot(PALE, x, y, radius)


def cactus(pen: Pen) -> None:
    pen.box(pen.body, 40, 4, 60, 98, 10)
    pen.line(pen.body, 13, (50, 66), (20, 66), (20, 40))
    pen.line(pen.body, 13, (50, 54), (80, 54), (80, 26))
    for x in (46, 54):
        pen.line(pen.shade, 2, (x, 12), (x, 96))


def apple(pen: Pen) -> None:
    pen.dot(pen.body, 36, 58, 32)
    pen.dot(pen.body, 64, 58, 32)
    pen.oval(pen.body, 30, 60, 70, 97)
    pen.line(WOOD, 5, (50, 34), (54, 8))
    pen.oval((70, 160, 70), 54, 8, 82, 22)
    pen.oval(pen.light, 16, 42, 28, 62)


def person(pen: Pen) -> None:
    pen.line(INK, 9, (43, 62), (40, 96))
    pen.line(INK, 9, (57, 62), (60, 96))
    pen.line(SKIN, 7, (38, 34), (20, 58))
    pen.line(SKIN, 7, (62, 34), (80, 58))
    pen.box(pen.body, 33, 28, 67, 68, 7)
    pen.dot(SKIN, 50, 15, 13)
    pen.pie((70, 44, 30), (36, 1, 64, 28), 180, 360)


def ghost(pen: Pen) -> None:
    pen.pie(pen.body, (18, 4, 82, 72), 180, 360)
    pen.box(pen.body, 18, 36, 82, 82)
    for x in (28.6, 50, 71.4):
        pen.dot(pen.body, x, 84, 10.6)
    for x in (38, 62):
        pen.oval(INK if pen.body[0] > 40 else PALE, x - 6, 30, x + 6, 46)
    pen.oval(INK if pen.body[0] > 40 else PALE, 44, 54, 56, 64)


LIVING = (
    fish,
    bird,
    cat,
    dog,
    horse,
    elephant,
    snake,
    butterfly,
    snail,
    turtle,
    rabbit,
    duck,
    spider,
    tree,
    flower,
    mushroom,
    cactus,
    apple,
    person,
    ghost,
)
