"""Small checks of what can be wrong on an agent's machine, from its settings to its device."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from parsyn import __version__
from parsyn.errors import ParsynError
from parsyn.plugin.check import Check, Finding
from parsyn_worker import probe
from parsyn_worker.config import AgentConfig, load_config
from parsyn_worker.process import running_pid
from parsyn_worker.refusal import explain
from parsyn_worker.standing import read_standing

SECONDS = 10.0
LITTLE_DISK, LITTLE_MEMORY = 10 << 30, 4 << 30


@dataclass(frozen=True)
class AgentCheck:
    """One thing that can be wrong; `run` looks and changes nothing."""

    title: str
    run: Callable[[AgentConfig], Finding]


def run_doctor(folder: Path) -> list[dict[str, Any]]:
    """Every check as {"title", "level": "ok"|"warn"|"error", "found", "advice"}."""
    try:
        config = load_config(folder)
    except ParsynError as error:
        return [_row("Configuration", Finding("error", error.detail, "Run `parsyn init`."))]
    rows = [_row("Configuration", Finding("ok", f"{folder} and the environment are complete"))]
    checks = (*CHECKS, *_of_plugins())
    return rows + [_row(check.title, _run(check, config)) for check in checks]


def _of_plugins() -> list[AgentCheck]:
    """The checks that plugins registered, after our own."""
    from parsyn.plugin.manager import Plugins

    offered = Plugins().pluggy.hook.register_checks()
    return [
        AgentCheck(cls.title, partial(_run_plugins_check, cls))
        for classes in offered
        for cls in classes
    ]


def _run_plugins_check(cls: type[Check], config: AgentConfig) -> Finding:
    return cls().run()


def _row(title: str, finding: Finding) -> dict[str, Any]:
    return {
        "title": title,
        "level": finding.level,
        "found": finding.found,
        "advice": finding.advice,
    }


def _run(check: AgentCheck, config: AgentConfig) -> Finding:
    try:
        return check.run(config)
    except Exception as error:  # a broken check must not hide the others
        return Finding("error", f"The check itself failed: {error}", "Look at the agent's log.")


def _key(config: AgentConfig) -> Finding:
    if config.enrolling:
        return Finding("ok", "an enrolment key; the agent gets its own at the first connection")
    return Finding("ok", f"the agent's own key {config.key[:8]}…")


def _dns(config: AgentConfig) -> Finding:
    try:
        found = socket.getaddrinfo(config.hub.host, config.hub.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return Finding(
            "error",
            f"{config.hub.host} has no address ({error})",
            "Check PLATFORM_URL and this machine's name server.",
        )
    return Finding("ok", f"{config.hub.host} is {found[0][4][0]}")


def _tcp(config: AgentConfig) -> Finding:
    where = f"{config.hub.host}:{config.hub.port}"
    try:
        socket.create_connection((config.hub.host, config.hub.port), SECONDS).close()
    except OSError as error:
        return Finding(
            "error", f"{where} is not reached ({error})", "Is the hub up? Is a firewall between?"
        )
    return Finding("ok", f"{where} answers")


def _http(config: AgentConfig) -> Finding:
    url = f"{config.hub.http}/health"
    try:
        response = httpx.get(url, timeout=SECONDS)
        health = response.json()
    except httpx.HTTPError as error:
        return Finding("error", f"{url} failed ({error})", "Check PLATFORM_URL and the proxy.")
    except ValueError:
        return Finding("error", f"{url} is not a hub's answer", "Check PLATFORM_URL.")
    version = health.get("version")
    if response.status_code != 200 or "status" not in health:
        return Finding(
            "warn", f"{url} answers HTTP {response.status_code}", "Look at the hub's own doctor."
        )
    if version != __version__:
        return Finding(
            "warn",
            f"the hub is version {version}, this agent {__version__}",
            "Update the older of the two when convenient.",
        )
    return Finding("ok", f"the hub is well, version {version}")


def _websocket(config: AgentConfig) -> Finding:
    pid = running_pid(config.dir)
    if pid:
        # A second socket with the same key would throw the running agent out.
        standing = read_standing(config.dir)
        if standing and standing.phase == "refused":
            return Finding("error", standing.error or "the hub refuses this agent", None)
        return Finding("ok", f"in use by the running agent ({standing and standing.phase})")
    return asyncio.run(_knock(config))


async def _knock(config: AgentConfig) -> Finding:
    """Open the socket and say nothing: the hub judges the key before the hello."""
    try:
        async with connect(
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


def _disk(config: AgentConfig) -> Finding:
    config.cache_dir.mkdir(parents=True, exist_ok=True)
    free = psutil.disk_usage(str(config.cache_dir)).free
    text = f"{free / 2**30:.1f} GiB free for {config.cache_dir}"
    if free < LITTLE_DISK:
        return Finding("warn", text, "Free space, or point CACHE_DIR at a larger disk.")
    return Finding("ok", text)


def _memory(config: AgentConfig) -> Finding:
    memory = psutil.virtual_memory()
    text = f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB available"
    if memory.available < LITTLE_MEMORY:
        return Finding("warn", text, "Close other programs, or expect small models only.")
    return Finding("ok", text)


def _device(config: AgentConfig) -> Finding:
    device = config.device or probe.default_device()
    facts = probe.ask_torch(device)
    if facts.error:
        advice = "Check the driver with `nvidia-smi`, or set GPU_DEVICE=cpu."
        return Finding("error", f"{device}: {facts.error}", advice)
    if not facts.device_ok:
        return Finding("error", f"{device} multiplies wrongly in bf16", "Replace the device.")
    found = f"torch {facts.torch} multiplies in bf16 on {device}"
    if not facts.bf16:
        return Finding("warn", f"{found}, but slowly", "Training uses fp32 (or fp16) here.")
    return Finding("ok", found)


def _plugins(config: AgentConfig) -> Finding:
    from parsyn.plugin.manager import Plugins

    plugins = Plugins()
    if plugins.failed:
        first = ", ".join(f"{name} ({error})" for name, error in sorted(plugins.failed.items()))
        return Finding("warn", f"plugins that do not load: {first}", "Reinstall or remove them.")
    return Finding("ok", f"trainers: {', '.join(sorted(plugins.trainers)) or 'none'}")


CHECKS = (
    AgentCheck("Key", _key),
    AgentCheck("DNS", _dns),
    AgentCheck("TCP", _tcp),
    AgentCheck("Hub", _http),
    AgentCheck("WebSocket", _websocket),
    AgentCheck("Disk", _disk),
    AgentCheck("Memory", _memory),
    AgentCheck("Device", _device),
    AgentCheck("Plugins", _plugins),
)
