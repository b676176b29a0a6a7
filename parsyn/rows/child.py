"""The process that touches users' bytes: `python -m parsyn.rows.child`.

Reads one JSON request on standard input, bounds itself, writes one JSON answer on standard output:
`{"result": …}` or `{"error": {"code", "detail", "loc"}}`.
"""

from __future__ import annotations

import json
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from parsyn.rows.mapping import BadMapping
from parsyn.rows.preview import preview, render
from parsyn.rows.problems import BadRow, UnusableFile
from parsyn.rows.report import validate
from parsyn.rows.requests import (
    PreviewRequest,
    RenderRequest,
    Source,
    StatsRequest,
    ValidateRequest,
)
from parsyn.rows.statistics import measure
from parsyn.rows.template import TemplateError
from parsyn.wire.states import SchemaKind

_OPEN_FILES = 64


def main() -> None:
    order = json.load(sys.stdin.buffer)
    bound(order["limits"])
    try:
        answer: dict[str, Any] = {"result": answer_to(order["request"])}
    except Exception as error:
        answer = {"error": _error(error)}
    # Escaped ASCII: whatever a row holds, the answer is valid JSON in UTF-8.
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()


def bound(limits: Mapping[str, int]) -> None:
    """`memory` and `answer` in bytes, `cpu` in seconds. Lowered for good, before any file."""
    for kind, value in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, limits["cpu"]),
        (resource.RLIMIT_FSIZE, limits["answer"]),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # The soft limit of CPU time says so with its own signal, the hard one only kills.
        ceiling = hard if kind == resource.RLIMIT_CPU else value
        resource.setrlimit(kind, (value, ceiling))


def answer_to(request: dict[str, Any]) -> Any:
    operation = _OPERATIONS[request["op"]]
    return operation(request)


def _validate(request: dict[str, Any]) -> Any:
    return asdict(validate(ValidateRequest(**{**request, "source": _source(request)})))


def _preview(request: dict[str, Any]) -> Any:
    return asdict(preview(PreviewRequest(**{**request, "source": _source(request)})))


def _stats(request: dict[str, Any]) -> Any:
    return asdict(measure(StatsRequest(**{**request, "source": _source(request)})))


def _render(request: dict[str, Any]) -> Any:
    return asdict(render(RenderRequest(**request)))


def _source(request: dict[str, Any]) -> Source:
    fields = dict(request["source"])
    kind = fields.get("schema_kind")
    return Source(**{**fields, "schema_kind": None if kind is None else SchemaKind(kind)})


_OPERATIONS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "validate": _validate,
    "preview": _preview,
    "stats": _stats,
    "render": _render,
}


def _error(error: Exception) -> dict[str, Any]:
    match error:
        case BadMapping():
            loc = ["mapping", *([error.key] if error.key else [])]
            return {"code": "validation_failed", "detail": error.message, "loc": loc}
        case UnusableFile():
            return {"code": "bad_data", "detail": error.problem.message, "loc": []}
        case BadRow():
            return {"code": "bad_data", "detail": error.message, "loc": []}
        case TemplateError():
            return {"code": "bad_data", "detail": str(error), "loc": []}
        case MemoryError():
            return {"code": "memory", "detail": "", "loc": []}
        case FileNotFoundError() | PermissionError():
            return {"code": "internal", "detail": "The file is gone or not readable.", "loc": []}
        case _:
            traceback.print_exc()
            return {"code": "internal", "detail": type(error).__name__, "loc": []}


if __name__ == "__main__":
    main()
