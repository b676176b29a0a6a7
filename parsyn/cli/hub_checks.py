"""The hub's `parsyn doctor`: data directory, disk, port, address, web UI."""

from __future__ import annotations

import importlib.resources
import os
import stat
from pathlib import Path

import httpx
import psutil

from parsyn import __version__
from parsyn.cli.hub_patient import HubPatient
from parsyn.config import Settings
from parsyn.errors import ParsynError
from parsyn.hub.server import bind
from parsyn.plugin.check import Finding
from parsyn.services.context import prepare_data_dir

LITTLE_DISK, NO_DISK = 10 << 30, 1 << 30
KEY_BYTES = 32


def data_directory(patient: HubPatient) -> Finding:
    path = patient.data
    if not path.exists():
        return Finding(
            "warn", f"{path} is not there yet", "`parsyn serve` makes it; so does --fix."
        )
    if not path.is_dir():
        return Finding("error", f"{path} is a file", "Name a folder with --data.")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        owner = path.owner()
        return Finding("error", f"{path} belongs to {owner}", f"Run as {owner}, or give it to you.")
    if _mode(path) & 0o077:
        return Finding(
            "error", f"others can look into {path} ({_mode(path):04o})", f"--fix: chmod 700 {path}"
        )
    return Finding("ok", f"{path} is private and writable")


def make_data_directory(patient: HubPatient) -> str | None:
    path = patient.data
    if not path.exists():
        prepare_data_dir(path)
        return f"made {path}"
    if path.is_dir() and _mode(path) & 0o077:
        path.chmod(0o700)
        return f"{path} is its owner's only"
    return None


def secret(patient: HubPatient) -> Finding:
    """The key with which tickets are signed."""
    path = patient.data / "secret.key"
    if patient.settings.text("hub.secret_key"):
        return Finding("ok", "hub.secret_key of the settings")
    if not path.exists():
        return Finding("ok", "none yet; the first start makes one")
    if _mode(path) & 0o077:
        return Finding("error", f"others may read {path} ({_mode(path):04o})", "--fix: chmod 600")
    try:
        good = len(bytes.fromhex(path.read_text().strip())) == KEY_BYTES
    except ValueError:
        good = False
    if not good:
        return Finding("error", f"{path} is damaged", "Remove it: the next start makes a new one.")
    return Finding("ok", f"{path} is private")


def protect_secret(patient: HubPatient) -> str | None:
    path = patient.data / "secret.key"
    if not path.exists() or not _mode(path) & 0o077:
        return None
    path.chmod(0o600)
    return f"{path} is its owner's only"


def disk(patient: HubPatient) -> Finding:
    nearest = next(path for path in (patient.data, *patient.data.parents) if path.exists())
    free = psutil.disk_usage(str(nearest)).free
    text, todo = f"{free / 2**30:.1f} GiB free for {patient.data}", "Free space, or move it."
    if free < NO_DISK:
        return Finding("error", text, todo)
    return Finding("warn", text, todo) if free < LITTLE_DISK else Finding("ok", text)


def port(patient: HubPatient) -> Finding:
    """The hub answers there, or nothing does."""
    settings = patient.settings
    where = settings.bound_url
    if patient.pid is not None:
        return _running(patient)
    if settings.integer("hub.port") == 0:
        return Finding("ok", "any free one")
    try:
        bind(settings).close()
    except ParsynError as error:
        return Finding("error", error.detail, None)
    return Finding("ok", f"{where} is free; no hub runs here")


def _running(patient: HubPatient) -> Finding:
    where = patient.settings.bound_url
    try:
        answer = patient.health(where)
        body = answer.json()
        version, status = body["version"], body["status"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return Finding(
            "warn",
            f"the hub runs (process {patient.pid}) and does not answer at {where}",
            "If it was started with other --host or --port, set hub.host and hub.port to them.",
        )
    text = f"the hub runs (process {patient.pid}) at {where}, version {version}"
    if version != __version__:
        return Finding("warn", f"{text}; {__version__} is installed", "Restart the hub.")
    if status != "ok":
        return Finding("error", f"{text}; it is not well", "See the lines above.")
    return Finding("ok", text)


def address(patient: HubPatient) -> Finding:
    """Whether agents and people are told an address that works."""
    settings = patient.settings
    url = settings.text("hub.url").rstrip("/")
    if not url:
        return _without_url(settings)
    if not url.startswith(("http://", "https://")):
        return Finding("error", f"hub.url is {url!r}", "It begins with https:// or http://.")
    if patient.pid is None:
        return Finding("ok", f"{url}; not tried, since no hub runs here")
    try:
        answer = patient.health(url)
        known = "status" in answer.json()
    except (httpx.HTTPError, ValueError, TypeError) as error:
        return Finding(
            "warn", f"{url} does not lead to the hub ({error})", "Check the proxy and its target."
        )
    if not known:
        return Finding("warn", f"{url} answers, but not as the hub", "Check the proxy's target.")
    if url.startswith("http://") and not _is_local(url):
        return Finding("warn", f"{url} is not encrypted", "Put a proxy with TLS before the hub.")
    return Finding("ok", f"{url} leads to the hub")


def _without_url(settings: Settings) -> Finding:
    if _is_local(settings.bound_url) and settings.text("hub.host") not in ("0.0.0.0", "::"):  # noqa: S104
        return Finding("ok", f"{settings.bound_url}: this machine only")
    return Finding(
        "warn",
        "hub.url is not set, and the hub listens for other machines",
        "Set it to the address that agents and people use.",
    )


def _is_local(url: str) -> bool:
    return any(f"//{name}" in url for name in ("127.", "localhost", "[::1]"))


def web_ui(patient: HubPatient) -> Finding:
    page = importlib.resources.files("parsyn.hub").joinpath("static", "index.html")
    if not page.is_file():
        return Finding("warn", "not built", "In a checkout: make webui.")
    return Finding("ok", "built")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
