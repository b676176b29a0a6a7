"""What stands under the processes: a disk that is full, a Redis that dies, a PostgreSQL too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from parsyn.cli.options import EMBEDDED_ADDRESS
from tests.faults.test_processes import until
from tests.faults.yard import Yard
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.timeout(300), pytest.mark.fault_case, pytest.mark.on_demand]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.close()


# --- the agent's disk -------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("A small disk can be mounted by root only.")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all that is left."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 65536):
                pass
        except OSError:
            pass
    return path


def test_a_full_disk_gives_the_task_to_another_agent(yard: Yard, small_disk: Path) -> None:
    ant, bee = yard.rig("ant", CACHE_DIR=str(small_disk)), yard.rig("bee")
    ant.start()
    job = yard.train(max_steps=40)
    yard.at_step(job, 7)
    filler = fill(small_disk)
    bee.start()
    done = yard.until(job, lambda row: row["attempt"] == 2 and row["status"] == "running")
    assert done["worker_name"] == "bee"
    assert any("disk is full" in cause for cause in yard.causes(job))
    filler.unlink()
    yard.ended(job)
    yard.settle()
    assert ant.process is not None
    assert ant.process.poll() is None


def test_a_disk_that_is_full_for_a_moment_costs_nothing(yard: Yard, small_disk: Path) -> None:
    """Between checkpoints only the spool writes, and it waits."""
    yard.rig("ant", CACHE_DIR=str(small_disk)).start()
    job = yard.train(max_steps=24, save_steps=24)
    yard.at_step(job, 3)
    filler = fill(small_disk)
    until(lambda: "Free space" in yard.rigs[0].log.read_text(), "the spool found room")
    filler.unlink()
    assert yard.ended(job)["attempt"] == 1
    yard.settle()


# --- Redis ------------------------------------------------------------------------------------


def valkey(yard: Yard) -> psutil.Process:
    for child in psutil.Process(yard.hub.process.pid).children():
        if child.name().startswith("valkey"):
            return child
    raise AssertionError("the hub has no Valkey")


def flush(yard: Yard) -> None:
    address = (yard.folder / "data" / EMBEDDED_ADDRESS).read_text()
    with redis.Redis.from_url(address) as client:
        client.flushall()


@pytest.mark.parametrize("how", ["flushed", "killed"])
def test_redis_is(yard: Yard, how: str) -> None:
    yard.rig().start()
    job = yard.train(max_steps=25)
    for step in (2, 8, 14, 20):
        yard.at_step(job, step)
        if how == "flushed":
            flush(yard)
        elif step == 8:
            valkey(yard).kill()
    assert yard.ended(job)["attempt"] == 1
    yard.settle()


# --- PostgreSQL -------------------------------------------------------------------------------


@pytest.mark.postgres
def test_postgres_is_restarted(postgres: PostgresServer, tmp_path: Path) -> None:
    yard = Yard(tmp_path, postgres.url(postgres.create_database(name=f"yard_{os.getpid()}")))
    try:
        yard.start()
        yard.rig().start()
        job = yard.train(max_steps=60)
        for step in (5, 20):
            yard.at_step(job, step)
            postgres.restart()
        assert yard.ended(job)["attempt"] == 1
        yard.settle()
    finally:
        yard.close()
