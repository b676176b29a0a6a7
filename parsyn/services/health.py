"""Whether each part that the hub stands on answers."""

from __future__ import annotations

from parsyn.errors import ParsynError
from parsyn.services.context import Context
from parsyn.store.workers import Worker
from parsyn.wire.states import WorkerStatus

OK = "ok"


def database(context: Context) -> str:
    """`ok`, or a sentence that says what is wrong."""
    try:
        context.database.check()
    except ParsynError as error:
        return error.detail
    except Exception as error:
        return f"A query failed: {type(error).__name__}."
    return OK


def redis(context: Context) -> str:
    """`ok`, or a sentence that says what is wrong."""
    try:
        context.queue.check()
    except Exception as error:
        return f"Redis does not answer ({type(error).__name__})."
    return OK


def storage(context: Context) -> str:
    """`ok`, or a sentence that says what is wrong."""
    try:
        context.storage.check()
    except ParsynError as error:
        return error.detail
    except Exception as error:
        return f"The storage failed: {type(error).__name__}."
    return OK


def workers_online(context: Context) -> int:
    """Workers that are connected, as far as the database knows; 0 where it does not answer."""
    online = (Worker.status != WorkerStatus.OFFLINE) & Worker.deleted_at.is_null()
    try:
        with context.database.connection():
            return int(Worker.select().where(online).count())
    except Exception:
        # `database` says it in words.
        return 0
