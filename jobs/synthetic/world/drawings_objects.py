"""Everyday objects of the sketch world: one small drawing a thing, on a sheet of 100 by 100."""

from __future__ import annotations

from jobs.synthetic.world.canvas import INK, METAL, PALE, WOOD, Pen, star_points


def kite(pen: Pen) -> None:
    pen.line(INK, 2, (46, 64), (60, 78), (50, 86), (66, 99))
    pen.poly(pen.light, (60, 78), (68, 70), (70, 80))
    pen.poly(pen.light, (50, 88), (40, 82), (40, 94))
    pen.poly(pen.body, (50, 2), (82, 32), (46, 68), (16, 28))
    pen.poly(pen.shade, (50, 2), (82, 32), (48, 30))
    pen.poly(pen.shade, (46, 68), (16, 28), (48, 30))


def clock(pen: Pen) -> None:
    pen.dot(pen.body, 22, 14, 12)
    pen.dot(pen.body, 78, 14, 12)
    pen.line(pen.shade, 7, (28, 84), (18, 97))
    pen.line(pen.shade, 7, (72, 84), (82, 97))
    pen.dot(pen.body, 50, 54, 42)
    pen.dot(PALE, 50, 54, 31)
    for x, y in ((50, 28), (50, 80), (24, 54), (76, 54)):
        pen.dot(INK, x, y, 3)
    pen.line(INK, 4, (50, 54), (50, 34))
    pen.line(INK, 4, (50, 54), (66, 60))


def umbrella(pen: Pen) -> None:
    pen.line(WOOD, 5, (50, 10), (50, 86))
    pen.arc(WOOD, 5, (50, 76, 70, 97), 0, 180)
    pen.pie(pen.body, (2, 6, 98, 98), 180, 360)
    for x in (2, 34, 66):
        pen.pie(pen.shade, (x, 42, x + 32, 62), 180, 360)
    pen.line(INK, 3, (50, 2), (50, 8))


def cup(pen: Pen) -> None:
    pen.ring(pen.shade, 72, 54, 22, 8)
    pen.poly(pen.body, (10, 26), (74, 26), (68, 92), (18, 92))
    pen.oval(pen.shade, 10, 19, 74, 33)
    pen.oval((90, 54, 30), 16, 21, 68, 31)


def bottle(pen: Pen) -> None:
    pen.box(WOOD, 43, 0, 57, 10)
    pen.box(pen.body, 42, 8, 58, 40)
    pen.box(pen.body, 28, 32, 72, 99, 14)
    pen.box(PALE, 28, 54, 72, 80)


def chair(pen: Pen) -> None:
    pen.box(pen.shade, 22, 4, 30, 97)
    pen.box(pen.body, 22, 4, 32, 56)
    for y in (8, 24, 40):
        pen.box(pen.body, 24, y, 46, y + 6)
    pen.box(pen.body, 40, 4, 48, 56)
    pen.poly(pen.body, (20, 54), (80, 54), (86, 64), (20, 64))
    pen.box(pen.shade, 44, 64, 50, 86)
    pen.box(pen.shade, 76, 64, 84, 97)


def table(pen: Pen) -> None:
    pen.box(pen.shade, 10, 36, 19, 90)
    pen.box(pen.shade, 81, 36, 90, 90)
    pen.box(pen.shade, 28, 36, 34, 76)
    pen.box(pen.shade, 66, 36, 72, 76)
    pen.box(pen.body, 1, 26, 99, 40, 3)


def lamp(pen: Pen) -> None:
    pen.line(METAL, 6, (50, 46), (50, 92))
    pen.oval(METAL, 28, 86, 72, 99)
    pen.poly((255, 244, 170), (26, 50), (74, 50), (66, 58), (34, 58))
    pen.poly(pen.body, (34, 4), (66, 4), (88, 50), (12, 50))


def key(pen: Pen) -> None:
    pen.line(pen.body, 9, (40, 46), (96, 46))
    pen.box(pen.body, 72, 46, 80, 66)
    pen.box(pen.body, 88, 46, 97, 72)
    pen.dot(pen.body, 24, 46, 22)
    pen.erase(20, 46, 9)


