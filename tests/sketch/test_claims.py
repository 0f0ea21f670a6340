"""The truth of claims about scenes."""

from __future__ import annotations

from typing import Any

from kinodex.sketch.scenes import Group, Scene, TitleCard
from tests.sketch.captions import SEVERAL, Claim, GroupClaim, truth


def test_truth_of_claims() -> None:
    boats = Scene("sea", True, (Group("boat", "red", 3, position="left"), Group("car", "blue", position="right")))
    card = TitleCard("HARBOUR")

    def true(*groups: GroupClaim, scene: Scene | TitleCard = boats, **facts: Any) -> bool:
        return bool(truth([Claim(groups=groups, **facts)], [scene])[0, 0])

    assert true(GroupClaim("boat")) and true(GroupClaim("vehicle", "red")) and true(GroupClaim(colour="blue"))
    assert true(GroupClaim("boat", "red", 3), GroupClaim("car", position="right"), place="sea", night=True)
    assert true(GroupClaim("boat", count=SEVERAL)) and not true(GroupClaim("car", count=SEVERAL))
    assert (
        not true(GroupClaim("boat", "blue"))
        and not true(GroupClaim("boat", count=2))
        and not true(GroupClaim("animal"))
    )
    assert not true(GroupClaim("boat"), place="snow") and not true(empty=True) and not true(word="HARBOUR")
    assert true(scene=card, word="HARBOUR") and true(scene=card, word="*") and not true(scene=card, word="ECHO")
    assert true(scene=Scene("sea"), empty=True, place="sea")
