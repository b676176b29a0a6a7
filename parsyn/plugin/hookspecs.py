"""The whole plugin surface. Registration hooks return classes; event hooks are told what happened.

Everything is synchronous. A plugin is a module (or object) with functions of these names, marked
with `parsyn.plugin.hookimpl` and registered by an entry point in the group `parsyn`.

An event also holds `event_id`; one that comes again, because a process died, has the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import click

    from parsyn.plugin.check import Check
    from parsyn.plugin.evaluator import Evaluator
    from parsyn.plugin.exporter import Exporter
    from parsyn.plugin.identity import IdentityProvider
    from parsyn.plugin.notifier import Notifier
    from parsyn.plugin.payment import Payment
    from parsyn.plugin.storage import Storage
    from parsyn.plugin.trainer import Trainer

hookspec = pluggy.HookspecMarker("parsyn")
hookimpl = pluggy.HookimplMarker("parsyn")


@hookspec
def register_storages() -> Sequence[type[Storage]]:  # type: ignore[empty-body]
    """Return storage classes; `[storage] use` names the one in use."""


@hookspec
def register_trainers() -> Sequence[type[Trainer[Any]]]:  # type: ignore[empty-body]
    """Return trainer classes; a job names one as its `trainer`."""


@hookspec
def register_exporters() -> Sequence[type[Exporter[Any]]]:  # type: ignore[empty-body]
    """Return exporter classes; an export names one as its `format`."""


@hookspec
def register_evaluators() -> Sequence[type[Evaluator[Any]]]:  # type: ignore[empty-body]
    """Return evaluator classes; an evaluation names one as its `evaluator`."""


@hookspec
def register_notifiers() -> Sequence[type[Notifier]]:  # type: ignore[empty-body]
    """Return notifier classes: ways to tell a person that something happened."""


@hookspec
def register_payments() -> Sequence[type[Payment]]:  # type: ignore[empty-body]
    """Return payment classes: ways to buy credits."""


@hookspec
def register_identity_providers() -> Sequence[type[IdentityProvider]]:  # type: ignore[empty-body]
    """Return identity provider classes: ways to sign in besides the password."""


@hookspec
def register_commands() -> Sequence[click.Command]:  # type: ignore[empty-body]
    """Return click commands that `parsyn` shall have."""


@hookspec
def register_blueprints() -> Sequence[Any]:  # type: ignore[empty-body]
    """Return Quart blueprints; they are mounted below `/plugins/<blueprint name>`."""


@hookspec
def register_checks() -> Sequence[type[Check]]:  # type: ignore[empty-body]
    """Return checks that `parsyn doctor` shall run."""


@hookspec
def job_changed(event: dict[str, Any]) -> None:
    """A job moved: {"job_id", "kind", "status", "previous", "reason"}. Runs after commit."""


@hookspec
def artifact_stored(event: dict[str, Any]) -> None:
    """A file was stored: {"job_id", "artifact_id", "kind", "key", "size", "sha256"}."""


@hookspec
def worker_changed(event: dict[str, Any]) -> None:
    """A worker moved: {"worker_id", "status", "previous"}."""


@hookspec
def payment_received(event: dict[str, Any]) -> None:
    """Money arrived: {"user_id", "credits", "reference"}."""


@hookspec(firstresult=True)
def may_start_job(job: dict[str, Any]) -> str | None:
    """Return a sentence to refuse the start of a job; the first answer counts, None allows."""
