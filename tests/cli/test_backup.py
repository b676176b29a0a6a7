"""`parsyn backup` and `parsyn restore`: what comes back is what was there, on either database."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import zstandard

from parsyn.cli.main import cli
from parsyn.errors import ParsynError
from parsyn.services.context import Context
from parsyn.store import rows
from parsyn.store.jobs import Job, JobEvent, Task
from parsyn.store.models import Model
from parsyn.store.projects import Project
from parsyn.store.users import User
from parsyn.store.workers import Worker
from parsyn.wire.states import Role
from tests.appliance import Appliance
from tests.conftest import opened
from tests.hub.conftest import Person, make_user
from tests.hub.fake_agent import FakeAgent
from tests.hub.job_stage import make_dataset, make_model
from tests.hub.test_socket_restart import furnish
from tests.postgres_server import PostgresServer

Url = Callable[[str], str]
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture
def url(request: pytest.FixtureRequest) -> Iterator[Url]:
    """A fresh database of a kind: `sqlite`, or a new empty one of the PostgreSQL server."""
    made: list[str] = []

    def of(kind: str) -> str:
        if kind == "sqlite":
            return "sqlite"
        server: PostgresServer = request.getfixturevalue("postgres")
        made.append(server.create_database())
        return server.url(made[-1])

    yield of
    for name in made:
        request.getfixturevalue("postgres").drop_database(name)


def hub_in(folder: Path, database: str) -> Path:
    folder.mkdir()
    (folder / "parsyn.toml").write_text(f'[hub]\ndatabase = "{database}"\n')
    return folder


def run(*arguments: str | Path) -> dict[str, Any]:
    """The command's JSON. Raises what it says."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click, "echo", lambda text, **_: out.write(f"{text}\n"))
        cli.main(args=[*map(str, arguments), "--json"], standalone_mode=False)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def fill(context: Context) -> None:
    """A bit of everything, references back and forth among it."""
    user_id, project_id = make_user(context, "owner@example.org", Role.OWNER)
    who = Person(None, context, user_id, project_id)  # type: ignore[arg-type]
    base, tuned = (make_model(context, who, name) for name in ("Base", "Tuned"))
    dataset = make_dataset(context, who)
    with context.database.transaction():
        # The older one names the newer one: no order of rows suits both.

        Model.update(base_model=tuned).where(Model.id == base).execute()
        worker = Worker.create(
            user=user_id, project=project_id, name="rig", key_hash="x" * 64, paused=True,
            connection="feed:1", hardware={"gpu": "Größe"},
        )  # fmt: skip
        job = Job.create(
            user=user_id, project=project_id, kind="training", name="J", status="running",
            dataset=dataset, model=base,
        )  # fmt: skip
        Task.create(job=job, kind="train", status="running", worker=worker, spec={"kind": "train"})
        JobEvent.create(job=job, status="running", cause="It\nwent 🎉")
    for table, row in (
        ("metric_points", (1, "loss", 1, 1, 1.5, 0.1 + 0.2)),
        ("log_lines", (1, 1, 1, 0, 1.5, "info", "Zeile\t1")),
        ("machine_points", (1, 1.5, "{}")),
        ("samples", (1, 1, 2, 1, 1.5, "{}")),
    ):
        context.metrics.put(table, [row]).result(10)


@pytest.fixture
def filled(tmp_path: Path, redis_url: str, url: Url, request: pytest.FixtureRequest) -> Path:
    """The data directory of a hub that does not run; on SQLite unless told otherwise."""
    database = url(getattr(request, "param", "sqlite"))
    folder = hub_in(tmp_path / "old", database)
    for context in opened(folder, redis_url, database):
        fill(context)
    return folder


def contents(database: str, folder: Path) -> dict[str, list[list[Any]]]:
    with rows.snapshot(database, folder) as read:
        return {
            layout.name: [[plain(value) for value in row] for row in read(layout)]
            for layout in (*rows.core_layouts(), *rows.metric_layouts())
        }


def plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def database_of(folder: Path) -> str:
    return (folder / "parsyn.toml").read_text().split('"')[1]


@pytest.mark.parametrize("filled", KINDS, indirect=True)
@pytest.mark.parametrize("target", KINDS)
def test_everything_comes_back(filled: Path, target: str, tmp_path: Path, url: Url) -> None:
    file = tmp_path / "hub.tar.zst"
    told = run("backup", file, "--data", filled)
    assert told["missing"] == []
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    database = url(target)
    new = hub_in(tmp_path / "new", database)
    run("restore", file, "--data", new)
    assert contents(database, new) == contents(database_of(filled), filled)
    before = contents(database, new)["models"]
    assert any(row for row in before), "something was compared"
    stored = {p.relative_to(filled): p.read_bytes() for p in (filled / "storage").rglob("m*.s*")}
    assert stored
    for path, body in stored.items():
        assert (new / path).read_bytes() == body
    assert (new / "secret.key").read_text() == (filled / "secret.key").read_text()
    assert (new / "parsyn.toml.from-backup").exists(), "its own settings were kept"
    check_ids_go_on(database, new)


