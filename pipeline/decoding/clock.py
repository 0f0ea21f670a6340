"""One clock for a whole file, also where its timestamps start again: joined recordings, a sender that was restarted.

The pictures say where that is: their decoding times fall by more than a second, or rise by more than a day. There the
file goes on from the last picture by the time that it is shown. All that lies behind that place in the file, pictures,
sound and text, is moved by the same time. A search by time cannot find its way in such a file: it is read from its
beginning.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kinodex.pipeline.decoding.frame_times import BACK_TO_BELIEVE_S, GAP_TO_BELIEVE_S, duration_s, time_base
from kinodex.pipeline.decoding.stream import choose_stream, open_container, packets_to_end
from kinodex.pipeline.errors import NothingDecodes, NoVideoStream
from kinodex.pipeline.playlists import PLAYLIST_DEMUXERS

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer
    from av.video.stream import VideoStream

Opener = Callable[[], AbstractContextManager["InputContainer"]]

SAME_END_S = 1.0
"""A file whose last timestamps lie so near the end that was read of it has the clock that it begins with."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a file with timestamps that go on: its pictures lie in the bytes `[first_byte, last_byte]`.

    `begin_s` and `end_s` are their decoding times in the file, to which `shift_s` is added.
    """

    first_byte: int
    last_byte: int
    begin_s: Fraction
    end_s: Fraction
    shift_s: Fraction


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a file; of one whose timestamps never start again there are no `stretches`."""

    stretches: tuple[Stretch, ...] = ()

    @property
    def is_repaired(self) -> bool:
        return bool(self.stretches)

    def demux(self, container: InputContainer, *streams: Any) -> Iterator[Packet[Any]]:
        """Demux streams of a container that stands at its beginning, with the times of this clock."""
        if not self.stretches:
            yield from container.demux(*streams)
            return
        places: dict[int, int] = {}
        for packet in container.demux(*streams):
            place = places.get(packet.stream.index, 0) if packet.pos is None or packet.pos < 0 else packet.pos
            places[packet.stream.index] = place
            stamp, base = packet.dts if packet.dts is not None else packet.pts, packet.time_base
            if stamp is not None and base:
                ticks = round(self._shift_s(place, stamp * base) / base)
                packet.pts = None if packet.pts is None else packet.pts + ticks
                packet.dts = None if packet.dts is None else packet.dts + ticks
            yield packet

    def _shift_s(self, place: int, time_s: Fraction) -> Fraction:
        """Find by how much a packet at this byte is moved; between two stretches it belongs to the nearer in time."""
        at = max(bisect_right(self.stretches, place, key=lambda each: each.first_byte) - 1, 0)
        here, after = self.stretches[at], self.stretches[at + 1 : at + 2]
        if after and place > here.last_byte and abs(time_s - after[0].begin_s) < abs(time_s - here.end_s):
            here = after[0]
        return here.shift_s


UNBROKEN = Clock()


def file_clock(path: Path, name: str, playlist: bool = False) -> Clock:
    """Find the clock of a local file, which is remembered while the file stays as it is; raises as `open_container`."""
    if playlist:
        return UNBROKEN
    state = path.stat() if path.exists() else None
    return _file_clock(path, name, None if state is None else (state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=64)
def _file_clock(path: Path, name: str, state: tuple[int, int] | None) -> Clock:
    return find_clock(lambda: open_container(path, name), name)


def find_clock(open_file: Opener, name: str, end_s: float | None = None) -> Clock:
    """Find the clock of a file. It is demuxed if timestamps may start again in its kind of container.

    With the time `end_s` at which its pictures are known to end it is demuxed only if its last timestamps say
    otherwise. Raises as `open_file` does.
    """
    from av.format import Flags

    with open_file() as container:
        kind = container.format
        if not kind.flags & cast(int, Flags.ts_discont.value) or kind.name in PLAYLIST_DEMUXERS:
            return UNBROKEN
        try:
            stream = choose_stream(container, name)
        except (NoVideoStream, NothingDecodes):
            return UNBROKEN  # there are no pictures to follow
        if end_s is not None and _ends_at(stream, end_s):
            return UNBROKEN
        stretches = tuple(_stretches(container, stream))
    return Clock(stretches) if len(stretches) > 1 else UNBROKEN


def _ends_at(stream: VideoStream, end_s: float) -> bool:
    if stream.start_time is None or stream.duration is None:
        return False
    return abs(float((stream.start_time + stream.duration) * time_base(stream)) - end_s) <= SAME_END_S


def _stretches(container: InputContainer, stream: VideoStream) -> Iterator[Stretch]:
    base, shift_s = time_base(stream), Fraction(0)
    held: Stretch | None = None
    last_s = Fraction(0)
    for packet in packets_to_end(lambda: container.demux(stream)):
        stamp = packet.dts
        if stamp is None and packet.is_keyframe:  # other pictures are sent in another order than they are shown in
            stamp = packet.pts
        if stamp is None or not packet.size:
            continue
        time_s = stamp * base
        place = packet.pos if packet.pos is not None and packet.pos >= 0 else held.last_byte if held else 0
        if held is not None and not -BACK_TO_BELIEVE_S <= time_s - last_s <= GAP_TO_BELIEVE_S:
            yield held
            shift_s += held.end_s - time_s
            held = None
        last_s, end_s = time_s, time_s + duration_s(packet.duration or 0, base, stream.average_rate)
        first = held or Stretch(place, place, time_s, end_s, shift_s)
        held = replace(first, last_byte=place, end_s=end_s)
    if held is not None:
        yield held
