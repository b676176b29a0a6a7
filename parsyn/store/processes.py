"""The hub processes that share this database."""

from __future__ import annotations

import peewee

from parsyn.store.base import Table


class HubProcess(Table):
    """`name` is how `Worker.connection` begins; `place` the address that it is bound to.

    `beat` grows while the process lives. Others compare it with what they saw before, by their own
    clocks: those of two machines need not agree.
    """

    name = peewee.CharField(unique=True)
    place = peewee.CharField()
    version = peewee.CharField()
    beat = peewee.IntegerField(default=0)

    class Meta:
        table_name = "hub_processes"


TABLES = (HubProcess,)
