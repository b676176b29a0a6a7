"""The RQ worker process: one context for its life, jobs by id, JSON only."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

from parsyn import config, crash
from parsyn.queue import QUEUE
from parsyn.services.context import Context, open_context

log = logging.getLogger(__name__)
AGAIN_SECONDS = 0.5
_context: Context | None = None


def job_context() -> Context:
    """This process's context, opened at the first use.

    The data directory and settings come from the environment that `parsyn serve` or
    `parsyn jobs` passes on.
    """
    global _context
    if _context is None:
        settings = config.load(data_dir=Path(os.environ["PARSYN_DATA"]))
        _context = open_context(settings)
    return _context


def use_context(context: Context | None) -> None:
    """Set (or forget) the context of this process, where one is open already."""
    global _context
    _context = context


def work(burst: bool = False) -> None:
    """Take jobs until told to stop; with `burst` until the queue is empty."""
    from redis import RedisError
    from rq import SimpleWorker
    from rq.exceptions import StopRequested
    from rq.serializers import JSONSerializer

    told_to_stop = False

    class Worker(SimpleWorker):
        def request_stop(self, signum: Any, frame: Any) -> None:
            nonlocal told_to_stop
            told_to_stop = True
            super().request_stop(signum, frame)

        def perform_job(self, *job: Any) -> bool:
            crash.point("job.before")
            done = bool(super().perform_job(*job))
            crash.point("job.after")
            return done

    logging.getLogger("rq.worker").setLevel(logging.WARNING)
    context = job_context()
    try:
        while True:
            worker = Worker([QUEUE], connection=context.queue.redis, serializer=JSONSerializer)
            try:
                worker.work(burst=burst, logging_level="WARNING")
            except RedisError as error:
                log.warning("Redis went away: %s", error)
            if burst or told_to_stop:
                return
            # RQ's worker gives up when Redis dies at certain moments; this process does not.
            time.sleep(AGAIN_SECONDS)
    except StopRequested:
        log.debug("Told to stop while nothing was done.")
    finally:
        context.close()
        use_context(None)
