"""Every table of the core database, in an order in which they can be created."""

from __future__ import annotations

from parsyn.store import (
    audit,
    conversations,
    datasets,
    jobs,
    models,
    outbox,
    processes,
    projects,
    uploads,
    users,
    workers,
)
from parsyn.store.base import Table

TABLES: tuple[type[Table], ...] = (
    *users.TABLES,
    *projects.TABLES,
    *uploads.TABLES,
    *datasets.TABLES,
    *models.TABLES,
    *workers.TABLES,
    *jobs.TABLES,
    *conversations.TABLES,
    *outbox.TABLES,
    *audit.TABLES,
    *processes.TABLES,
)