def book(pen: Pen) -> None:
    pen.poly(pen.body, (50, 28), (2, 18), (2, 82), (50, 92))
    pen.poly(pen.shade, (50, 28), (98, 18), (98, 82), (50, 92))
    pen.poly(PALE, (50, 26), (8, 14), (8, 72), (50, 84))
    pen.poly((222, 222, 216), (50, 26), (92, 14), (92, 72), (50, 84))
    for y in (30, 42, 54):
        pen.line(METAL, 2, (16, y - 2), (42, y + 5))
        pen.line(METAL, 2, (58, y + 5), (84, y - 2))


def guitar(pen: Pen) -> None:
    pen.line(WOOD, 8, (46, 50), (86, 12))
    pen.poly(INK, (82, 6), (92, 0), (99, 8), (92, 18))
    pen.dot(pen.body, 28, 70, 26)
    pen.dot(pen.body, 50, 50, 18)
    pen.dot(INK, 40, 58, 8)
    pen.line(INK, 4, (16, 72), (26, 84))


def drum(pen: Pen) -> None:
    pen.line(WOOD, 4, (20, 4), (46, 28))
    pen.line(WOOD, 4, (84, 2), (58, 28))
    pen.box(pen.body, 12, 38, 88, 84)
    pen.oval(pen.body, 12, 70, 88, 98)
    pen.line(PALE, 3, (14, 44), (32, 88), (50, 50), (68, 88), (86, 44))
    pen.oval(pen.shade, 10, 22, 90, 54)
    pen.oval(PALE, 14, 25, 86, 50)


def bell(pen: Pen) -> None:
    pen.ring(pen.shade, 50, 10, 9, 4)
    pen.dot(pen.shade, 50, 88, 9)
    pen.pie(pen.body, (24, 14, 76, 90), 180, 360)
    pen.poly(pen.body, (24, 50), (76, 50), (82, 74), (18, 74))
    pen.box(pen.shade, 8, 72, 92, 82, 5)


def hat(pen: Pen) -> None:
    pen.oval(pen.body, 1, 66, 99, 90)
    pen.box(pen.body, 26, 14, 74, 80)
    pen.oval(pen.shade, 26, 8, 74, 22)
    pen.box(PALE, 26, 60, 74, 70)


def ball(pen: Pen) -> None:
    pen.dot(pen.body, 50, 52, 44)
    pen.pie(PALE, (6, 8, 94, 96), 240, 300)
    pen.pie(PALE, (6, 8, 94, 96), 0, 60)
    pen.pie(PALE, (6, 8, 94, 96), 120, 180)
    pen.dot(pen.body, 50, 52, 10)


def star(pen: Pen) -> None:
    pen.poly(pen.body, *star_points(50, 54, 50, 20, 5))


def heart(pen: Pen) -> None:
    pen.dot(pen.body, 28, 32, 25)
    pen.dot(pen.body, 72, 32, 25)
    pen.poly(pen.body, (6, 44), (94, 44), (50, 97))
    pen.oval(pen.body, 24, 26, 76, 60)


def crown(pen: Pen) -> None:
    pen.poly(pen.body, (4, 26), (28, 54), (50, 12), (72, 54), (96, 26), (88, 88), (12, 88))
    for x, y in ((4, 24), (50, 10), (96, 24)):
        pen.dot(pen.shade, max(6, min(94, x)), y, 6)
    pen.box(pen.shade, 12, 76, 88, 88)
    for x in (28, 50, 72):
        pen.dot(PALE, x, 68, 5)


def flag(pen: Pen) -> None:
    pen.line(METAL, 5, (14, 6), (14, 98))
    pen.poly(pen.body, (16, 8), (52, 14), (96, 6), (96, 52), (52, 60), (16, 54))
    pen.line(pen.shade, 3, (52, 15), (52, 59))


def gift(pen: Pen) -> None:
    ribbon = (250, 206, 60) if pen.body[2] > 40 or pen.body[0] < 200 else (60, 90, 220)
    pen.ring(ribbon, 36, 16, 14, 6)
    pen.ring(ribbon, 64, 16, 14, 6)
    pen.box(pen.body, 12, 44, 88, 97)
    pen.box(pen.shade, 6, 28, 94, 46)
    pen.box(ribbon, 43, 28, 57, 97)