def check_ids_go_on(database: str, folder: Path) -> None:
    for context in opened(folder, "redis://127.0.0.1:1", database):
        with context.database.transaction():
            assert Worker.get().connection is None
            last = User.select().count()
            made = User.create(email="new@example.org", name="N", password_hash="x")
            assert made.id == last + 1
            Project.create(name="N", owner=made)


def test_the_archives_own_settings_are_used_where_there_are_none(
    filled: Path, tmp_path: Path
) -> None:
    run("backup", tmp_path / "b", "--data", filled)
    run("restore", tmp_path / "b", "--data", tmp_path / "new")
    new = tmp_path / "new"
    assert (new / "parsyn.toml").read_text() == (filled / "parsyn.toml").read_text()
    assert not (new / ".restoring").exists()


def test_without_files(filled: Path, tmp_path: Path) -> None:
    run("backup", tmp_path / "b", "--no-files", "--data", filled)
    run("restore", tmp_path / "b", "--data", tmp_path / "new")
    assert not (tmp_path / "new" / "storage").exists()
    assert contents("sqlite", tmp_path / "new") == contents("sqlite", filled)


@pytest.mark.parametrize("filled", KINDS, indirect=True)
def test_a_hub_that_is_there_is_replaced_only_by_force(filled: Path, tmp_path: Path) -> None:
    run("backup", tmp_path / "b", "--data", filled)
    before = contents(database_of(filled), filled)
    with pytest.raises(ParsynError, match="holds a hub already"):
        run("restore", tmp_path / "b", "--data", filled)
    assert contents(database_of(filled), filled) == before
    run("restore", tmp_path / "b", "--force", "--data", filled)
    assert contents(database_of(filled), filled) == before
    (aside,) = filled.glob("before-restore-*")
    assert (aside / "secret.key").exists()


def test_a_dry_run_says_what_is_in_it_and_changes_nothing(filled: Path, tmp_path: Path) -> None:
    run("backup", tmp_path / "b", "--data", filled)
    told = run("restore", tmp_path / "b", "--dry-run", "--data", tmp_path / "new")
    assert told["rows"]["users"] == 1
    assert told["files"] is True
    assert not (tmp_path / "new").exists()


