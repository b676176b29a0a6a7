"""RQ entry point: carry out one row of the outbox."""

from __future__ import annotations

from parsyn.jobs.process import job_context
from parsyn.services import outbox


def deliver(row_id: int) -> None:
    """A failure is noted in the row; the reconciler of the hub nudges it again when it is due."""
    context = job_context()
    with context.database.connection():
        outbox.deliver(context, row_id)