def candle(pen: Pen) -> None:
    pen.oval((255, 150, 30), 40, 2, 60, 32)
    pen.oval((255, 236, 120), 45, 12, 55, 30)
    pen.line(INK, 3, (50, 30), (50, 38))
    pen.box(pen.body, 38, 36, 62, 86, 3)
    pen.oval(METAL, 16, 80, 84, 98)
    pen.ring(METAL, 88, 86, 10, 4)


def ladder(pen: Pen) -> None:
    pen.line(pen.body, 7, (30, 4), (22, 96))
    pen.line(pen.body, 7, (70, 4), (78, 96))
    for y in (18, 36, 54, 72, 88):
        pen.line(pen.shade, 6, (29 - y / 14, y), (71 + y / 14, y))


def anchor(pen: Pen) -> None:
    pen.ring(pen.body, 50, 14, 13, 6)
    pen.line(pen.body, 9, (50, 26), (50, 90))
    pen.line(pen.body, 8, (28, 38), (72, 38))
    pen.arc(pen.body, 9, (12, 22, 88, 96), 10, 170)
    pen.poly(pen.body, (4, 74), (10, 48), (28, 66))
    pen.poly(pen.body, (96, 74), (90, 48), (72, 66))


def scissors(pen: Pen) -> None:
    pen.poly(METAL, (46, 58), (66, 2), (58, 62))
    pen.poly(METAL, (54, 58), (34, 2), (42, 62))
    pen.line(pen.body, 8, (44, 58), (34, 70))
    pen.line(pen.body, 8, (56, 58), (66, 70))
    pen.ring(pen.body, 26, 80, 18, 8)
    pen.ring(pen.body, 74, 80, 18, 8)


def shoe(pen: Pen) -> None:
    pen.poly(pen.body, (6, 28), (36, 28), (52, 54), (84, 60), (96, 76), (6, 76))
    pen.box(INK, 4, 74, 98, 84, 4)
    for x, y in ((42, 38), (50, 48), (60, 54)):
        pen.line(PALE, 3, (x - 12, y + 6), (x, y))


def robot(pen: Pen) -> None:
    pen.line(METAL, 3, (50, 12), (50, 2))
    pen.box(pen.shade, 32, 84, 44, 99)
    pen.box(pen.shade, 56, 84, 68, 99)
    pen.line(METAL, 7, (28, 52), (10, 56), (10, 74))
    pen.line(METAL, 7, (72, 52), (90, 56), (90, 74))
    pen.box(pen.body, 26, 44, 74, 86, 4)
    pen.box(pen.body, 28, 10, 72, 42, 4)
    for x in (40, 60):
        pen.dot((250, 240, 120), x, 24, 6)
        pen.dot(INK, x, 24, 2.5)
    pen.box(INK, 38, 34, 62, 38)
    pen.box(PALE, 36, 54, 64, 70)


def cake(pen: Pen) -> None:
    for x in (30, 50, 70):
        pen.box(PALE, x - 2, 16, x + 2, 36)
        pen.oval((255, 160, 30), x - 3, 6, x + 3, 17)
    pen.box(pen.body, 24, 36, 76, 62, 4)
    pen.box(pen.body, 8, 60, 92, 92, 4)
    for x in (16, 32, 48, 64, 80):
        pen.pie(PALE, (x - 9, 50, x + 9, 74), 0, 180)
    pen.box(METAL, 1, 90, 99, 96, 3)


def envelope(pen: Pen) -> None:
    pen.box(pen.body, 2, 20, 98, 82, 2)
    pen.poly(pen.shade, (2, 20), (98, 20), (50, 56))
    pen.line(pen.light, 2.5, (4, 80), (38, 48))
    pen.line(pen.light, 2.5, (96, 80), (62, 48))


OBJECTS = (
    kite,
    clock,
    umbrella,
    cup,
    bottle,
    chair,
    table,
    lamp,
    key,
    book,
    guitar,
    drum,
    bell,
    hat,
    ball,
    star,
    heart,
    crown,
    flag,
    gift,
    candle,
    ladder,
    anchor,
    scissors,
    shoe,
    robot,
    cake,
    envelope,
)
