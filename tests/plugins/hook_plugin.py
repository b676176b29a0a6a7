"""A plugin with one of every hook, installed for tests of the hooks only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from quart import Blueprint

from parsyn.plugin import hookimpl
from parsyn.plugin.check import Check, Finding
from parsyn.plugin.evaluator import Evaluator
from parsyn.plugin.exporter import Exporter
from parsyn.plugin.identity import IdentityProvider
from parsyn.plugin.notifier import Notifier
from parsyn.plugin.params import PluginParams
from parsyn.plugin.payment import Payment
from parsyn.plugin.storage import Storage
from parsyn.plugin.task import TaskOutcome
from parsyn.plugin.trainer import Trainer
from parsyn.wire.states import SchemaKind

told: list[tuple[str, dict[str, Any]]] = []
"""Every event, in order, with the name of its hook."""


class Params(PluginParams):
    depth: int = 1


class OneTrainer(Trainer[Params]):
    name = "one_trainer"
    title = "One trainer"
    Params = Params
    accepts = frozenset({SchemaKind.TEXT})

    def train(self, params: Params, inputs: Any, context: Any) -> TaskOutcome:
        return TaskOutcome()


class OneEvaluator(Evaluator[Params]):
    name = "one_evaluator"
    title = "One evaluator"
    Params = Params
    accepts = frozenset({SchemaKind.TEXT})

    def evaluate(self, params: Params, model: Any, dataset: Any, context: Any) -> TaskOutcome:
        return TaskOutcome()


class OneExporter(Exporter[Params]):
    name = "one_format"
    title = "One format"
    Params = Params

    def refuses(self, architecture: str | None, params: Params) -> str | None:
        return f"{architecture} is not known." if architecture != "Known" else None

    def export(self, params: Params, model: Any, context: Any) -> TaskOutcome:
        return TaskOutcome()


class OneCheck(Check):
    title = "One check"

    def run(self) -> Finding:
        return Finding("warn", "there is one thing", "Leave it.")


class BrokenCheck(Check):
    title = "A broken check"

    def run(self) -> Finding:
        raise RuntimeError("it cannot look")


class OneStorage(Storage):
    name = "one_storage"


class OneNotifier(Notifier):
    name = "one_notifier"


class OnePayment(Payment):
    name = "one_payment"


class OneProvider(IdentityProvider):
    name = "one_provider"


blueprint = Blueprint("one_page", __name__)


@blueprint.get("/")
async def page() -> str:
    return "open to all"


@hookimpl
def register_storages() -> Sequence[type[Storage]]:
    return [OneStorage]


@hookimpl
def register_trainers() -> Sequence[type[Trainer[Any]]]:
    return [OneTrainer]


@hookimpl
def register_exporters() -> Sequence[type[Exporter[Any]]]:
    return [OneExporter]


@hookimpl
def register_evaluators() -> Sequence[type[Evaluator[Any]]]:
    return [OneEvaluator]


@hookimpl
def register_notifiers() -> Sequence[type[Notifier]]:
    return [OneNotifier]


@hookimpl
def register_payments() -> Sequence[type[Payment]]:
    return [OnePayment]


@hookimpl
def register_identity_providers() -> Sequence[type[IdentityProvider]]:
    return [OneProvider]


@hookimpl
def register_commands() -> Sequence[click.Command]:
    @click.command("one-command")
    def command() -> None:
        """Say one thing."""
        click.echo("one thing")

    return [command]


@hookimpl
def register_blueprints() -> Sequence[Any]:
    return [blueprint]


@hookimpl
def register_checks() -> Sequence[type[Check]]:
    return [OneCheck, BrokenCheck]


@hookimpl
def job_changed(event: dict[str, Any]) -> None:
    told.append(("job_changed", event))


@hookimpl
def artifact_stored(event: dict[str, Any]) -> None:
    told.append(("artifact_stored", event))


@hookimpl
def worker_changed(event: dict[str, Any]) -> None:
    told.append(("worker_changed", event))


@hookimpl
def payment_received(event: dict[str, Any]) -> None:
    told.append(("payment_received", event))


@hookimpl
def may_start_job(job: dict[str, Any]) -> str | None:
    return "Not on a Monday." if job["params"].get("monday") else None
