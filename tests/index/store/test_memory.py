"""Free memory, from files as Linux and containers have them, and without them."""

from __future__ import annotations

from pathlib import Path

from kinodex.index.store.database import free_memory_bytes, index_cache_bytes

GIB = 2**30


def test_what_is_available_counts_and_no_more_than_the_container_has_left(tmp_path: Path) -> None:
    meminfo, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    meminfo.write_text(f"MemTotal: 99 kB\nMemAvailable:   {8 * GIB // 1024} kB\n")
    assert free_memory_bytes(meminfo, cgroup) == 8 * GIB
    cgroup.mkdir()
    (cgroup / "memory.max").write_text("max\n")
    (cgroup / "memory.stat").write_text(f"anon {GIB}\nfile {5 * GIB}\n")
    assert free_memory_bytes(meminfo, cgroup) == 8 * GIB
    (cgroup / "memory.max").write_text(f"{4 * GIB}\n")
    assert free_memory_bytes(meminfo, cgroup) == 3 * GIB
    (cgroup / "memory.max").write_text(f"{GIB // 2}\n")
    assert free_memory_bytes(meminfo, cgroup) == 0


def test_where_the_system_does_not_say_half_of_all_is_taken(tmp_path: Path) -> None:
    assert 0 < free_memory_bytes(tmp_path / "none", tmp_path / "none") < 2**50


def test_indexes_have_half_of_what_is_free_and_no_less_than_lance_gives_them() -> None:
    assert index_cache_bytes(64 * GIB) == 32 * GIB
    assert index_cache_bytes(GIB) == 6 * GIB
