"""The memory of frames: the lowest reward leaves first."""

from __future__ import annotations

from agent.core.protocol import ShownFrame
from agent.tree_search.frame_memory import Memory


def frame(frame_no: int) -> ShownFrame:
    return ShownFrame("v", frame_no, float(frame_no), 8, 8, b"")


def test_memory_drops_the_lowest_reward_then_the_oldest():
    memory = Memory(3)
    assert memory.add([frame(5), frame(1), frame(3)], [50, 10, 10]) == []
    assert memory.add([frame(9)], [60]) == [frame(1)]
    assert memory.add([frame(8)], [None]) == [frame(8)]
    assert [held.frame_no for held in memory.frames] == [3, 5, 9]
