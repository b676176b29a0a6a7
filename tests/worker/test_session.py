"""Coming to the hub, staying, being turned away and coming back."""

from __future__ import annotations

import asyncio
import dataclasses
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from parsyn.wire.worker import CloseCode, Heartbeat, Hello, SystemMetrics
from parsyn_worker import session
from parsyn_worker.address import HubAddress
from parsyn_worker.agent import Agent
from parsyn_worker.config import AgentConfig, load_config
from parsyn_worker.refusal import explain
from parsyn_worker.standing import read_standing
from tests.worker.conftest import Started, eventually
from tests.worker.fake_hub import FakeHub


async def test_says_hello_beats_and_measures(hub: FakeHub, start_agent: Started) -> None:
    await start_agent()
    hello = hub.of(Hello)[0]
    assert hello.device == "cpu"
    assert hello.hardware.cores > 0
    assert hello.running == ()
    await hub.wait_for(Heartbeat)
    metrics = await hub.wait_for(SystemMetrics)
    assert metrics.ram_total > metrics.ram_used > 0


async def test_enrolment_writes_the_own_key(
    hub: FakeHub,
    start_agent: Started,
    config: AgentConfig,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "agent"
    enrolling = dataclasses.replace(config, api_key=None, enrollment_key="enroll_good")
    await start_agent(enrolling)
    await hub.wait_for(SystemMetrics)
    path = folder / ".env"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.delenv("WORKER_API_KEY")
    written = load_config(folder)
    assert written.api_key in hub.keys
    assert not written.enrolling


async def test_comes_back_with_its_own_key(
    hub: FakeHub, start_agent: Started, config: AgentConfig
) -> None:
    enrolling = dataclasses.replace(config, api_key=None, enrollment_key="enroll_good")
    await start_agent(enrolling)
    await hub.wait_for(SystemMetrics)
    hub.enrollment_keys.clear()
    await hub.vanish()
    await hub.start()
    await hub.until(lambda: len(hub.of(Hello)) == 2, "it did not come back")
    assert len(hub.keys) == 2


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (CloseCode.REVOKED, "revoked"),
        (CloseCode.BAD_CREDENTIAL, "does not know this key"),
        (CloseCode.KEY_EXHAUSTED, "used up"),
        (CloseCode.PROTOCOL_TOO_OLD, "Update the agent"),
        (CloseCode.PROTOCOL_TOO_NEW, "Update the hub"),
    ],
)
async def test_a_refused_agent_says_why_and_does_not_hammer(
    hub: FakeHub,
    start_agent: Started,
    config: AgentConfig,
    caplog: pytest.LogCaptureFixture,
    code: CloseCode,
    words: str,
) -> None:
    agent = await start_agent()
    hub.refuse_with = (code, "the hub's own words")
    assert hub.socket is not None
    await hub.socket.close(code, "the hub's own words")

    def refused() -> bool:
        standing = read_standing(config.dir)
        return standing is not None and standing.phase == "refused"

    await eventually(refused, "it does not know that it was refused")
    assert words in (agent.standing.now.error or "")
    assert "the hub's own words" in caplog.text
    # With the delays of a lost connection it would have asked again by now.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(hub.until(lambda: hub.connections > 1, ""), 1.0)


async def test_a_second_agent_with_the_key_is_told_so_and_tries_again(
    hub: FakeHub, start_agent: Started, caplog: pytest.LogCaptureFixture
) -> None:
    await start_agent()
    assert hub.socket is not None
    await hub.socket.close(CloseCode.ALREADY_CONNECTED, "worker-1 is connected")
    await hub.until(lambda: len(hub.of(Hello)) == 2, "it did not come back")
    assert "Another agent is connected with this key" in caplog.text


