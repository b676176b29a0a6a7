"""Every hook of a stranger's plugin, found by its entry point, does what it is for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsyn import config
from parsyn.hub.app import create_app
from parsyn.plugin import hookspecs
from parsyn.plugin.manager import Plugins
from parsyn.services import outbox
from parsyn.services.context import Context, open_context
from parsyn.store.migrate import migrate
from parsyn.store.outbox import Outbox
from parsyn_worker.doctor import run_doctor
from tests.plugins import hook_plugin

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with the metadata of a distribution whose plugin is `hook_plugin`."""
    site = tmp_path / "site"
    info = site / "parsyn_one-1.2.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parsyn-one\nVersion: 1.2.3\n")
    (info / "entry_points.txt").write_text(
        "[parsyn]\none = tests.plugins.hook_plugin\nbroken = tests.plugins.no_such_module\n"
    )
    monkeypatch.syspath_prepend(str(site))
    hook_plugin.told.clear()
    return site


@pytest.fixture
def hub_context(installed: Path, tmp_path: Path, redis_url: str) -> Iterator[Context]:
    opened = open_context(config.load(data_dir=tmp_path / "data", env={}), redis_url)
    migrate(opened.database)
    yield opened
    opened.close()


def test_it_has_every_hook() -> None:
    hooks = {name for name, value in vars(hookspecs).items() if hasattr(value, "parsyn_spec")}
    assert hooks == {
        name for name, value in vars(hook_plugin).items() if hasattr(value, "parsyn_impl")
    }


def test_classes_are_handed_out_by_name(installed: Path) -> None:
    plugins = Plugins()
    assert plugins.storages["one_storage"] is hook_plugin.OneStorage
    assert plugins.trainer("one_trainer").parse({"depth": 3}).depth == 3
    assert plugins.evaluator("one_evaluator").title == "One evaluator"
    exporter = plugins.exporter("one_format")
    assert exporter.refuses("Other", exporter.parse({})) == "Other is not known."
    hook = plugins.pluggy.hook
    assert [hook_plugin.OneNotifier] in hook.register_notifiers()
    assert [hook_plugin.OnePayment] in hook.register_payments()
    assert [hook_plugin.OneProvider] in hook.register_identity_providers()


def test_it_is_listed_and_a_broken_one_breaks_nothing(installed: Path) -> None:
    infos = {info.name: info for info in Plugins().infos()}
    assert (infos["one"].distribution, infos["one"].version) == ("parsyn-one", "1.2.3")
    assert {"trainers", "checks", "job_changed"} <= set(infos["one"].kinds)
    assert infos["broken"].state == "failed"
    assert "no_such_module" in (infos["broken"].error or "")
    assert infos["trainer_sft"].state == "enabled"


def test_a_disabled_one_offers_nothing(installed: Path) -> None:
    plugins = Plugins(["one"])
    assert "one_trainer" not in plugins.trainers
    assert {info.state for info in plugins.infos() if info.name == "one"} == {"disabled"}


def test_its_command_is_a_command_of_parsyn(installed: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "parsyn.cli.main", "one-command"],
        env={"PYTHONPATH": f"{installed}:{ROOT}", "PARSYN_DATA": str(tmp_path), "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stdout == "one thing\n", result.stderr


async def test_its_page_is_mounted_and_closed_without_a_guard(hub_context: Context) -> None:
    app = create_app(hub_context)
    assert "/plugins/one_page/" in {rule.rule for rule in app.url_map.iter_rules()}
    answer = await app.test_client().get("/plugins/one_page/")
    assert answer.status_code == 403
    assert (await answer.get_json())["code"] == "forbidden"


def test_its_checks_are_part_of_the_doctor(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsyn_worker import doctor

    monkeypatch.setattr(doctor, "CHECKS", ())
    (tmp_path / ".env").write_text(
        "PLATFORM_URL=ws://127.0.0.1:1/ws/worker\nWORKER_API_KEY=wkr_x\n"
    )
    found = {row["title"]: row for row in run_doctor(tmp_path)}
    assert found["One check"] == {
        "title": "One check",
        "level": "warn",
        "found": "there is one thing",
        "advice": "Leave it.",
        "fixed": None,
    }
    assert found["A broken check"]["level"] == "error"
    assert "it cannot look" in found["A broken check"]["found"]


@pytest.mark.parametrize("name", ["job_changed", "artifact_stored", "worker_changed"])
def test_an_event_reaches_it_through_the_outbox(hub_context: Context, name: str) -> None:
    event = {"id": 7, "status": "done"}
    with hub_context.database.transaction():
        outbox.hook(hub_context, name, event)
    with hub_context.database.connection():
        rows = list(Outbox.select().where(Outbox.kind == f"hook:{name}"))
        assert [row.payload["plugin"] for row in rows] == ["one"]
        assert hook_plugin.told == [], "nothing happens before it is delivered"
        assert outbox.deliver(hub_context, rows[0].id)
        assert outbox.deliver(hub_context, rows[0].id), "a second time is nothing"
    assert hook_plugin.told == [(name, {**event, "event_id": rows[0].id})]


def test_an_event_that_nobody_wants_leaves_no_row(context: Context) -> None:
    with context.database.transaction():
        outbox.hook(context, "payment_received", {"user_id": 1})
    with context.database.connection():
        assert Outbox.select().count() == 0


def test_the_first_refusal_counts(installed: Path) -> None:
    hook = Plugins().pluggy.hook
    assert hook.may_start_job(job={"params": {"monday": True}}) == "Not on a Monday."
    assert hook.may_start_job(job={"params": {}}) is None


def test_what_the_hub_tells_is_plain_json(hub_context: Context) -> None:
    with hub_context.database.transaction():
        outbox.hook(hub_context, "job_changed", {"job_id": 1, "reason": None})
    with hub_context.database.connection():
        row = Outbox.get(Outbox.kind == "hook:job_changed")
    assert json.loads(json.dumps(row.payload)) == row.payload
