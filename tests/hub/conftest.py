"""An application without a network, and people with credentials of every kind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from argon2 import PasswordHasher
from quart import Quart, Response
from quart.typing import TestClientProtocol
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from parsyn.hub.app import create_app
from parsyn.jobs import process
from parsyn.queue import QUEUE
from parsyn.services import accounts, keys, outbox
from parsyn.services.context import Context
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.outbox import Outbox
from parsyn.store.projects import Project, ProjectMember
from parsyn.store.users import User
from parsyn.wire.states import ProjectRole, Role, Scope

PASSWORD = "correct horse"
# argon2id takes its time by design, and no test here is about that.
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
HASH = QUICK.hash(PASSWORD)


@dataclass
class Answer:
    """A response that was read already."""

    status: int
    body: Any
    headers: Any
    raw: bytes

    @property
    def code(self) -> str:
        return str(self.body["code"])


@dataclass
class Person:
    """A user, or nobody, who asks the hub with an API key."""

    app: Quart
    context: Context
    user_id: int = 0
    project_id: int = 0
    key: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def client(self) -> TestClientProtocol:
        return self.app.test_client()

    @property
    def principal(self) -> Principal:
        with self.context.database.connection():
            role = Role(User.get_by_id(self.user_id).role)
        return Principal(self.user_id, role, ALL_SCOPES, "bearer")

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """Send a request; `path` below `/api/v1` unless it starts with another root."""
        headers = {**self.headers, **more.pop("headers", {})}
        if self.key:
            headers.setdefault("Authorization", f"Bearer {self.key}")
        if body is not None:
            more["json"] = body
        rooted = path.startswith(("/api/", "/v1/", "/health", "/metrics", "/storage", "/install"))
        url = path if rooted else f"/api/v1{path}"
        response = await self.client.open(url, method=method, headers=headers, **more)
        return await read(response)

    async def get(self, path: str, **more: Any) -> Answer:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self.ask("POST", path, {} if body is None else body, **more)

    async def patch(self, path: str, body: Any, **more: Any) -> Answer:
        return await self.ask("PATCH", path, body, **more)

    async def put(self, path: str, data: bytes, **more: Any) -> Answer:
        return await self.ask("PUT", path, data=data, **more)

    async def delete(self, path: str, **more: Any) -> Answer:
        return await self.ask("DELETE", path, **more)


async def read(response: Response) -> Answer:
    raw: bytes = await response.get_data(as_text=False)  # type: ignore[assignment]
    is_json = "json" in (response.mimetype or "")
    return Answer(
        response.status_code, json.loads(raw) if is_json and raw else None, response.headers, raw
    )


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "hasher", QUICK)
    monkeypatch.setattr(accounts, "NOBODY", QUICK.hash("nobody"))


@pytest.fixture
async def app(context: Context) -> AsyncIterator[Quart]:
    """The application, its background work started."""
    context.queue.redis.flushdb()
    made = create_app(context)
    async with made.test_app():
        yield made


def make_user(context: Context, email: str, role: Role = Role.USER) -> tuple[int, int]:
    """(user id, personal project id)."""
    with context.database.transaction():
        user = accounts.create_user(email, email.split("@")[0], PASSWORD, role, HASH)
        return int(user.id), int(Project.get(Project.owner == user).id)


def make_key(context: Context, user_id: int, scopes: list[Scope]) -> str:
    with context.database.transaction():
        user = User.get_by_id(user_id)
        who = Principal(user_id, Role(user.role), ALL_SCOPES, "bearer")
        return str(keys.create(who, "test", scopes, None)["key"])


def person(app: Quart, context: Context, email: str, role: Role = Role.USER) -> Person:
    user_id, project_id = make_user(context, email, role)
    scopes = [s for s in Scope if s is not Scope.ADMIN or role is not Role.USER]
    return Person(app, context, user_id, project_id, make_key(context, user_id, scopes))


@pytest.fixture
async def owner(app: Quart, context: Context) -> Person:
    """The first account; owner of the hub."""
    return person(app, context, "owner@example.org", Role.OWNER)


@pytest.fixture
async def admin(app: Quart, context: Context, owner: Person) -> Person:
    """An admin of the hub without a role on anyone's project."""
    return person(app, context, "admin@example.org", Role.ADMIN)


@pytest.fixture
async def other(app: Quart, context: Context, owner: Person) -> Person:
    """A user of the same hub who shares nothing with the owner."""
    return person(app, context, "other@example.org")


@pytest.fixture
async def viewer(app: Quart, context: Context, owner: Person) -> Person:
    """A user with the role viewer on the owner's project."""
    return member(app, context, owner, "viewer@example.org", ProjectRole.VIEWER)


@pytest.fixture
async def editor(app: Quart, context: Context, owner: Person) -> Person:
    """A user with the role editor on the owner's project."""
    return member(app, context, owner, "editor@example.org", ProjectRole.EDITOR)


def member(app: Quart, context: Context, owner: Person, email: str, role: ProjectRole) -> Person:
    joined = person(app, context, email)
    with context.database.transaction():
        ProjectMember.create(project=owner.project_id, user=joined.user_id, role=role)
    joined.project_id = owner.project_id
    return joined


@pytest.fixture
async def anonymous(app: Quart, context: Context) -> Person:
    """Nobody."""
    return Person(app, context)


@pytest.fixture
async def people(
    owner: Person,
    admin: Person,
    other: Person,
    viewer: Person,
    editor: Person,
    anonymous: Person,
) -> dict[str, Person]:
    """All of them by name, for tables."""
    return {
        "owner": owner,
        "admin": admin,
        "other": other,
        "viewer": viewer,
        "editor": editor,
        "anonymous": anonymous,
    }


def run_jobs(context: Context) -> None:
    """Do what waits in the queue, in this process."""
    process.use_context(context)
    try:
        worker = SimpleWorker([QUEUE], connection=context.queue.redis, serializer=JSONSerializer)
        worker.work(burst=True, logging_level="ERROR")
    finally:
        process.use_context(None)


def deliver_effects(context: Context) -> None:
    """Carry out what waits in the outbox, as an RQ worker would."""
    with context.database.connection():
        for row in Outbox.select().where(Outbox.done_at.is_null()):
            assert outbox.deliver(context, row.id)
