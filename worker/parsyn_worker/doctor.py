"""`parsyn doctor` on an agent's machine: one check after the other, repairs where asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from parsyn.plugin.check import Check, Finding, as_row, check_failed, repaired
from parsyn_worker import doctor_folder, doctor_hub, doctor_machine
from parsyn_worker.config import load_config
from parsyn_worker.patient import Patient


@dataclass(frozen=True)
class AgentCheck:
    """One thing that can be wrong. `run` looks and changes nothing; `fix` repairs what `run` found
    and says what it did. Without settings only those that do not `need_settings` are run."""

    title: str
    run: Callable[[Patient], Finding]
    fix: Callable[[Patient], str | None] | None = None
    needs_settings: bool = True


def run_doctor(folder: Path, fix: bool = False) -> list[dict[str, Any]]:
    """Every check as {"title", "level": "ok"|"warn"|"error", "found", "advice", "fixed"}."""
    rows: list[dict[str, Any]] = []
    patient = Patient(folder)
    for check in (*FIRST, *CHECKS):
        if check.needs_settings and patient.config is None:
            continue
        row = as_row(check.title, _look(check, patient))
        if fix and check.fix is not None and row["level"] != "ok":
            again = partial(_look_afresh, check, folder)
            row = repaired(row, partial(check.fix, patient), again)
            patient = Patient(folder)
        rows.append(row)
    return rows + [as_row(check.title, _look(check, patient)) for check in _of_plugins()]


def _look(check: AgentCheck, patient: Patient) -> Finding:
    try:
        return check.run(patient)
    except Exception as error:
        return check_failed(error, "Look at `parsyn logs`.")


def _look_afresh(check: AgentCheck, folder: Path) -> Finding:
    return _look(check, Patient(folder))


def _of_plugins() -> list[AgentCheck]:
    """The checks that plugins registered, after our own."""
    from parsyn.plugin.manager import Plugins

    offered = Plugins().pluggy.hook.register_checks()
    return [
        AgentCheck(cls.title, partial(_run_plugins_check, cls), needs_settings=False)
        for classes in offered
        for cls in classes
    ]


def _run_plugins_check(cls: type[Check], patient: Patient) -> Finding:
    return cls().run()


def _settings(patient: Patient) -> Finding:
    if patient.error is not None:
        return Finding("error", patient.error, "Run `parsyn init`.")
    where = [str(patient.folder)] if (patient.folder / ".env").exists() else []
    if os.environ.get("PLATFORM_URL"):
        where.append("the environment")
    return Finding("ok", f"complete, from {' and '.join(where)}")


def _settings_fixed(patient: Patient) -> str | None:
    done = doctor_folder.put_right(patient)
    if done is not None:
        load_config(patient.folder)
    return done


FIRST = (AgentCheck("Configuration", _settings, _settings_fixed, needs_settings=False),)
CHECKS = (
    AgentCheck("Address", doctor_folder.address, doctor_folder.complete_address),
    AgentCheck("Files", doctor_folder.rights, doctor_folder.make_private, needs_settings=False),
    AgentCheck("Agent", doctor_folder.agent, doctor_folder.clear_stale, needs_settings=False),
    AgentCheck("Unsent reports", doctor_folder.spool, doctor_folder.set_aside),
    AgentCheck("Key", doctor_hub.key),
    AgentCheck("DNS", doctor_hub.dns),
    AgentCheck("TCP", doctor_hub.tcp),
    AgentCheck("TLS", doctor_hub.tls),
    AgentCheck("HTTP", doctor_hub.http),
    AgentCheck("WebSocket", doctor_hub.websocket),
    AgentCheck("Versions", doctor_hub.versions),
    AgentCheck("Clock", doctor_hub.clock),
    AgentCheck("Disk", doctor_machine.disk, needs_settings=False),
    AgentCheck("Memory", doctor_machine.memory, needs_settings=False),
    AgentCheck("Driver", doctor_machine.driver, needs_settings=False),
    AgentCheck("Runtime", doctor_machine.runtime_found, needs_settings=False),
    AgentCheck("torch", doctor_machine.torch, needs_settings=False),
    AgentCheck("bf16 matmul", doctor_machine.matmul, needs_settings=False),
    AgentCheck("bitsandbytes", doctor_machine.bitsandbytes, needs_settings=False),
    AgentCheck("LoRA step", doctor_machine.lora, needs_settings=False),
    AgentCheck("Plugins", doctor_machine.plugins, needs_settings=False),
)