def test_what_exists_is_not_overwritten(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("precious")
    with pytest.raises(ParsynError, match="exists already"):
        run("backup", tmp_path / "b", "--data", filled)
    assert (tmp_path / "b").read_text() == "precious"
    with pytest.raises(ParsynError, match="There is no hub in"):
        run("backup", tmp_path / "c", "--data", tmp_path / "nowhere")


def rewritten(file: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The archive with `change` applied to each member; None leaves it out."""
    target = file.with_name("changed")
    with (
        zstandard.open(file, "rb") as plain,
        tarfile.open(fileobj=plain, mode="r|") as old,
        zstandard.open(target, "wb") as packed,
        tarfile.open(fileobj=packed, mode="w|") as new,
    ):
        for member in old:
            source = old.extractfile(member)
            assert source is not None
            body = change(member.name, source.read())
            if body is not None:
                member.size = len(body)
                new.addfile(member, io.BytesIO(body))
    return target


def newer_schema(name: str, body: bytes) -> bytes:
    return body.replace(b'"0001_first"', b'"9999_later"') if name == "manifest.json" else body


BROKEN: dict[str, tuple[Callable[[Path], Path], str]] = {
    "truncated": (lambda f: _cut(f), "is not a whole back-up"),
    "something else": (lambda f: _other(f), "is not a whole back-up"),
    "not there": (lambda f: f.with_name("none"), "There is no file"),
    "a row changed": (
        lambda f: rewritten(f, lambda n, b: b.replace(b"owner@", b"crook@")),
        "users.jsonl is damaged",
    ),
    "a file changed": (
        lambda f: rewritten(f, lambda n, b: b + b"!" if n.startswith("files/models") else b),
        "is damaged",
    ),
    "a table left out": (
        lambda f: rewritten(f, lambda n, b: None if n == "rows/jobs.jsonl" else b),
        "jobs.jsonl is missing",
    ),
    "no end": (
        lambda f: rewritten(f, lambda n, b: None if n == "files.json" else b),
        "its end is missing",
    ),
    "a stranger in it": (
        lambda f: rewritten(f, lambda n, b: b).rename(f.with_name("renamed")) and _with_stranger(f),
        "belongs in it",
    ),
    "newer": (lambda f: rewritten(f, newer_schema), "made by a newer Parsyn"),
}


def _cut(file: Path) -> Path:
    target = file.with_name("cut")
    body = file.read_bytes()
    target.write_bytes(body[: len(body) // 2])
    return target


def _other(file: Path) -> Path:
    target = file.with_name("other")
    target.write_bytes(b"PK\x03\x04 something else altogether" * 100)
    return target


def _with_stranger(file: Path) -> Path:
    target = file.with_name("stranger")
    with (
        zstandard.open(file, "rb") as plain,
        tarfile.open(fileobj=plain, mode="r|") as old,
        zstandard.open(target, "wb") as packed,
        tarfile.open(fileobj=packed, mode="w|") as new,
    ):
        first = old.next()
        assert first is not None
        new.addfile(first, old.extractfile(first))
        evil = tarfile.TarInfo("../../etc/cron.d/evil")
        evil.size = 4
        new.addfile(evil, io.BytesIO(b"evil"))
    return target


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_archive_changes_nothing(name: str, filled: Path, tmp_path: Path) -> None:
    run("backup", tmp_path / "b", "--data", filled)
    damage, words = BROKEN[name]
    file = damage(tmp_path / "b")
    new = tmp_path / "new"
    with pytest.raises(ParsynError, match=words) as refused:
        run("restore", file, "--data", new)
    assert "\n" not in refused.value.detail
    assert {path.name for path in new.iterdir()} <= {"hub.lock"}


@pytest.mark.postgres
async def test_a_job_goes_on_in_the_restored_hub(tmp_path: Path, url: Url) -> None:
    """Backed up while the hub runs, restored into the other database, finished by the agent."""
    hub = Appliance(tmp_path / "data")
    await asyncio.to_thread(hub.create_owner)
    made = await asyncio.to_thread(furnish, hub.data)
    await asyncio.to_thread(hub.start)
    agent, job, worker = await begin(hub, made)
    offer = next(iter(agent.running.values()))
    file = tmp_path / "b"
    await asyncio.to_thread(backup_by_command, file, hub.data)
    paths = [
        "/me", "/datasets", "/models", "/workers", "/training-jobs", f"/training-jobs/{job}",
        f"/training-jobs/{job}/events", f"/training-jobs/{job}/metrics",
        f"/training-jobs/{job}/logs", f"/training-jobs/{job}/checkpoints",
    ]  # fmt: skip
    told = [await get(hub.url, made["key"], path) for path in paths]
    with pytest.raises(AssertionError, match="stop it before a restore"):
        await asyncio.to_thread(restore_by_command, file, hub.data)
    await asyncio.to_thread(hub.stop)
    await agent.leave()

    new = Appliance(hub_in(tmp_path / "new", url("postgres")))
    await asyncio.to_thread(restore_by_command, file, new.data)
    await asyncio.to_thread(new.start)
    try:
        for path, before in zip(paths, told, strict=True):
            now = await get(new.url, made["key"], path)
            assert steady(now) == steady(before), path
        agent.url = new.url.replace("http://", "ws://") + "/ws/worker"
        agent.http_url = new.url
        await agent.connect()
        await agent.complete(offer, {"adapter_model.safetensors": b"weights"})
        await agent.acknowledged()
        found = await get(new.url, made["key"], f"/training-jobs/{job}")
        assert (found["status"], found["attempt"]) == ("completed", 1)
        await agent.leave()
    finally:
        await asyncio.to_thread(new.stop)
    assert worker


async def begin(hub: Appliance, made: dict[str, Any]) -> tuple[FakeAgent, int, int]:
    """A job that runs, with a metric, a log and a checkpoint."""
    headers = {"Authorization": f"Bearer {made['key']}"}
    async with httpx.AsyncClient(
        base_url=f"{hub.url}/api/v1", headers=headers, trust_env=False, timeout=20
    ) as http:
        worker = (await http.post("/workers", json={"name": "rig"})).json()
        agent = FakeAgent(hub.url, worker["api_key"])
        await agent.connect()
        ids = {"model_id": made["model_id"], "dataset_id": made["dataset_id"]}
        job = (await http.post("/training-jobs", json=ids)).json()
        await http.post(f"/training-jobs/{job['id']}/start")
    offer = await agent.offer()
    await agent.metric(offer, 1, loss=3.0)
    await agent.log(offer, "Hello.")
    await agent.checkpoint(offer, 1)
    await agent.acknowledged()
    return agent, int(job["id"]), int(worker["worker"]["id"])


async def get(url: str, key: str, path: str) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(trust_env=False, timeout=20, headers=headers) as http:
        answer = await http.get(f"{url}/api/v1{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()


def steady(value: Any) -> Any:
    """Without what moves by itself while a hub runs."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items() if k not in ("last_seen_at", "metrics")}
    return [steady(item) for item in value] if isinstance(value, list) else value


def by_command(*arguments: str | Path) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "parsyn.cli.main", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def backup_by_command(file: Path, data: Path) -> None:
    by_command("backup", file, "--data", data)


def restore_by_command(file: Path, data: Path) -> None:
    by_command("restore", file, "--data", data)
