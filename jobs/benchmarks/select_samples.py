"""Select the samples that a run asks: of a subset of the benchmark, with videos in the library, and drawn at random.

Subsets are groups of questions as papers report them, and lists of ids. A video that the library lacks is listed, never
silently left out.
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from index.rows import VideoRow
from jobs.benchmarks.samples import MissingVideo, Sample, by_number, composed, csv_table, json_file
from jobs.errors import UsageError
from pipeline.sources.discover import VIDEO_SUFFIXES

WHOLE = "all"
MOST_NAMED = 12
URI_PARTS = 3


@dataclass(frozen=True, slots=True)
class Subset:
    """Choice of questions: in one of the named groups of every breakdown of `only`, and among `ids` if not None."""

    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ids: frozenset[str] | None = None

    def __str__(self) -> str:
        """Describe the subset in words, equal for equal subsets; ids by their number and digest."""
        words = [f"{breakdown} = {' or '.join(sorted(names))}" for breakdown, names in sorted(self.only.items())]
        if self.ids is not None:
            digest = hashlib.sha256("\n".join(sorted(self.ids)).encode()).hexdigest()[:12]
            words.append(f"{len(self.ids):,} ids of sha256 {digest}")
        return "; ".join(words) or WHOLE


@dataclass(frozen=True, slots=True)
class VideoMatches:
    """The library's video ids by the benchmark's names, one or all of an episode, and the videos without a match.

    Names in `ambiguous` are among the missing, because several videos of the library have them.
    """

    videos: Mapping[str, tuple[str, ...]]
    missing: tuple[MissingVideo, ...]
    ambiguous: frozenset[str] = frozenset()


def parse_subset(only: Sequence[str], ids: Path | None) -> Subset:
    """Parse GROUP=VALUE options and a file with one id a line; raise `UsageError` for anything else."""
    groups: dict[str, frozenset[str]] = {}
    for word in only:
        breakdown, equals, name = word.partition("=")
        if not (equals and breakdown and name):
            raise UsageError(f"got --only {word!r}; give GROUP=VALUE, such as duration=long")
        groups[breakdown] = groups.get(breakdown, frozenset()) | {name}
    return Subset(groups, None if ids is None else _read_ids(ids))


def select_samples(samples: Sequence[Sample], subset: Subset) -> tuple[Sample, ...]:
    """Select the samples of a subset, in the order given.

    Raises `UsageError` for a breakdown, group or id that no question has, and where no question is left.
    """
    for breakdown, names in subset.only.items():
        _check_groups(samples, breakdown, names)
    unknown = sorted((subset.ids or frozenset()) - {sample.item_id for sample in samples})
    if unknown:
        known = _list_names([sample.item_id for sample in samples])
        raise UsageError(f"--ids has {len(unknown):,} that no question has: {_list_names(unknown)}; there are {known}")
    found = tuple(sample for sample in samples if _is_in(sample, subset))
    if not found:
        raise UsageError(f"no question is in the part {subset}; give fewer of --only and --ids together")
    return found


def match_videos(
    samples: Sequence[Sample], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool
) -> VideoMatches:
    """Find each video of the samples by its name in `id_map`, else by its own name; see `match_names`."""
    return match_names(Counter(each.video for each in samples), videos, id_map, episodes)


def match_names(
    names: Mapping[str, int], videos: Sequence[VideoRow], id_map: Mapping[str, str] | None, episodes: bool = False
) -> VideoMatches:
    """Find the videos of these names, each with the number of questions about it, by `id_map` or by the name itself.

    The names of a library's video are its id, its title, and the last one to three parts of its URI, with and without
    the file ending. `episodes`: if no video has a name, all whose names begin with it match, in order of title.
    """
    mapped = {composed(name): other for name, other in (id_map or {}).items()}
    by_name: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    by_prefix: dict[str, dict[str, VideoRow]] = defaultdict(dict)
    for row in videos:
        for name in _names_of(row):
            by_name[name][row.video_id] = row
            for prefix in _prefixes(name) if episodes else ():
                by_prefix[prefix][row.video_id] = row
    found: dict[str, tuple[str, ...]] = {}
    missing: list[MissingVideo] = []
    ambiguous: set[str] = set()
    for video, questions in names.items():
        name = composed(mapped.get(composed(video), video))
        same = list(by_name.get(_bare(name), {}).values())
        parts = sorted(by_prefix.get(name, {}).values(), key=lambda row: (by_number(row.title), row.video_id))
        if len(same) == 1 or (parts and not same):
            found[video] = tuple(row.video_id for row in same or parts)
        else:
            missing.append(MissingVideo(video, _no_match(name, same), questions))
            ambiguous |= {video} if same else set()
    return VideoMatches(found, tuple(missing), frozenset(ambiguous))


def read_id_map(path: Path) -> dict[str, str]:
    """Read the library's names of videos: a JSON object, such as NExT-QA's `map_vid_vidorID.json`, or CSV.

    The CSV has two columns, the benchmark's name first. Raises `UsageError` for anything else.
    """
    if path.suffix.lower() == ".json":
        names = json_file(path)
        pairs = [list(pair) for pair in names.items()] if isinstance(names, dict) else []
    else:
        pairs = csv_table(path)
    wrong = next((pair for pair in pairs if len(pair) != 2 or not isinstance(pair[1], str | int)), None)
    if wrong is not None or not pairs:
        raise UsageError(
            f"{path} maps no names: got {wrong or 'nothing'}; give a JSON object of the benchmark's video names to "
            "the library's, or a CSV of two such columns"
        )
    names = {str(name): str(other) for name, other in pairs}
    twice = next((name for name, other in pairs if names[str(name)] != str(other)), None)
    if twice is not None:
        raise UsageError(f"{path} maps {twice} to several names; leave one of them")
    return names


def draw_samples(samples: Sequence[Sample], limit: int | None, seed: int) -> tuple[Sample, ...]:
    """Draw at most `limit` samples and keep their order; None keeps all.

    The categories of the first breakdown keep their shares (Sainte-Lague). In each category the videos with the fewest
    drawn samples come first. The draw depends on the seed and the ids alone, so that anyone can repeat it.
    """
    if limit is None or limit >= len(samples):
        return tuple(samples)
    waiting: dict[tuple[str, ...], list[tuple[int, bytes, int]]] = defaultdict(list)
    for number, sample in enumerate(samples):
        drawn = hashlib.sha256(f"{seed} {sample.item_id}".encode()).digest()
        heapq.heappush(waiting[next(iter(sample.groups.values()), ())], (0, drawn, number))
    size = {category: len(held) for category, held in waiting.items()}
    taken = dict.fromkeys(waiting, 0)
    by_video: Counter[str] = Counter()
    numbers = []
    for _ in range(limit):
        category = min(filter(waiting.get, waiting), key=lambda each: ((2 * taken[each] + 1) / size[each], each))
        number = _next(waiting[category], samples, by_video)
        taken[category] += 1
        by_video[samples[number].video] += 1
        numbers.append(number)
    return tuple(samples[number] for number in sorted(numbers))


def _is_in(sample: Sample, subset: Subset) -> bool:
    grouped = all(names & set(sample.groups.get(breakdown, ())) for breakdown, names in subset.only.items())
    return grouped and (subset.ids is None or sample.item_id in subset.ids)


def _check_groups(samples: Sequence[Sample], breakdown: str, names: Collection[str]) -> None:
    known = {each: None for sample in samples for each in sample.groups}
    if breakdown not in known:
        there = f"it is one of {_list_names(known)}" if known else "these questions have no groups"
        raise UsageError(f"got --only {breakdown}=...; {there}")
    groups = sorted({each for sample in samples for each in sample.groups.get(breakdown, ())})
    unknown = [name for name in sorted(names) if name not in groups]
    if unknown:
        raise UsageError(f"got --only {breakdown}={unknown[0]}; {breakdown} is one of {_list_names(groups)}")


def _read_ids(path: Path) -> frozenset[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; give a text file with a question's id on each line") from error
    ids = frozenset(filter(None, map(str.strip, lines)))
    if not ids:
        raise UsageError(f"{path} names no question; give a text file with a question's id on each line")
    return ids


def _list_names(names: Collection[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(list(names)[:MOST_NAMED]) + more


def _next(waiting: list[tuple[int, bytes, int]], samples: Sequence[Sample], by_video: Counter[str]) -> int:
    """Pop the sample whose video has the fewest drawn samples; of several, the one with the lowest hash."""
    while True:
        count, drawn, number = waiting[0]
        # A count in the heap may be older than the last draws from this video; counts only grow.
        now = by_video[samples[number].video]
        if now == count:
            heapq.heappop(waiting)
            return number
        heapq.heapreplace(waiting, (now, drawn, number))


def _names_of(row: VideoRow) -> set[str]:
    parts = [part for part in re.split(r"[/\\]", row.uri) if part]
    ends = ("/".join(parts[-count:]) for count in range(1, URI_PARTS + 1))
    return {row.video_id, *(_bare(composed(name)) for name in (row.title, *ends))}


def _bare(name: str) -> str:
    """Strip a video's file ending from a name."""
    stem, dot, ending = name.rpartition(".")
    return stem if f"{dot}{ending}".lower() in VIDEO_SUFFIXES else name


def _prefixes(name: str) -> Iterator[str]:
    """List the prefixes of a name up to each mark between its words: s05e06, s05e06_seg02, ..."""
    return (name[: mark.start()] for mark in re.finditer(r"[\W_]", name))


def _no_match(name: str, rows: Sequence[VideoRow]) -> str:
    if not rows:
        return f"no video of the library has the name {name}"
    return f"{len(rows)} videos of the library have the name {name}: {', '.join(row.uri for row in rows[:3])}"
