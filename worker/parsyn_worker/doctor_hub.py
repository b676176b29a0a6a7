"""Checks of the way to the hub, one layer after the other."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
import urllib.request
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from websockets.exceptions import WebSocketException

from parsyn import __version__
from parsyn.plugin.check import Finding
from parsyn_worker.config import AgentConfig
from parsyn_worker.patient import SECONDS, Patient
from parsyn_worker.process import running_pid
from parsyn_worker.refusal import explain
from parsyn_worker.session import Direct
from parsyn_worker.standing import read_standing

EXPIRES_SOON_DAYS = 14.0
CLOCK_SECONDS = 30.0
"""Beyond this an agent's log and charts no longer fit the hub's."""


def key(patient: Patient) -> Finding:
    config = patient.settings
    if config.enrolling:
        return Finding("ok", "an enrolment key; the agent gets its own at the first connection")
    return Finding("ok", f"the agent's own, {config.key[:8]}…")


def dns(patient: Patient) -> Finding:
    host, port = _first_hop(patient)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return Finding(
            "error",
            f"{host} has no address ({error})",
            "Check PLATFORM_URL and this machine's name server.",
        )
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    return Finding("ok", f"{host} is {', '.join(addresses[:4])}")


def tcp(patient: Patient) -> Finding:
    host, port = _first_hop(patient)
    where = f"{host}:{port}"
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError as error:
        return Finding(
            "error", f"{where} is not reached ({error})", "Is the hub up? Is a firewall between?"
        )
    if (host, port) != (patient.hub.host, patient.hub.port):
        return Finding("ok", f"the proxy {where} answers")
    return Finding("ok", f"{where} answers")


def _first_hop(patient: Patient) -> tuple[str, int]:
    """(host, port) of the hub, or of the proxy that this machine's settings put before it."""
    hub = patient.hub
    proxy = urllib.request.getproxies().get("https" if hub.secure else "http")
    if not proxy or urllib.request.proxy_bypass(hub.host):
        return hub.host, hub.port
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or hub.host, parts.port or 80


def tls(patient: Patient) -> Finding:
    """The certificate, as this machine judges it."""
    hub = patient.hub
    if not hub.secure:
        return Finding("ok", "not used: the address begins with ws:// or http://")
    if _first_hop(patient) != (hub.host, hub.port):
        return Finding("ok", "through a proxy; HTTP below tells whether it holds")
    try:
        with (
            socket.create_connection((hub.host, hub.port), SECONDS) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=hub.host) as secure,
        ):
            certificate = secure.getpeercert() or {}
            version = secure.version()
    except ssl.SSLCertVerificationError as error:
        return Finding(
            "error", f"the certificate is not good: {error.verify_message}", _cure(error)
        )
    except ssl.SSLError as error:
        advice = "Does the hub speak https at all? If not, begin the address with http://."
        return Finding(
            "error", f"{hub.host}:{hub.port} does not speak TLS ({error.reason})", advice
        )
    except OSError as error:
        return Finding("error", f"{hub.host}:{hub.port} is not reached ({error})", "See TCP.")
    days = (ssl.cert_time_to_seconds(str(certificate["notAfter"])) - time.time()) / 86400
    text = f"{version}, the certificate is good for {days:.0f} days"
    if days < EXPIRES_SOON_DAYS:
        return Finding("warn", text, "Tell the hub's admin to renew it.")
    return Finding("ok", text)


def _cure(error: ssl.SSLCertVerificationError) -> str:
    reason = error.verify_message.lower()
    if "expired" in reason:
        return "The hub's admin must renew it. (Is this machine's clock right?)"
    if "not yet valid" in reason:
        return "Is this machine's clock right?"
    if "hostname" in reason or "ip address" in reason:
        return "Use the name in the certificate in PLATFORM_URL."
    return (
        "If the hub's authority is your own, add its certificate: SSL_CERT_FILE, or the system's."
    )


def http(patient: Patient) -> Finding:
    health, url = patient.health, f"{patient.hub.http}/health"
    if health.error:
        return Finding("error", health.error, "Check PLATFORM_URL and the proxy.")
    if health.body is None:
        return Finding(
            "error", f"{url} answers HTTP {health.status}, but not as a hub", "Check PLATFORM_URL."
        )
    if health.status != 200:
        parts = ("database", "redis", "storage")
        bad = [
            f"{part}: {health.body.get(part)}" for part in parts if health.body.get(part) != "ok"
        ]
        return Finding(
            "warn", f"the hub is not well ({'; '.join(bad)})", "Run `parsyn doctor` there."
        )
    return Finding("ok", f"the hub is well, version {health.body.get('version')}")


def versions(patient: Patient) -> Finding:
    hub = str((patient.health.body or {}).get("version") or "")
    if not hub:
        return Finding("warn", "the hub's version is not known", "See HTTP.")
    if hub == __version__:
        return Finding("ok", f"hub and agent are {hub}")
    return Finding(
        "warn",
        f"the hub is {hub}, this agent {__version__}",
        f"Update: curl -fsSL {patient.hub.http}/install/worker | sh, then restart the agent.",
    )


def clock(patient: Patient) -> Finding:
    """This machine's clock against the hub's `Date`, which has whole seconds."""
    health = patient.health
    try:
        theirs = parsedate_to_datetime(health.date or "").timestamp() + 0.5
    except (ValueError, TypeError):
        return Finding("warn", "the hub's time is not known", "See HTTP.")
    off = (health.asked_at + health.answered_at) / 2 - theirs
    if abs(off) <= CLOCK_SECONDS:
        return Finding("ok", "fits the hub's to a few seconds")
    return Finding(
        "warn",
        f"{_span(abs(off))} {'ahead of' if off > 0 else 'behind'} the hub's",
        "Set it: timedatectl set-ntp true. Work goes on, but times in logs do not fit, and TLS"
        " may fail.",
    )


def _span(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def websocket(patient: Patient) -> Finding:
    """Whether the hub takes the key."""
    config = patient.settings
    if running_pid(config.dir):
        # A second socket with the same key would be turned away.
        standing = read_standing(config.dir)
        if standing and standing.error and standing.phase != "ready":
            return Finding("error", standing.error, "The running agent was told so.")
        return Finding("ok", f"in use by the running agent ({standing and standing.phase})")
    return asyncio.run(_knock(config))


async def _knock(config: AgentConfig) -> Finding:
    """Open the socket and say nothing: the hub judges the key before the hello."""
    try:
        async with Direct(
            config.hub.socket,
            compression=None,
            additional_headers={"Authorization": f"Bearer {config.key}"},
            open_timeout=SECONDS,
        ) as opened:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(opened.recv(), 1.0)
    except (OSError, WebSocketException, EOFError) as error:
        refusal = explain(error, config.hub.socket)
        return Finding("error", refusal.text, "Without it the agent cannot work.")
    return Finding("ok", f"{config.hub.socket} takes the key")
