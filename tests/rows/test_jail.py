"""The child that reads users' files: what it may use, and how each of its deaths is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parsyn.errors import ErrorCode, ParsynError
from parsyn.rows import jail
from parsyn.rows.jail import measure_file, preview_file, render_chat, run_child, validate_file
from parsyn.rows.requests import (
    PreviewRequest,
    RenderRequest,
    Source,
    StatsRequest,
    ValidateRequest,
)
from parsyn.wire.states import DatasetStatus, FileFormat, SchemaKind

Write = Callable[[str, bytes | str], Path]
TIMEOUT = 60.0


def source(path: Path, **more: object) -> Source:
    return Source(str(path), path.name, **more)  # type: ignore[arg-type]


@pytest.fixture
def any_request(write: Write) -> ValidateRequest:
    return ValidateRequest(source(write("a.jsonl", '{"text": "a"}\n')))


def test_every_operation_through_a_real_child(write: Write, model_dir: Path) -> None:
    path = write("a.jsonl", '{"prompt": "a", "completion": "b"}\n' * 3)
    report = validate_file(ValidateRequest(source(path)), timeout=TIMEOUT)
    assert (report.status, report.row_count) == (DatasetStatus.READY, 3)
    assert report.file_format is FileFormat.JSONL
    assert report.schema_kind is SchemaKind.PROMPT_COMPLETION
    model = str(model_dir)
    page = preview_file(PreviewRequest(source(path), 1, 1, model), timeout=TIMEOUT)
    assert [row.row for row in page.items] == [2]
    assert page.items[0].tokens is not None
    stats = measure_file(StatsRequest(source(path), model), timeout=TIMEOUT)
    assert (stats.rows, stats.duplicates.exact) == (3, 2)
    chat = RenderRequest(model, [{"role": "user", "content": "hi"}], None, False)
    assert render_chat(chat, timeout=TIMEOUT).text == "<|im_start|>user\nhi<|im_end|>\n"


def test_parquet_within_the_childs_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"row {n}" for n in range(5000)]}), path)
    report = validate_file(ValidateRequest(source(path)), timeout=TIMEOUT)
    assert (report.file_format, report.row_count) == (FileFormat.PARQUET, 5000)


@pytest.mark.parametrize(
    ("mapping", "loc"),
    [({"prompt": "x"}, ("mapping", "prompt")), ({"colour": "text"}, ("mapping",))],
)
def test_a_mapping_that_does_not_fit(
    any_request: ValidateRequest, mapping: dict[str, str], loc: tuple[str, ...]
) -> None:
    request = ValidateRequest(Source(any_request.source.path, "a.jsonl", mapping=mapping))
    with pytest.raises(ParsynError) as caught:
        validate_file(request, timeout=TIMEOUT)
    assert caught.value.code is ErrorCode.VALIDATION_FAILED
    assert caught.value.errors[0].loc == loc


def test_a_file_that_cannot_be_shown_and_a_model_that_cannot_be_read(
    write: Write, any_request: ValidateRequest, tmp_path: Path
) -> None:
    with pytest.raises(ParsynError, match="The file is empty") as caught:
        preview_file(PreviewRequest(source(write("e.jsonl", ""))), timeout=TIMEOUT)
    assert caught.value.code is ErrorCode.BAD_DATA
    request = PreviewRequest(any_request.source, model_dir=str(tmp_path))
    with pytest.raises(ParsynError, match=r"no tokenizer\.json") as caught:
        preview_file(request, timeout=TIMEOUT)
    assert caught.value.code is ErrorCode.BAD_DATA


def test_a_missing_file_is_told_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(ParsynError) as caught:
        validate_file(ValidateRequest(source(tmp_path / "none.jsonl")), timeout=TIMEOUT)
    assert caught.value.code is ErrorCode.INTERNAL
    assert str(tmp_path) not in caught.value.detail


def test_a_row_group_larger_than_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["x" * (160 << 20)]}), path)
    assert path.stat().st_size < 16 << 20
    request = ValidateRequest(source(path, row_bytes=1 << 30))
    report = validate_file(request, timeout=TIMEOUT, memory_bytes=400 << 20)
    assert report.status is DatasetStatus.INVALID
    assert "memory" in report.summary


def test_a_template_that_never_ends(model_dir: Path) -> None:
    loop = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"
    (model_dir / "chat_template.jinja").write_text(loop)
    started = time.monotonic()
    with pytest.raises(ParsynError, match="took longer than 1 s") as caught:
        render_chat(RenderRequest(str(model_dir), []), timeout=1)
    assert caught.value.code is ErrorCode.TIMEOUT
    assert time.monotonic() - started < 20


def test_a_template_that_eats_memory(model_dir: Path) -> None:
    doubling = (
        "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}"
        "{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"
    )
    (model_dir / "chat_template.jinja").write_text(doubling)
    with pytest.raises(ParsynError, match="memory") as caught:
        render_chat(RenderRequest(str(model_dir), []), timeout=TIMEOUT)
    assert caught.value.code is ErrorCode.BAD_DATA


def test_the_child_has_no_secrets_and_tight_limits(
    any_request: ValidateRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSYN_SECRET", "s3cret")
    tell = (
        "import json, os, resource, sys; sys.path[:] = json.loads(sys.argv[1])\n"
        "from parsyn.rows.child import bound; bound(json.load(sys.stdin)['limits'])\n"
        "limits = {n: resource.getrlimit(getattr(resource, 'RLIMIT_' + n))[0]"
        " for n in ('AS', 'CPU', 'CORE', 'NOFILE', 'FSIZE')}\n"
        "print(json.dumps({'result': [dict(os.environ), limits, os.getcwd(), sys.flags.isolated]}))"
    )
    monkeypatch.setattr(jail, "_START", tell)
    environment, limits, folder, isolated = run_child(any_request, 7, 1 << 30)
    assert "s3cret" not in json.dumps(environment)
    assert "HOME" not in environment
    assert limits == {"AS": 1 << 30, "CPU": 8, "CORE": 0, "NOFILE": 64, "FSIZE": 64 << 20}
    assert (folder, isolated) == ("/", 1)


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("import os; os.abort()", ErrorCode.BAD_DATA, "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", ErrorCode.BAD_DATA, "SIGSEGV"),
        (
            "import os, sys; print('memory allocation of 9 bytes failed', file=sys.stderr, "
            "flush=True); os.abort()",
            ErrorCode.BAD_DATA,
            "more than 1,024 MiB of memory",
        ),
        ("import os; os._exit(3)", ErrorCode.BAD_DATA, "exit status 3"),
        ("import os; os.kill(os.getpid(), 9)", ErrorCode.UNAVAILABLE, "killed"),
        ("import os; os.kill(os.getpid(), 24)", ErrorCode.TIMEOUT, "took longer"),
        ("print('not json')", ErrorCode.INTERNAL, "no answer that makes sense"),
        ("print('[1]')", ErrorCode.INTERNAL, "no answer that makes sense"),
        ("""print('{"result": {"status": "fine"}}')""", ErrorCode.INTERNAL, "makes sense"),
        ("""print('{"error": 3}')""", ErrorCode.INTERNAL, "makes sense"),
        (
            """print('{"error": {"code": "x", "detail": "TypeError"}}')""",
            ErrorCode.INTERNAL,
            "TypeError",
        ),
        (
            "raise SystemExit('\\n'.join('x' * 99 for _ in range(99999)))",
            ErrorCode.BAD_DATA,
            "status 1",
        ),
    ],
)
def test_each_death_is_one_sentence(
    any_request: ValidateRequest,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    error: ErrorCode,
    words: str,
) -> None:
    monkeypatch.setattr(jail, "_START", code)
    with pytest.raises(ParsynError, match=words) as caught:
        validate_file(any_request, timeout=TIMEOUT)
    assert caught.value.code is error
    assert "\n" not in caught.value.detail
    assert "Traceback" not in caught.value.detail


def test_a_late_child_is_killed_with_what_it_started(
    any_request: ValidateRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    monkeypatch.setattr(jail, "_START", code)
    with pytest.raises(ParsynError, match="took longer than 2 s"):
        run_child(any_request, 2)
    deadline = time.monotonic() + 20
    while _is_alive(int(note.read_text())):
        assert time.monotonic() < deadline, "the grandchild is still alive"


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_module_answers_on_standard_output(any_request: ValidateRequest) -> None:
    order = {
        "limits": {"memory": 1 << 30, "cpu": 30, "answer": 1 << 20},
        "request": asdict(any_request),
    }
    done = subprocess.run(
        [sys.executable, "-m", "parsyn.rows.child"],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=Path(__file__).parents[2],
        env={"PATH": os.defpath},
        check=True,
    )
    assert json.loads(done.stdout)["result"]["row_count"] == 1
    assert done.stderr == ""
