"""The whole life of jobs and tasks against a model, in any order that luck brings."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from parsyn import clock, config
from parsyn.errors import ParsynError
from parsyn.services import leases, removal, scheduling, tasks
from parsyn.services.context import open_context
from parsyn.services.results import Outcome
from parsyn.store.jobs import Job, JobEvent, Task
from parsyn.store.migrate import migrate
from parsyn.store.models import Model
from parsyn.store.workers import Worker
from parsyn.wire.states import JOB_TERMINAL, JOB_TRANSITIONS, JobStatus, TaskStatus
from parsyn.wire.worker import TaskKey
from tests.services.job_world import World

MEMORY = Path("/dev/shm")
NOWHERE = "redis://127.0.0.1:1"


class TaskMachine(RuleBasedStateMachine):
    """Agents may repeat, contradict, come late and go at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        data = Path(self.folder.name) / "data"
        self.context = open_context(config.load(data_dir=data, env={}), NOWHERE)
        # Nobody listens here, and waiting for a dead Redis would be all that is measured.
        self.context.bus.publish = lambda *_: None  # type: ignore[method-assign]
        self.context.queue.enqueue = lambda *_, **__: True  # type: ignore[method-assign]
        migrate(self.context.database)
        self.world = World(self.context)
        self.ahead = 0.0
        self.jobs: list[int] = []
        self.workers: dict[int, str] = {}
        self.attempts: list[tuple[int, TaskKey]] = []
        self.applied: dict[int, int] = {}

    def teardown(self) -> None:
        clock._offset -= self.ahead
        self.context.close()
        self.folder.cleanup()

    # --- what people do -----------------------------------------------------------------------

    @rule()
    def start(self) -> None:
        if len(self.jobs) < 4:
            self.jobs.append(self.world.start())

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        self._maybe(lambda: self.world.cancel(data.draw(st.sampled_from(self.jobs))))

    @rule()
    def add_worker(self) -> None:
        if len(self.workers) < 3:
            worker_id, key = self.world.worker(f"rig-{len(self.workers)}")
            self.workers[worker_id] = key

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def remove_worker(self, data: Any) -> None:
        worker_id = data.draw(st.sampled_from(sorted(self.workers)))
        self.world.write(removal.remove, self.context, self.world.who, worker_id)
        del self.workers[worker_id]

    # --- what agents do -----------------------------------------------------------------------

    @rule()
    def dispatch(self) -> None:
        self.world.dispatch()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), takes=st.booleans())
    def answer(self, data: Any, takes: bool) -> None:
        worker_id = data.draw(st.sampled_from(sorted(self.workers)))
        with self.context.database.connection():
            offered = Task.get_or_none(
                (Task.worker == worker_id) & (Task.status == TaskStatus.OFFERED)
            )
        if offered is None:
            return
        key = TaskKey(task_id=offered.id, attempt=offered.attempt)
        if takes:
            assert self.world.write(tasks.accept, self.context, worker_id, key) is not None
            self.attempts.append((worker_id, key))
        else:
            self.world.write(tasks.refuse, self.context, worker_id, key, "No.")

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), step=st.integers(1, 9))
    def checkpoint(self, data: Any, step: int) -> None:
        worker_id, key = data.draw(st.sampled_from(self.attempts))
        self._maybe(lambda: self.world.checkpoint(worker_id, key, step), Exception)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), end=st.sampled_from(["completed", "internal", "diverged", "cancelled"]))
    def result(self, data: Any, end: str) -> None:
        """Of any attempt there ever was, however stale."""
        worker_id, key = data.draw(st.sampled_from(self.attempts))
        if end == "completed":
            try:
                outcome = self.world.complete(worker_id, key)
            except Exception:
                # The object of an earlier answer is there already; it was said before.
                return
        elif end == "cancelled":
            outcome = self.world.result(worker_id, key, outcome="cancelled")
        else:
            outcome = self.world.fail(worker_id, key, end)
        if outcome is Outcome.APPLIED and end == "completed":
            self.applied[key.task_id] = self.applied.get(key.task_id, 0) + 1

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def come_back(self, data: Any) -> None:
        worker_id = data.draw(st.sampled_from(sorted(self.workers)))
        held = [key for owner, key in self.attempts if owner == worker_id]
        self.world.arrive(self.workers[worker_id], *held[-1:])

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def heartbeat(self, data: Any) -> None:
        self.world.hear(data.draw(st.sampled_from(sorted(self.workers))))

    @rule(seconds=st.sampled_from([5.0, 11.0, 95.0, 160.0]))
    def time_passes(self, seconds: float) -> None:
        clock._offset += seconds
        self.ahead += seconds
        self.world.write(scheduling.expire_offers, self.context, clock.now())
        self.world.write(leases.expire, self.context, clock.now())

    def _maybe(self, act: Any, allowed: type[Exception] = ParsynError) -> None:
        with suppress(allowed):
            act()

    # --- what always holds --------------------------------------------------------------------

    @invariant()
    def job_and_task_agree(self) -> None:
        with self.context.database.connection():
            for task in Task.select(Task, Job).join(Job):
                offered = task.status == TaskStatus.OFFERED
                assert task.job.status == (JobStatus.QUEUED if offered else task.status)
                holds = task.status in (TaskStatus.OFFERED, TaskStatus.RUNNING)
                assert not holds or task.worker_id is not None
                assert (task.job.finished_at is not None) == (task.job.status in JOB_TERMINAL)

    @invariant()
    def one_task_a_worker(self) -> None:
        with self.context.database.connection():
            for worker in Worker.select().where(Worker.deleted_at.is_null()):
                assert len(tasks.of_worker(worker.id)) <= 1

    @invariant()
    def one_result_a_job(self) -> None:
        assert all(count == 1 for count in self.applied.values())
        with self.context.database.connection():
            made = Model.select().where(Model.source == "training").count()
            completed = Job.select().where(Job.status == JobStatus.COMPLETED).count()
        assert made == completed == len(self.applied)

    @invariant()
    def the_timeline_is_a_walk(self) -> None:
        with self.context.database.connection():
            for job_id in self.jobs:
                rows = JobEvent.select().where(JobEvent.job == job_id).order_by(JobEvent.id)
                walk = [row.status for row in rows if row.status in set(JobStatus)]
                for before, after in pairwise(walk):
                    assert before == after or after in JOB_TRANSITIONS[JobStatus(before)]
                assert walk[-1] == Job.get_by_id(job_id).status, "a step is missing"
                assert all(row.cause for row in rows), "a step has no cause"


TaskMachine.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestTaskMachine = TaskMachine.TestCase
