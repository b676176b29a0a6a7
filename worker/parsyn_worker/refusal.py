"""Why a hub turned the agent away, in words, and how long to wait before asking again."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
)

from parsyn.wire.worker import PROTOCOL, CloseCode

REFUSED_DELAY = 300.0
"""Seconds between tries when only a person can change the answer."""


@dataclass(frozen=True)
class Refusal:
    """`text` says what and what to do; `final` when trying again soon cannot help, `disowned`
    when the hub does not take this agent for its own any more, `hub_down` when its machine
    answers and says that nobody is there: such a hub gives no task to another agent."""

    text: str
    final: bool
    disowned: bool = False
    hub_down: bool = False


_CLOSED: dict[int, tuple[str, bool]] = {
    CloseCode.BAD_CREDENTIAL: (
        "The hub does not know this key. Run `parsyn init --force` with a new one.",
        True,
    ),
    CloseCode.REVOKED: (
        "The hub has revoked this agent's key. Run `parsyn init --force` with a new one.",
        True,
    ),
    CloseCode.KEY_EXHAUSTED: (
        "The enrolment key is used up, expired or revoked. Ask for a new one.",
        True,
    ),
    CloseCode.PROTOCOL_TOO_OLD: (
        f"This agent speaks protocol {PROTOCOL}, which the hub no longer does. Update the agent.",
        True,
    ),
    CloseCode.PROTOCOL_TOO_NEW: (
        f"This agent speaks protocol {PROTOCOL}, which the hub does not yet. Update the hub.",
        True,
    ),
    CloseCode.BAD_MESSAGE: (
        "The hub did not understand this agent. Update the older of the two.",
        True,
    ),
    CloseCode.ALREADY_CONNECTED: (
        "Another agent is connected with this key. Give each agent a key of its own.",
        False,
    ),
    CloseCode.SILENT: ("The hub had not heard from this agent for too long.", False),
    CloseCode.SERVICE_RESTART: ("The hub is restarting.", False),
    CloseCode.GOING_AWAY: ("The hub is going away.", False),
}

_ANSWERED: dict[int, int] = {
    401: CloseCode.BAD_CREDENTIAL,
    403: CloseCode.REVOKED,
    409: CloseCode.ALREADY_CONNECTED,
    410: CloseCode.KEY_EXHAUSTED,
}


def explain(error: BaseException, address: str) -> Refusal:
    """Put whatever ended or prevented a connection into words."""
    if isinstance(error, ConnectionClosed):
        return _closed(error)
    if isinstance(error, InvalidStatus):
        where = error.response.headers.get("Location")
        return _answered(error.response.status_code, address, where)
    if isinstance(error, InvalidMessage | InvalidHandshake):
        return Refusal(f"{address} does not answer like a hub. Check PLATFORM_URL.", False)
    if isinstance(error, TimeoutError):
        return Refusal(f"{address} does not answer in time.", False)
    refused = f"[Errno {errno.ECONNREFUSED}]" in str(error)
    return Refusal(f"{address} cannot be reached: {error}.", False, hub_down=refused)


def _closed(error: ConnectionClosed) -> Refusal:
    if error.rcvd is None:
        return Refusal("The connection to the hub broke.", False)
    text, final = _CLOSED.get(
        error.rcvd.code, (f"The hub closed the connection (code {error.rcvd.code}).", False)
    )
    reason = error.rcvd.reason.strip()
    disowned = error.rcvd.code in (CloseCode.REVOKED, CloseCode.BAD_CREDENTIAL)
    return Refusal(f"{text} The hub says: {reason}" if reason else text, final, disowned)


def _answered(status: int, address: str, where: str | None) -> Refusal:
    if status in _ANSWERED:
        return Refusal(*_CLOSED[_ANSWERED[status]])
    if where and 300 <= status < 400:
        return Refusal(
            f"{address} sends on to {where[:200]}. If the hub is there, set PLATFORM_URL to it.",
            False,
        )
    if status in (404, 200, 301, 302, 307, 308, 405, 426):
        return Refusal(f"There is no hub at {address} (HTTP {status}). Check PLATFORM_URL.", False)
    return Refusal(f"{address} answers HTTP {status}.", False, hub_down=status in (502, 503, 504))
