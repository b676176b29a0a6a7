"""How often, for how long and for whom an enrolment key is good; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from parsyn import clock
from parsyn.errors import ParsynError
from parsyn.services import accounts, enrollment, presence, workers
from parsyn.services.context import Context
from parsyn.services.enrollment import Refused
from parsyn.services.principal import ALL_SCOPES, Principal
from parsyn.store.projects import Project, ProjectMember
from parsyn.store.users import User
from parsyn.store.workers import MasterKey, Worker
from parsyn.wire.api.workers import MasterKeyIn
from parsyn.wire.states import ProjectRole, Role, WorkerType
from parsyn.wire.worker import CloseCode, Hello

PASSWORD_HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$nothing"


@pytest.fixture
def ann(any_context: Context) -> Principal:
    with any_context.database.transaction():
        user = accounts.create_user("ann@example.org", "Ann", "", Role.USER, PASSWORD_HASH)
    return Principal(user.id, Role.USER, ALL_SCOPES, "bearer")


def new_key(context: Context, who: Principal, **values: Any) -> dict[str, Any]:
    body = MasterKeyIn.model_validate({"name": "lab", **values})
    made: dict[str, Any] = context.database.write_sync(enrollment.create_key, who, body)
    return made


def arrive(context: Context, key: str, **hello: Any) -> Any:
    """As an agent's first message does."""
    said = Hello.model_validate({"version": "0", "instance": uuid4().hex, **hello})
    return context.database.write_sync(
        presence.arrive, context, key, said, f"process:{uuid4().hex}"
    )


