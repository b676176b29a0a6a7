"""RQ behind one function: enqueue by dotted name with ids. The database stays the record."""

from __future__ import annotations

import logging
from typing import Any

import redis
from rq import Queue
from rq.serializers import JSONSerializer

log = logging.getLogger(__name__)
QUEUE = "parsyn"


class JobQueue:
    """Nudges RQ workers. A lost nudge is found again by the reconciler from the database."""

    def __init__(self, redis_url: str | None, timeout: int) -> None:
        """Without an address nothing is nudged; the hub's next start finds the work."""
        self.connected = redis_url is not None
        self.redis = redis.Redis.from_url(
            redis_url or "redis://127.0.0.1:0",
            socket_timeout=5,
            socket_connect_timeout=2,
            health_check_interval=30,
        )
        self.rq = Queue(
            QUEUE, connection=self.redis, serializer=JSONSerializer, default_timeout=timeout
        )

    def enqueue(self, function: str, *ids: Any, key: str | None = None) -> bool:
        """Ask for `function` (dotted name below parsyn.jobs) with JSON arguments.

        With a `key`, one that waits or runs already counts for this one too. Returns False when
        Redis does not answer, which is no error here: see the class.
        """
        if not self.connected:
            return False
        try:
            self.rq.enqueue(
                f"parsyn.jobs.{function}",
                args=ids,
                job_id=key,
                result_ttl=0,
                failure_ttl=86_400,
                unique=key is not None,
            )
        except redis.RedisError as error:
            log.warning("Redis did not take %s%s: %s", function, ids, error)
            return False
        except Exception as error:
            if type(error).__name__ == "DuplicateJobError":
                return True
            raise
        return True

    def waits(self, key: str) -> bool:
        """Whether the job of that key is still to be taken; True when Redis does not answer."""
        try:
            job = self.rq.fetch_job(key)
            return job is not None and self.rq.get_job_position(job) is not None
        except redis.RedisError:
            return True

    def check(self) -> None:
        """Raise redis.RedisError when Redis does not answer."""
        self.redis.ping()

    def close(self) -> None:
        self.redis.close()