async def test_refused_again_and_again_it_asks_at_the_longest_distance(
    hub: FakeHub, start_agent: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wait after a final refusal, with five minutes made half a second."""
    monkeypatch.setattr(session, "REFUSED_DELAY", 0.5)
    agent = await start_agent()
    hub.refuse_with = (CloseCode.REVOKED, "gone")
    assert hub.socket is not None
    await hub.socket.close(*hub.refuse_with)
    began = asyncio.get_running_loop().time()
    await hub.until(lambda: hub.connections >= 4, "it has given up")
    # Three waits of at least nine tenths of it lie between.
    assert asyncio.get_running_loop().time() - began >= 3 * 0.45 - 0.05
    hub.refuse_with = None
    await hub.until(lambda: len(hub.of(Hello)) == 2, "it does not come back when it may")
    await eventually(lambda: agent.standing.now.error is None, "it still says that it is refused")


@pytest.mark.parametrize("code", list(CloseCode))
def test_what_only_a_person_can_change_waits_for_minutes(code: CloseCode) -> None:
    closed = ConnectionClosedError(Close(code, "the hub's words"), None)
    refusal = explain(closed, "wss://hub")
    temporary = {
        CloseCode.GOING_AWAY, CloseCode.SERVICE_RESTART, CloseCode.SILENT,
        CloseCode.ALREADY_CONNECTED,
    }  # fmt: skip
    assert refusal.final == (code not in temporary)
    assert "the hub's words" in refusal.text
    made = session.Session.__new__(session.Session)
    made._backoff = session.Backoff(5.0)
    waits = [made._delay(refusal) for _ in range(50)]
    if refusal.final:
        assert min(waits) >= 270
    else:
        assert max(waits) <= 60


async def test_a_clock_that_is_off_is_told_once_and_harms_nothing(
    hub: FakeHub, start_agent: Started, caplog: pytest.LogCaptureFixture
) -> None:
    hub.clock_off = -3600
    hub.welcome_values["heartbeat_seconds"] = 0.1
    await start_agent()
    await hub.until(lambda: len(hub.of(Heartbeat)) >= 4, "it does not beat")
    assert hub.connections == 1
    told = [line for line in caplog.messages if "clock" in line]
    assert len(told) == 1
    assert "3600 s ahead of the hub's" in told[0]


# --- addresses that are no hub ------------------------------------------------------------------

Answer = Callable[[asyncio.StreamWriter], None]


def says(raw: bytes) -> Answer:
    return lambda writer: writer.write(raw)


def page(status: str, *headers: str) -> Answer:
    lines = (f"HTTP/1.1 {status}", "Content-Length: 2", "Connection: close", *headers, "", "ok")
    return says("\r\n".join(lines).encode())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (page("200 OK"), "There is no hub at {} (HTTP 200). Check PLATFORM_URL."),
        (page("404 Not Found"), "There is no hub at {} (HTTP 404). Check PLATFORM_URL."),
        (page("500 Oops"), "{} answers HTTP 500."),
        (page("502 Bad Gateway"), "{} answers HTTP 502."),
        (
            page("301 Moved Permanently", "Location: https://hub.example/ws/worker"),
            "{} sends on to https://hub.example/ws/worker. If the hub is there, set PLATFORM_URL",
        ),
        (says(b"SSH-2.0-OpenSSH_9.2\r\n"), "{} does not answer like a hub. Check PLATFORM_URL."),
        (says(b"\x15\x03\x01\x00\x02\x02\x16"), "{} does not answer like a hub."),
        (says(b""), "{}"),
    ],
)
async def test_an_address_that_is_no_hub_gets_a_sentence_and_never_the_key_twice(
    answer: Answer, words: str, config: AgentConfig, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
        answer(writer)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    there = dataclasses.replace(config, hub=HubAddress.parse(f"http://127.0.0.1:{port}"))
    agent = Agent(there)
    running = asyncio.create_task(agent.run())
    try:
        await eventually(lambda: bool(agent.standing.now.error), "it does not say what is wrong")
        error = agent.standing.now.error or ""
        assert words.format(there.hub.socket) in error
        assert len(error.splitlines()) == 1
        assert agent.standing.now.phase == "connecting", "it goes on trying"
        assert error in caplog.text
    finally:
        agent.stop()
        await running
        server.close()


async def test_a_hub_that_speaks_something_else(
    config: AgentConfig, caplog: pytest.LogCaptureFixture
) -> None:
    async def chat(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send('{"type":"greetings"}')
        await socket.wait_closed()

    async with serve(chat, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        there = dataclasses.replace(config, hub=HubAddress.parse(f"http://127.0.0.1:{port}"))
        agent = Agent(there)
        running = asyncio.create_task(agent.run())
        try:
            await eventually(
                lambda: "does not speak this protocol" in (agent.standing.now.error or ""),
                "it does not say what is wrong",
            )
        finally:
            agent.stop()
            await running