def refusal(what: Callable[[], Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        what()
    return caught.value


def in_parallel(count: int, what: Callable[[], Any]) -> list[Any]:
    """Results or exceptions of `count` threads that begin together."""
    gate, results = threading.Barrier(count), []

    def one() -> None:
        gate.wait()
        try:
            results.append(what())
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_never_more_than_the_limit_however_many_come_at_once(
    any_context: Context, ann: Principal
) -> None:
    key = new_key(any_context, ann, max_enrollments=5, auto_name_prefix="gpu")
    results = in_parallel(12, lambda: arrive(any_context, key["key"]))
    enrolled = [result for result in results if not isinstance(result, Exception)]
    refused = [result for result in results if isinstance(result, Exception)]
    assert len(enrolled) == 5
    assert {type(error) for error in refused} == {Refused}
    assert {error.code for error in refused} == {CloseCode.KEY_EXHAUSTED}
    assert sorted(one.name for one in enrolled) == [f"gpu-{n}" for n in range(1, 6)]
    assert len({one.worker_id for one in enrolled}) == 5
    assert len({one.welcome.api_key for one in enrolled}) == 5
    with any_context.database.connection():
        assert MasterKey.get_by_id(key["id"]).enrollments == 5
        assert Worker.select().count() == 5


def test_names_are_in_sequence_and_never_given_twice(any_context: Context, ann: Principal) -> None:
    key = new_key(any_context, ann, auto_name_prefix="gpu")["key"]
    names = [arrive(any_context, key).name for _ in range(3)]
    assert names == ["gpu-1", "gpu-2", "gpu-3"]
    with any_context.database.transaction():
        Worker.update(deleted_at=clock.now()).where(Worker.name == "gpu-3").execute()
        Worker.update(name="renamed").where(Worker.name == "gpu-1").execute()
    assert arrive(any_context, key).name == "gpu-4"
    other = new_key(any_context, ann, auto_name_prefix="gpu")["key"]
    assert arrive(any_context, other).name == "gpu-5"
    assert arrive(any_context, new_key(any_context, ann)["key"]).name == "worker-1"


def test_a_name_of_its_own_is_free_again_once_its_worker_is_removed(
    any_context: Context, ann: Principal
) -> None:
    key = new_key(any_context, ann)["key"]
    assert [arrive(any_context, key, name="attic").name for _ in range(2)] == ["attic", "attic-2"]
    with any_context.database.transaction():
        Worker.update(deleted_at=clock.now()).where(Worker.name == "attic").execute()
    assert arrive(any_context, key, name="attic").name == "attic"


def test_the_type_of_the_key_counts_unless_the_machine_says_another(
    any_context: Context, ann: Principal
) -> None:
    key = new_key(any_context, ann, default_worker_type="prompter")["key"]
    assert arrive(any_context, key).worker_type == WorkerType.PROMPTER
    said = arrive(any_context, key, worker_type="fine_tuner")
    assert said.worker_type == WorkerType.FINE_TUNER


def test_a_key_has_its_time(
    any_context: Context, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    key = new_key(any_context, ann, expires_at=soon)
    arrive(any_context, key["key"])
    monkeypatch.setattr(enrollment, "now", lambda: soon.timestamp() + 1)
    error = refusal(lambda: arrive(any_context, key["key"]))
    assert (error.code, error.reason) == (
        CloseCode.KEY_EXHAUSTED, "The enrolment key lab has expired.",
    )  # fmt: skip
    monkeypatch.undo()
    with pytest.raises(ParsynError, match="lies in the past") as caught:
        new_key(any_context, ann, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert caught.value.errors[0].loc == ("expires_at",)


def test_a_revoked_key_touches_nobody_who_is_enrolled(any_context: Context, ann: Principal) -> None:
    key = new_key(any_context, ann)
    enrolled = arrive(any_context, key["key"])
    any_context.database.write_sync(enrollment.revoke_key, ann, key["id"])
    error = refusal(lambda: arrive(any_context, key["key"]))
    assert (error.code, "was revoked" in error.reason) == (CloseCode.KEY_EXHAUSTED, True)
    with any_context.database.connection():
        assert enrollment.find_worker(enrolled.welcome.api_key).id == enrolled.worker_id
    again = arrive(any_context, enrolled.welcome.api_key)
    assert (again.worker_id, again.welcome.api_key) == (enrolled.worker_id, None)


def test_an_agent_whose_answer_was_lost_is_the_same_worker(
    any_context: Context, ann: Principal
) -> None:
    key = new_key(any_context, ann, max_enrollments=1, auto_name_prefix="gpu")
    first = arrive(any_context, key["key"], instance="a start of it")
    with any_context.database.connection():
        enrollment.check(key["key"])
    again = arrive(any_context, key["key"], instance="a start of it")
    assert (again.worker_id, again.name) == (first.worker_id, "gpu-1")
    with any_context.database.connection():
        assert MasterKey.get_by_id(key["id"]).enrollments == 1
        assert enrollment.find_worker(again.welcome.api_key).id == first.worker_id
        lost = refusal(lambda: enrollment.find_worker(first.welcome.api_key))
    assert lost.code == CloseCode.BAD_CREDENTIAL
    # Another machine with the key is another machine.
    error = refusal(lambda: arrive(any_context, key["key"], instance="of another"))
    assert "has been used 1 times, its limit" in error.reason


def test_the_answer_cannot_be_asked_for_for_ever(
    any_context: Context, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key(any_context, ann, max_enrollments=1)
    arrive(any_context, key["key"], instance="a start of it")
    later = clock.now() + enrollment.AGAIN_SECONDS + 1
    monkeypatch.setattr(enrollment, "now", lambda: later)
    error = refusal(lambda: arrive(any_context, key["key"], instance="a start of it"))
    assert error.code == CloseCode.KEY_EXHAUSTED
    with any_context.database.connection():
        refusal(lambda: enrollment.check(key["key"]))


def test_a_key_is_worth_what_its_maker_may_do(any_context: Context, ann: Principal) -> None:
    with any_context.database.transaction():
        bob = accounts.create_user("bob@example.org", "Bob", "", Role.USER, PASSWORD_HASH)
        project = Project.get(Project.owner == ann.user_id)
        row = ProjectMember.create(project=project, user=bob, role=ProjectRole.EDITOR)
    who = Principal(bob.id, Role.USER, ALL_SCOPES, "bearer")
    key = new_key(any_context, who, project_id=project.id)["key"]
    arrive(any_context, key)
    with any_context.database.transaction():
        ProjectMember.update(role=ProjectRole.VIEWER).where(ProjectMember.id == row.id).execute()
    error = refusal(lambda: arrive(any_context, key))
    assert "may no longer add machines" in error.reason
    with any_context.database.transaction():
        row.delete_instance()
    assert refusal(lambda: arrive(any_context, key)).code == CloseCode.KEY_EXHAUSTED
    with any_context.database.transaction():
        User.update(disabled=True).where(User.id == ann.user_id).execute()
    own = new_key(any_context, ann)["key"]
    assert "was revoked" in refusal(lambda: arrive(any_context, own)).reason


def test_who_may_not_stay_is_found_for_processes_that_were_not_told(
    any_context: Context, ann: Principal
) -> None:
    key = new_key(any_context, ann, auto_name_prefix="gpu")["key"]
    came = [arrive(any_context, key) for _ in range(4)]
    ids, keys = [one.worker_id for one in came], {one.worker_id: one.key_hash for one in came}
    with any_context.database.transaction():
        Worker.update(deleted_at=clock.now()).where(Worker.id == ids[1]).execute()
    with any_context.database.connection():
        assert presence.unwelcome(keys) == {ids[1]: "gpu-2 was removed."}
    with any_context.database.transaction():
        workers.rotate_key(any_context, ann, ids[3])
    with any_context.database.connection():
        found = presence.unwelcome(keys)
        assert found == {ids[1]: "gpu-2 was removed.", ids[3]: "This agent's key was replaced."}
    with any_context.database.transaction():
        User.update(disabled=True).where(User.id == ann.user_id).execute()
    with any_context.database.connection():
        assert set(presence.unwelcome(keys)) == set(ids)
        assert workers.find(ann, ids[0]).name == "gpu-1"
