"""Short-lived rights to single objects, asked for over the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

from parsyn.wire.worker import Ticket, WantTicket

TICKET_SECONDS = 30.0


class TicketRefused(Exception):
    """The hub will not give this right; the text is its reason."""


class Tickets:
    """Matches answers to questions. `ask` sends one, or raises ConnectionError."""

    def __init__(self, ask: Callable[[WantTicket], Awaitable[None]]) -> None:
        self._ask = ask
        self._open: dict[str, asyncio.Future[Ticket]] = {}

    async def get(self, want: WantTicket) -> Ticket:
        """The ticket for `want` (whose request_id is filled in here).

        Waits for a connection. Raises TicketRefused, ConnectionError, TimeoutError.
        """
        want = want.model_copy(update={"request_id": uuid4().hex})
        await self._ask(want)
        future: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._open[want.request_id] = future
        try:
            ticket = await asyncio.wait_for(future, TICKET_SECONDS)
        finally:
            self._open.pop(want.request_id, None)
        if ticket.error or not ticket.url:
            raise TicketRefused(ticket.error or "the hub sent no address")
        return ticket

    def answer(self, ticket: Ticket) -> None:
        future = self._open.get(ticket.request_id)
        if future and not future.done():
            future.set_result(ticket)

    def drop(self) -> None:
        """The connection is gone; who waits must ask again."""
        for future in self._open.values():
            if not future.done():
                future.set_exception(ConnectionError("the connection to the hub broke"))
