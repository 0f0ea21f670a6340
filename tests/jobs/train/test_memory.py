"""The memory of training by formula, against the tensors that are there after an update."""

from __future__ import annotations

import pytest

from kinodex.jobs.train.rollouts import cache_bytes, checkpointed_bytes, static_memory


@pytest.mark.parametrize(
    ("whole", "trained", "gigabytes"),
    [(3_085_938_688, 3_085_938_688, 61.7), (3_085_938_688, 29_933_568, 6.6), (7_615_616_512, 7_615_616_512, 152.3)],
)
def test_the_memory_of_models_as_the_paper_trains_them(whole, trained, gigabytes):
    memory = static_memory(whole, trained, reference=True, bf16=True)
    assert memory.total / 1e9 == pytest.approx(gigabytes, rel=0.01)


def test_without_a_divergence_there_is_no_second_model():
    with_it, without = (static_memory(1000, 1000, reference=each, bf16=True) for each in (True, False))
    assert with_it.total - without.total == with_it.reference == 4000


def test_a_text_costs_what_its_layers_keep():
    assert checkpointed_bytes(1000, 2048, 36) == 2 * 1000 * 2048 * 36
    assert cache_bytes(1000, 36, 2 * 128) == 4 * 1000 * 36 * 256
