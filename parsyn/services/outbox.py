"""Effects that must happen after a commit, at least once, whatever dies in between."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from parsyn import crash
from parsyn.clock import now
from parsyn.services.context import Context
from parsyn.store.outbox import Outbox

log = logging.getLogger(__name__)
FIRST_RETRY = 5.0
LONGEST_RETRY = 3600.0
KEPT_SECONDS = 7 * 86_400
DELETE_OBJECTS = "objects:delete"
FORGET_METRICS = "metrics:forget"


def hook(context: Context, name: str, event: dict[str, Any]) -> None:
    """Tell the plugins that implement an event hook, each in its own row."""
    for implementation in getattr(context.plugins.pluggy.hook, name).get_hookimpls():
        _add(context, f"hook:{name}", {"plugin": implementation.plugin_name, "event": event})


def delete_objects(context: Context, keys: Iterable[str]) -> None:
    """Remove bytes that no row names any more."""
    wanted = sorted(set(keys))
    if wanted:
        _add(context, DELETE_OBJECTS, {"keys": wanted})


def forget_metrics(context: Context, job_id: int) -> None:
    """Remove the metrics, log and samples of a job that was deleted."""
    _add(context, FORGET_METRICS, {"job_id": job_id})


def _add(context: Context, kind: str, payload: dict[str, Any]) -> None:
    row = Outbox.create(kind=kind, payload=payload, next_at=now() + FIRST_RETRY)
    crash.point("outbox.write")
    _nudge(context, row)


def _nudge(context: Context, row: Outbox) -> None:
    context.enqueue("outbox.deliver", row.id, key=_key(row))


def _key(row: Outbox) -> str:
    """Another one for each nudge: Redis remembers a job whose worker was killed for long."""
    return f"outbox-{row.id}-{round(row.next_at * 1000)}"


def deliver(context: Context, row_id: int) -> bool:
    """Carry out one row unless that was done; False when it failed and will be tried again.

    Called in an RQ job, outside a transaction. An effect may be brought about twice, never not at
    all; `event_id` tells a hook that it is the same one.
    """
    row = Outbox.get_or_none(Outbox.id == row_id)
    if row is None or row.done_at is not None or not _claim(context, row):
        return True
    crash.point("outbox.before")
    try:
        _carry_out(context, row)
    except Exception:
        log.exception("outbox row %d (%s) failed; it will be tried again", row.id, row.kind)
        wait = min(LONGEST_RETRY, FIRST_RETRY * 2**row.attempts)
        Outbox.update(attempts=Outbox.attempts + 1, next_at=now() + wait).where(
            Outbox.id == row.id
        ).execute()
        return False
    crash.point("outbox.effect")
    Outbox.update(done_at=now(), attempts=Outbox.attempts + 1).where(Outbox.id == row.id).execute()
    crash.point("outbox.after")
    return True


def _claim(context: Context, row: Outbox) -> bool:
    """One at a time delivers a row; False where another was quicker."""
    until = now() + context.settings.number("jobs.delivery_seconds")
    return bool(
        Outbox.update(next_at=until)
        .where((Outbox.id == row.id) & Outbox.done_at.is_null() & (Outbox.next_at == row.next_at))
        .execute()
    )


def _carry_out(context: Context, row: Outbox) -> None:
    if row.kind == DELETE_OBJECTS:
        for key in row.payload["keys"]:
            context.storage.delete(key)
        return
    if row.kind == FORGET_METRICS:
        context.metrics.forget_job(row.payload["job_id"])
        return
    name = row.kind.removeprefix("hook:")
    plugin = context.plugins.pluggy.get_plugin(row.payload["plugin"])
    if plugin is not None:
        caller = context.plugins.pluggy.subset_hook_caller(
            name, [p for p in context.plugins.pluggy.get_plugins() if p is not plugin]
        )
        caller(event={**row.payload["event"], "event_id": row.id})


def redeliver(context: Context, limit: int = 100) -> int:
    """Nudge what is due and was not delivered, and forget what was delivered long ago."""
    due = (
        Outbox.select()
        .where(Outbox.done_at.is_null() & (Outbox.next_at <= now()))
        .order_by(Outbox.next_at)
        .limit(limit)
    )
    rows = [row for row in due if not context.queue.waits(_key(row))]
    for row in rows:
        row.next_at = now() + FIRST_RETRY * 2 ** min(row.attempts, 10)
        Outbox.update(next_at=row.next_at).where(Outbox.id == row.id).execute()
        _nudge(context, row)
    Outbox.delete().where(Outbox.done_at < now() - KEPT_SECONDS).execute()
    return len(rows)
