"""Named points at which a process can be made to die, to show that nothing is lost there.

`PARSYN_CRASH_AT=point:n` ends the process hard when it passes the point for the n-th time: no
`finally`, no goodbye. Without the variable a passage is a call of an empty function.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Mapping

VARIABLE = "PARSYN_CRASH_AT"
STATUS = 86
"""The exit status of a process that died at a point."""

POINTS: Mapping[str, str] = {
    # The hub, and whatever else writes to its database.
    "commit.before": "A transaction of the core database is complete and not committed.",
    "commit.after": "It is committed; nothing was published or enqueued yet.",
    "metrics.before": "A batch of metrics and log lines is written and not committed.",
    "metrics.after": "It is committed; no agent was told.",
    "object.before": "A task's bytes arrive; nothing of them is stored.",
    "object.stored": "They are stored, and no row says so.",
    "object.recorded": "They are recorded; the agent was not told.",
    "part.stored": "A part of an upload is stored, and no row says so.",
    "part.recorded": "It is recorded; the sender was not told.",
    "join.before": "An upload is to be joined from its parts.",
    "join.after": "It is joined, and no row says so.",
    "manifest.checkpoint": "A checkpoint's manifest was applied and not committed.",
    "manifest.result": "A result was applied and not committed.",
    "outbox.write": "A row of the outbox is written and not committed.",
    "ack.before": "Acknowledgements are about to be sent to an agent.",
    "ack.after": "They were sent.",
    # The RQ process.
    "job.before": "A job was taken from the queue.",
    "job.after": "It was carried out; the queue does not know.",
    "outbox.before": "A row of the outbox is about to take effect.",
    "outbox.effect": "It has taken effect, and the row does not say so.",
    "outbox.after": "The row says so.",
    # The agent.
    "key.before": "The agent's own key came and is not on disk.",
    "key.after": "It is on disk.",
    "offer.noted": "An offer is taken on and noted; the hub was not told.",
    "offer.accepted": "The hub was told.",
    "handover.before": "A checkpoint or result is ready and not noted for delivery.",
    "handover.after": "It is noted.",
    "upload.before": "A file of a task is about to be stored.",
    "upload.after": "It is stored; its manifest is not spooled.",
    "spool.before": "A message is in the spool and not committed.",
    "spool.after": "It is committed and not sent.",
    "spool.heard": "The hub has acknowledged messages that are still in the spool.",
    "spool.forgotten": "They are out of the spool.",
    # The child that runs a task.
    "checkpoint.before": "A checkpoint is written and not handed over.",
    "checkpoint.after": "It was moved to the agent's folder; the agent was not told.",
}


def _pass(point: str) -> None:
    """Nothing is to happen here."""


def armed(text: str) -> Callable[[str], None]:
    """What a passage does by `point:n`. Exits with a sentence where there is no such point."""
    name, _, count = text.partition(":")
    if name not in POINTS or not count.isdecimal() or int(count) < 1:
        sys.exit(f"{VARIABLE} must be POINT:N with one of {', '.join(POINTS)}, not {text!r}.")
    passages = itertools.count(1)

    def maybe_die(point: str) -> None:
        if point == name and next(passages) == int(count):
            os.write(2, f"crashed at {text}, as was asked\n".encode())
            os._exit(STATUS)

    return maybe_die


point: Callable[[str], None] = armed(os.environ[VARIABLE]) if VARIABLE in os.environ else _pass
