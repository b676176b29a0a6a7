"""One way to declare a route: its guard, body, answer and status, in one place.

A route that is not declared through `Api.endpoint` is refused by the guard (403), so nothing is
open by accident; OpenAPI and the authorisation matrix are generated from the same declarations.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from quart import Blueprint, Response, request

from parsyn.errors import ErrorCode, FieldError, ParsynError, invalid, not_found
from parsyn.hub.endpoint import Endpoint
from parsyn.hub.idempotency import once
from parsyn.wire.states import Role, Scope

Handler = Callable[..., Awaitable[Any]]
LARGEST_ID = 2**31 - 1


class Api:
    """A blueprint whose routes are all declared."""

    def __init__(self, name: str, prefix: str = "/api/v1") -> None:
        self.blueprint = Blueprint(name, __name__, url_prefix=prefix or None)
        self.prefix = prefix
        self.tag = name
        self.endpoints: list[Endpoint] = []

    def endpoint(
        self,
        method: str,
        path: str,
        *,
        scope: Scope | None,
        role: Role = Role.USER,
        body: type[BaseModel] | None = None,
        answers: Any = None,
        status: int = 200,
        idempotent: bool = False,
        ticket: bool = False,
        form: bool = False,
        query: Mapping[str, str] | None = None,
    ) -> Callable[[Handler], Handler]:
        """Declare an operation; the first line of the handler's docstring is its summary.

        The handler gets the parsed `body` (when one is declared) and the path's values. What it
        returns is validated as `answers` and sent as JSON; a Response is sent as it is. With
        `ticket` the handler checks a signed ticket itself (storage). With `form` the body may also
        come as multipart/form-data; the handler then gets None and reads the form.
        `query` describes what the handler reads of the query string, for OpenAPI.
        """

        def declare(handler: Handler) -> Handler:
            declared = Endpoint(
                name=f"{self.tag}.{handler.__name__}",
                method=method,
                path=f"{self.prefix}{path}",
                summary=(handler.__doc__ or "").strip().split("\n")[0],
                scope=scope,
                role=role,
                body=body,
                answers=answers,
                status=status,
                idempotent=idempotent,
                tag=self.tag,
                ticket=ticket,
                form=form,
                query=query or {},
            )
            self.endpoints.append(declared)
            view = _view(handler, declared)
            view.parsyn_endpoint = declared  # type: ignore[attr-defined]
            self.blueprint.add_url_rule(
                path, f"{handler.__name__}", view, methods=[method], strict_slashes=False
            )
            return handler

        return declare


def _view(handler: Handler, declared: Endpoint) -> Callable[..., Awaitable[Response]]:
    adapter = TypeAdapter(declared.answers) if declared.answers is not None else None

    @functools.wraps(handler)
    async def view(**values: Any) -> Response:
        _refuse_impossible_ids(values)
        if declared.body is not None:
            is_form = declared.form and request.mimetype == "multipart/form-data"
            values["body"] = None if is_form else await parse_body(declared.body)
        if declared.idempotent and request.headers.get("Idempotency-Key"):
            return await once(lambda: _answer(handler, values, adapter, declared.status))
        return await _answer(handler, values, adapter, declared.status)

    return view


async def _answer(
    handler: Handler, values: dict[str, Any], adapter: TypeAdapter[Any] | None, status: int
) -> Response:
    result = await handler(**values)
    if isinstance(result, Response):
        return result
    if adapter is None:
        return Response("", status=204 if result is None else status)
    checked = adapter.validate_python(result, from_attributes=True)
    return Response(
        adapter.dump_json(checked, by_alias=True), status=status, mimetype="application/json"
    )


async def parse_body(model: type[BaseModel]) -> BaseModel:
    """The request's JSON as `model`. Raises 415, 400 and 422 in words."""
    raw = await request.get_data()
    if raw and "json" not in (request.mimetype or "json"):
        raise ParsynError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            f"Send JSON with Content-Type: application/json, not {request.mimetype}.",
        )
    try:
        given = json.loads(raw, parse_constant=_refuse_constant) if raw else {}
        refuse_unstorable(given)
    except (ValueError, RecursionError) as error:
        raise ParsynError(ErrorCode.MALFORMED, f"The body is not valid JSON: {error}.") from None
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise validation_problem(error) from None


def _refuse_impossible_ids(values: dict[str, Any]) -> None:
    """An id beyond what a database can hold is the id of nothing."""
    if any(isinstance(value, int) and value > LARGEST_ID for value in values.values()):
        raise not_found("thing")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def refuse_unstorable(value: Any, loc: tuple[str | int, ...] = ()) -> None:
    """Raise 422 where a text holds what no database takes: NUL, or half of a character."""
    if isinstance(value, str):
        if "\0" in value or _has_half_character(value):
            raise invalid(loc or ("body",), "The text holds a character that cannot be stored.")
    elif isinstance(value, dict):
        for key, inner in value.items():
            refuse_unstorable(key, loc)
            refuse_unstorable(inner, (*loc, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            refuse_unstorable(inner, (*loc, place))


def _has_half_character(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def validation_problem(error: ValidationError) -> ParsynError:
    """A pydantic error as a 422 with `loc`s."""
    fields = [
        FieldError(tuple(item["loc"]), item["msg"].removeprefix("Value error, "))
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    first = fields[0]
    where = ".".join(map(str, first.loc)) or "body"
    return ParsynError(ErrorCode.VALIDATION_FAILED, f"{where}: {first.msg}", errors=fields)


def paging() -> tuple[int, int]:
    """(limit, offset) of the query string; limit 1..200, 50 by default."""
    return integer("limit", 50, 1, 200), integer("offset", 0, 0, 2**53)


def integer(name: str, default: int, minimum: int, maximum: int) -> int:
    """A whole number of the query string within bounds."""
    text = request.args.get(name)
    if text is None:
        return default
    if not text.lstrip("-").isascii() or not text.lstrip("-").isdigit():
        raise _bad_query(name, f"must be a whole number, not {text!r}")
    value = int(text)
    if not minimum <= value <= maximum:
        raise _bad_query(name, f"must lie between {minimum} and {maximum}")
    return value


def _bad_query(name: str, what: str) -> ParsynError:
    message = f"{name} {what}."
    return ParsynError(
        ErrorCode.VALIDATION_FAILED, message, errors=[FieldError(("query", name), message)]
    )
