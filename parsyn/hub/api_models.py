"""Models: brought in, looked at, downloaded; where they come from and what came of them."""

from __future__ import annotations

from typing import Any

from quart import Response, request

from parsyn.errors import ErrorCode, ParsynError, not_found
from parsyn.hub.archives import send_zip
from parsyn.hub.hub import hub, principal
from parsyn.hub.queries import IN_NAME, IN_PROJECT, choice, optional_id, search_text
from parsyn.hub.routing import Api, paging
from parsyn.hub.streaming import send_object
from parsyn.services import imports, lineage, model_cards, models
from parsyn.wire.api.base import Page
from parsyn.wire.api.models import LineageOut, ModelFileOut, ModelIn, ModelOut, ModelPatch
from parsyn.wire.states import ModelSource, ModelState, Scope

api = Api("models")


@api.endpoint(
    "GET",
    "/models",
    scope=Scope.READ,
    answers=Page[ModelOut],
    query={"project_id": IN_PROJECT, "state": "In this state.", "q": IN_NAME},
)
async def list_models() -> dict[str, Any]:
    """Models that the user may see, newest first; `project_id`, `state`, `q` filter."""
    limit, offset = paging()
    return await hub().context.database.read(
        models.page,
        principal(),
        limit,
        offset,
        project_id=optional_id("project_id"),
        state=choice("state", tuple(ModelState)),
        query=search_text(),
    )


@api.endpoint(
    "POST",
    "/models",
    scope=Scope.WRITE,
    body=ModelIn,
    answers=ModelOut,
    status=201,
    idempotent=True,
)
async def create(body: ModelIn) -> dict[str, Any]:
    """A model of the Hugging Face Hub, which an agent fetches, or one of uploaded files."""
    context, who = hub().context, principal()
    facts = None
    if body.source == "upload":
        facts = await context.database.read(
            imports.facts_of_uploads, context, who, body.upload_ids or []
        )
    return await context.database.write(imports.create, context, who, body, facts)


@api.endpoint("GET", "/models/<int:model_id>", scope=Scope.READ, answers=ModelOut)
async def get(model_id: int) -> dict[str, Any]:
    """One model."""
    return await hub().context.database.read(models.get, principal(), model_id)


@api.endpoint(
    "PATCH", "/models/<int:model_id>", scope=Scope.WRITE, body=ModelPatch, answers=ModelOut
)
async def change(model_id: int, body: ModelPatch) -> dict[str, Any]:
    """Rename a model; its slug stays."""
    context = hub().context
    return await context.database.write(models.change, context, principal(), model_id, body.name)


@api.endpoint("DELETE", "/models/<int:model_id>", scope=Scope.WRITE, status=204)
async def delete(model_id: int) -> None:
    """Delete a model and its files; not while a fine-tune or a job needs it."""
    context = hub().context
    await context.database.write(models.delete, context, principal(), model_id)


@api.endpoint("GET", "/models/<int:model_id>/files", scope=Scope.READ, answers=Page[ModelFileOut])
async def list_files(model_id: int) -> dict[str, Any]:
    """The files that the hub keeps of a model."""
    limit, offset = paging()
    found = await hub().context.database.read(models.files, principal(), model_id)
    return {"items": found[offset : offset + limit], "total": len(found)}


@api.endpoint("GET", "/models/<int:model_id>/lineage", scope=Scope.READ, answers=LineageOut)
async def lineage_of(model_id: int) -> dict[str, Any]:
    """Its bases, the data and jobs that made it, and what was made of it."""
    return await hub().context.database.read(lineage.graph, principal(), model_id)


@api.endpoint("GET", "/models/<int:model_id>/card", scope=Scope.READ)
async def card(model_id: int) -> Response:
    """What is known of the model, as markdown."""
    context = hub().context
    text = await context.database.read(model_cards.card, context, principal(), model_id)
    return Response(text, content_type="text/markdown; charset=utf-8")


@api.endpoint(
    "GET",
    "/models/<int:model_id>/download",
    scope=Scope.READ,
    query={"path": "One of the model's files instead of the archive."},
)
async def download(model_id: int) -> Response:
    """One archive of the model's files, or with `?path=` one of them."""
    context, who = hub().context, principal()
    row = await context.database.read(models.find, who, model_id)
    found = await context.database.read(models.files, who, model_id)
    path = request.args.get("path")
    if path is not None:
        file = next((file for file in found if file.path == path), None)
        if file is None:
            raise not_found("file")
        mimetype = "application/octet-stream"
        return send_object(
            context.storage,
            file.key,
            file.size,
            mimetype=mimetype,
            filename=path.rpartition("/")[2],
            etag=file.sha256,
        )
    if row.source == ModelSource.HUB:
        raise ParsynError(
            ErrorCode.INVALID_STATE,
            f"The weights of {row.name} are on the Hugging Face Hub as {row.hub_id}.",
        )
    if row.state != ModelState.READY:
        raise ParsynError(ErrorCode.INVALID_STATE, f"{row.name} is {row.state}, not ready.")
    return send_zip(context.storage, row.slug, found)
