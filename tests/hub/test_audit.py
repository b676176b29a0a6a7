"""Who did what is written with the deed, and only admins read it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from parsyn import clock
from parsyn.services.context import Context
from parsyn.store.audit import AuditEntry
from parsyn.wire.api.audit import AuditAction
from tests.hub.conftest import PASSWORD, Person, person
from tests.hub.fake_agent import FakeAgent
from tests.hub.job_stage import Work, make_dataset, make_model, working


@pytest.fixture
async def work(context: Context) -> AsyncIterator[Work]:
    async with working(context) as made:
        yield made


async def entries(work: Work, query: str = "") -> list[dict[str, Any]]:
    page = await work.ask("GET", f"/admin/audit?limit=200{query}")
    assert page["total"] == len(page["items"])
    return list(page["items"])


async def deed(work: Work, action: AuditAction) -> dict[str, Any]:
    """The only entry of this kind."""
    (found,) = await entries(work, f"&action={action}")
    return found


async def test_deeds_with_accounts_and_keys(work: Work) -> None:
    http = work.stage.http
    login = {"email": "owner@example.org", "password": PASSWORD}
    assert (await http.post("/api/v1/auth/login", json=login)).status_code == 200
    wrong = {"email": "Owner@example.org", "password": "guess"}
    assert (await http.post("/api/v1/auth/login", json=wrong)).status_code == 401
    good = await deed(work, AuditAction.LOGGED_IN)
    assert (good["actor"], good["ip"]) == ("owner@example.org", "127.0.0.1")
    bad = await deed(work, AuditAction.LOGIN_FAILED)
    assert bad["details"] == {"email": "owner@example.org"}
    assert bad["user_id"] is None
    assert "guess" not in str(bad)

    made = await work.ask("POST", "/api-keys", {"name": "ci", "scopes": ["read"]}, status=201)
    key = (await entries(work, f"&subject=api_key:{made['id']}"))[0]
    assert key["action"] == AuditAction.API_KEY_MADE
    assert key["details"] == {"name": "ci", "scopes": ["read"]}
    assert key["actor"] == "owner@example.org (API key test)"
    assert made["key"] not in str(key)
    await work.ask("DELETE", f"/api-keys/{made['id']}", status=204)
    assert (await deed(work, AuditAction.API_KEY_DELETED))["subject"] == f"api_key:{made['id']}"

    someone = person(work.stage.app, work.context, "someone@example.org")
    await work.ask("PATCH", f"/admin/users/{someone.user_id}", {"disabled": True})
    changed = await deed(work, AuditAction.USER_CHANGED)
    assert changed["details"] == {"email": "someone@example.org", "disabled": "True"}


async def test_deeds_with_workers(work: Work) -> None:
    master = await work.ask("POST", "/master-keys", {"name": "lab"}, status=201)
    assert master["key"] not in str(await deed(work, AuditAction.MASTER_KEY_MADE))
    agent = FakeAgent(work.stage.url, master["key"], name="rig")
    await agent.connect()
    worker = agent.welcome.worker_id
    enrolled = await deed(work, AuditAction.WORKER_ENROLLED)
    assert enrolled["subject"] == f"worker:{worker}"
    assert enrolled["ip"] == "127.0.0.1"
    assert enrolled["details"] == {"name": "rig", "master_key": "lab"}
    path = f"/workers/{worker}"
    await work.ask("PATCH", path, {"name": "rack"})
    for verb in ("pause", "resume", "drain", "resume", "rotate-key"):
        await work.ask("POST", f"{path}/{verb}", {})
    await work.ask("DELETE", path, status=204)
    await work.ask("DELETE", f"/master-keys/{master['id']}", status=204)
    await agent.leave()
    told = [row["action"] for row in await entries(work, f"&subject=worker:{worker}")]
    assert told[::-1] == [
        AuditAction.WORKER_ENROLLED,
        AuditAction.WORKER_CHANGED,
        AuditAction.WORKER_PAUSED,
        AuditAction.WORKER_RESUMED,
        AuditAction.WORKER_DRAINED,
        AuditAction.WORKER_RESUMED,
        AuditAction.WORKER_KEY_REPLACED,
        AuditAction.WORKER_DELETED,
    ]
    assert (await deed(work, AuditAction.MASTER_KEY_REVOKED))["details"] == {"name": "lab"}


async def test_deeds_with_jobs_datasets_and_models(work: Work) -> None:
    job = await work.start()
    path = f"/training-jobs/{job['id']}"
    await work.ask("POST", f"{path}/cancel")
    await work.ask("POST", f"{path}/resume", {})
    await work.ask("POST", f"{path}/cancel")
    await work.ask("DELETE", path, status=204)
    told = [row["action"] for row in await entries(work, f"&subject=job:{job['id']}")]
    assert told[::-1] == [
        AuditAction.JOB_STARTED,
        AuditAction.JOB_CANCELLED,
        AuditAction.JOB_RESUMED,
        AuditAction.JOB_CANCELLED,
        AuditAction.JOB_DELETED,
    ]
    dataset = make_dataset(work.context, work.owner, "Old")
    model = make_model(work.context, work.owner, "Old")
    await work.ask("DELETE", f"/datasets/{dataset}", status=204)
    await work.ask("DELETE", f"/models/{model}", status=204)
    assert (await deed(work, AuditAction.DATASET_DELETED))["details"] == {"name": "Old"}
    assert (await deed(work, AuditAction.MODEL_DELETED))["project_id"] == work.owner.project_id


async def test_a_deed_that_fails_is_not_written_down(work: Work) -> None:
    job = await work.create()
    await work.ask("POST", f"/training-jobs/{job['id']}/start")
    await work.ask("POST", f"/training-jobs/{job['id']}/start", status=409)
    assert (await deed(work, AuditAction.JOB_STARTED))["subject"] == f"job:{job['id']}"


async def test_filters(work: Work) -> None:
    with work.context.database.transaction():
        AuditEntry.delete().execute()
        for n, actor in enumerate(("ann", "bob", "ann")):
            AuditEntry.create(
                actor=actor, action=AuditAction.LOGGED_IN, user_id=n, project_id=n or None,
                created_at=1_700_000_000.0 + n,
            )  # fmt: skip
    assert len(await entries(work, "&q=ann")) == 2
    assert len(await entries(work, "&user_id=1")) == 1
    assert len(await entries(work, "&project_id=2")) == 1
    assert len(await entries(work, "&since=2023-11-14T22:13:21Z")) == 2
    assert len(await entries(work, "&since=2023-11-14T23:13:21%2B01:00")) == 2
    assert len(await entries(work, "&until=2023-11-14T22:13:21Z")) == 1
    await work.ask("GET", "/admin/audit?since=yesterday", status=422)
    await work.ask("GET", "/admin/audit?action=nonsense", status=422)


async def test_old_entries_go(work: Work) -> None:
    for age in (366, 364):
        with work.context.database.transaction():
            AuditEntry.create(actor="a", action=AuditAction.LOGGED_IN,
                              created_at=clock.now() - age * 86_400)  # fmt: skip
    await work.stage.app.extensions["parsyn"].parts["lifecycle"].reconciler.once()
    assert len(await entries(work, "&action=login.succeeded")) == 1


async def test_only_admins_read_it(people: dict[str, Person]) -> None:
    for name, status in (
        ("anonymous", 401), ("other", 403), ("viewer", 403), ("editor", 403),
        ("admin", 200), ("owner", 200),
    ):  # fmt: skip
        assert (await people[name].get("/admin/audit")).status == status, name
