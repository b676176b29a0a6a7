"""`parsyn doctor`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from parsyn.cli.agent import agent_module, dir_option
from parsyn.cli.main import emit
from parsyn.cli.options import json_option


@click.command("doctor")
@dir_option
@json_option
def doctor_command(folder: Path, as_json: bool) -> None:
    """Check what can be wrong on this machine."""
    findings = agent_module("main").run_doctor(folder.expanduser())
    marks = {"ok": "ok  ", "warn": "warn", "error": "FAIL"}
    lines = []
    for finding in findings:
        lines.append(f"{marks[finding['level']]}  {finding['title']}: {finding['found']}")
        if finding.get("advice"):
            lines.append(f"      {finding['advice']}")
    emit(findings, as_json, "\n".join(lines))
    if any(finding["level"] == "error" for finding in findings):
        sys.exit(1)
