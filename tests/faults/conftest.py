"""Which cases run: a sample by default, all with `--every-fault`, one with `--fault-case`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from tests.faults.pool import Outcome, Pool
from tests.faults.tally import note
from tests.postgres_server import PostgresServer, find_binaries

SAMPLE = {"sqlite": 200, "postgres": 10, "uploads": 20}
EVERY = {"sqlite": 1500, "postgres": 150, "uploads": 200}


def cases(config: pytest.Config) -> list[str]:
    """Names of the simulated cases of this run."""
    one = config.getoption("--fault-case")
    if one:
        return [str(one)]
    counts = EVERY if config.getoption("--every-fault") else SAMPLE
    return [f"{database}:{seed}" for database, count in counts.items() for seed in range(count)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "simulated" in metafunc.fixturenames:
        metafunc.parametrize("simulated", cases(metafunc.config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long runs on demand only."""
    if not config.getoption("--every-fault"):
        for item in items:
            if item.get_closest_marker("on_demand"):
                item.add_marker(pytest.mark.skip(reason="runs with `make faults`"))


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when != "call" or not item.get_closest_marker("fault_case"):
        return
    error = call.excinfo.value if call.excinfo else None
    if not isinstance(error, pytest.skip.Exception):
        name = item.callspec.params.get("simulated") if hasattr(item, "callspec") else None
        note(item, f"--fault-case={name}" if name else f'-k "{item.name}"', error)


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Outcome]]]:
    """All selected cases, each as a promise; they run while the first are waited for."""
    wanted = [
        item.callspec.params["simulated"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and "simulated" in item.callspec.params
    ]
    postgres: PostgresServer | None = None
    if any(case.startswith("postgres") for case in wanted) and find_binaries():
        postgres = request.getfixturevalue("postgres")
    pool = Pool(postgres)
    runnable = [case for case in wanted if postgres or not case.startswith("postgres")]
    try:
        yield {case: pool.submit(case) for case in runnable}
    finally:
        pool.close()
