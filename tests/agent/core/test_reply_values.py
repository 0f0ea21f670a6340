"""Numbers, times and lists as models write them: what is meant without doubt is read, the rest is refused."""

from __future__ import annotations

import math

import pytest
from pydantic import TypeAdapter, ValidationError

from kinodex.agent.replies import Confidence, Numbers, Score, Seconds, WholeNumber, on_scale

NOTHING: tuple[object, ...] = (math.nan, math.inf, -math.inf, True, "", "soon", "NaN", {})
"""No number at all, or none that can be counted with."""


@pytest.mark.parametrize(
    ("kind", "said", "meant"),
    [
        (WholeNumber, "3", 3),
        (WholeNumber, 3.0, 3),
        (WholeNumber, "Segment 3", 3),
        (WholeNumber, "Segment 3: 10.0 s to 20.0 s", 3),
        (WholeNumber, "three", 3),
        (WholeNumber, "2/3", 2),
        (Score, 85, 85),
        (Score, "85%", 85),
        (Score, "85/100", 85),
        (Score, "8.5 out of 10", 85),
        (Confidence, 0.85, 0.85),
        (Confidence, "85 %", 0.85),
        (Seconds, 12.5, 12.5),
        (Seconds, "12.5 s", 12.5),
        (Seconds, "10:00", 600),
        (Seconds, "1:02:03", 3723),
        (Seconds, "00:10.5", 10.5),
        (Seconds, "1m30s", 90),
        (Seconds, "5 minutes", 300),
        (Seconds, "at 31.00 s", 31),
        (Numbers, [1, 2], [1, 2]),
        (Numbers, "1, 2 and 4", [1, 2, 4]),
        (Numbers, "<clip_3>, <clip_4>", [3, 4]),
        (Numbers, ["frame 2", 5], [2, 5]),
        (Numbers, 3, [3]),
        (Numbers, None, []),
        (Numbers, "none", []),
        (Numbers, " Null ", []),
    ],
)
def test_what_is_meant_is_read(kind: type, said: object, meant: object) -> None:
    assert TypeAdapter(kind).validate_python(said) == pytest.approx(meant)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        *((kind, said) for kind in (WholeNumber, Score, Confidence, Seconds) for said in NOTHING),
        *((kind, "1e999") for kind in (WholeNumber, Score, Confidence, Seconds)),
        *((kind, "9" * 5000) for kind in (WholeNumber, Score, Confidence, Seconds, Numbers)),
        (WholeNumber, 3.5),
        (WholeNumber, "3 or 4"),
        (WholeNumber, "not segment 3"),
        (WholeNumber, "It isn't 3"),
        (Seconds, "not at 90 s"),
        (Numbers, "not 3"),
        (Score, "between 60 and 70"),
        (Score, 101),
        (Score, "120%"),
        (Confidence, 85),
        (Seconds, "10:00 to 11:00"),
        (Seconds, "1:2:3:4"),
        (Seconds, "1:75"),
        (Numbers, "1-3"),
        (Numbers, "many"),
        (Numbers, [[1]]),
        (Numbers, [True]),
    ],
)
def test_what_may_mean_several_things_or_nothing_is_refused(kind: type, said: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(said)


def test_only_a_percentage_that_says_so_is_put_on_another_scale() -> None:
    assert (on_scale("80%", 5.0), on_scale("4/5", 5.0), on_scale(80, 5.0), on_scale("80", 5.0)) == (4.0, 4.0, 80, "80")


def test_a_long_text_is_refused_at_once() -> None:
    with pytest.raises(ValidationError, match="characters are no number"):
        TypeAdapter(Seconds).validate_python("1 " * 100_000)
