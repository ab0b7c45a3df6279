"""Memory of the machine, and the rows of a state's task that follow from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdclake.jobs.apply.pending_changes import MAX_DECODED_BYTES, max_decoded_bytes
from cdclake.jobs.runtime import machine_memory
from cdclake.jobs.runtime.machine_memory import memory_per_core

GIB = 1 << 30


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have this machine be a G.025X; return the file of its container's limit."""
    sizes = {"SC_PHYS_PAGES": GIB >> 10, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(machine_memory, "_CONTAINER_LIMIT", limit)
    monkeypatch.setattr(machine_memory, "_CONTAINER_CPU", tmp_path / "cpu.max")
    return limit


def test_memory_per_core_is_that_of_the_machine(worker: Path) -> None:
    assert memory_per_core() == 2 * GIB
    worker.write_text("max\n")
    assert memory_per_core() == 2 * GIB


def test_memory_per_core_is_that_of_a_smaller_container(worker: Path) -> None:
    worker.write_text(f"{GIB}\n")
    assert memory_per_core() == GIB // 2
    worker.write_text(f"{64 * GIB}\n")
    assert memory_per_core() == 2 * GIB


@pytest.mark.parametrize(
    ("cpu", "cores"),
    [
        ("max 100000\n", 32),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("6400000 100000\n", 32),
    ],
)
def test_memory_per_core_is_by_the_cores_of_a_container(
    worker: Path, monkeypatch: pytest.MonkeyPatch, cpu: str, cores: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 32)
    worker.with_name("cpu.max").write_text(cpu)
    assert memory_per_core() == 4 * GIB // cores


@pytest.mark.parametrize(
    ("memory", "mib"), [(2 * GIB, 128), (4 * GIB, 256), (8 * GIB, 512), (64 * GIB, 512)]
)
def test_max_decoded_bytes_is_a_part_of_a_cores_memory(memory: int, mib: int) -> None:
    assert max_decoded_bytes(memory) == mib << 20


def test_a_task_has_at_most_its_part_of_this_machine() -> None:
    assert max_decoded_bytes(memory_per_core()) == MAX_DECODED_BYTES
