"""Work that waits: the largest sources first, bundles that shrink, chunks bound to a worker, parts taken out again."""

from __future__ import annotations

from kinodex.jobs.ingest.messages import Read
from kinodex.jobs.ingest.work_queue import BUNDLE_BYTES, WorkQueue
from kinodex.pipeline.decoding.readers import Span
from kinodex.pipeline.fetch import FetchedVideo
from kinodex.pipeline.sample import Chunk
from kinodex.pipeline.source import Source


def source(name: str) -> Source:
    return Source(f"/{name}.mp4", name)


def chunk(name: str, index: int | None = None) -> Chunk:
    span = None if index is None else Span(index, index + 1, index, index + 1)
    return Chunk(FetchedVideo(source(name), f"/{name}.mp4", name, 1), span, 9, index or 0)


def all_bundles(queue: WorkQueue, workers: int) -> list[list[str]]:
    bundles = []
    while queue.has_sources:
        bundles.append([each.title for each in queue.next_identify(workers).sources])
    return bundles


def test_the_largest_sources_come_first_in_bundles_that_shrink_at_the_end() -> None:
    sizes = {"small": 1, "large": 30, "unknown": -1, "middle": 20, "large too": 30}
    queue = WorkQueue([source(name) for name in sizes], list(sizes.values()), bundle=1)
    assert [title for (title,) in all_bundles(queue, 1)] == ["unknown", "large", "large too", "middle", "small"]
    assert queue.bytes_total is None
    assert WorkQueue([source("a"), source("b")], [3, 4], 1).bytes_total == 7
    lengths = [len(each) for each in all_bundles(WorkQueue([source(str(n)) for n in range(40)], [1] * 40, bundle=8), 2)]
    assert lengths[0] == 8 and lengths[-1] == 1
    assert lengths == sorted(lengths, reverse=True) and sum(lengths) == 40
    third, whole = BUNDLE_BYTES // 3, 2 * BUNDLE_BYTES
    queue = WorkQueue([source(str(n)) for n in range(5)], [whole, third, third, third, third], bundle=2)
    assert len(all_bundles(queue, 1)[0]) == 1
    assert max(map(len, all_bundles(WorkQueue([source("a")] * 9, [third] * 9, bundle=9), 1))) <= 3
    queue = WorkQueue([source("a"), source("b")], [1, 1], bundle=1)
    queue.identify_again(source("again"))
    assert all_bundles(queue, 1) == [["a"], ["b"], ["again"]]
    assert not queue


def test_chunks_bound_to_a_worker_are_for_it_alone_until_it_is_lost() -> None:
    queue = WorkQueue([], [], bundle=1)
    queue.add(Read((chunk("mine"),), True, only=7))
    queue.add(Read((chunk("any"),), True))
    assert queue.reads == 2 and queue.videos_to_read() == 2
    assert queue.bound_workers([3, 7]) == [7] and queue.bound_workers([3]) == []
    first = queue.next_read()
    assert first is not None and first.chunks[0].video.video_id == "any"
    assert queue.next_read() is None
    queue.release(7)
    freed = queue.next_read()
    assert freed is not None and freed.only is None and queue.reads == 0
