"""Conversations: what was asked and answered, and with which model and parameters."""

from __future__ import annotations

from typing import Any

from parsyn.errors import invalid, not_found
from parsyn.services import inference
from parsyn.services.branches import Branches
from parsyn.services.context import Context
from parsyn.services.principal import Principal, project_for, require_role
from parsyn.store.conversations import Conversation, Message
from parsyn.store.projects import visible
from parsyn.wire.api.chat import ConversationIn, ConversationPatch
from parsyn.wire.states import ProjectRole


def as_out(row: Conversation) -> dict[str, Any]:
    """As `ConversationOut` wants it."""
    return {
        **row.__data__,
        "project_id": row.project_id,
        "user_id": row.user_id,
        "model_id": row.model_id,
    }


def message_out(row: Message, branches: Branches) -> dict[str, Any]:
    """As `MessageOut` wants it."""
    return {**row.__data__, "model_id": row.model_id, "parent_id": branches.parent_of(row)}


def find(
    who: Principal, conversation_id: int, at_least: ProjectRole = ProjectRole.VIEWER
) -> Conversation:
    """The row. Raises 404 where it is not theirs to see, 403 below the role."""
    row = Conversation.get_or_none(
        (Conversation.id == conversation_id) & visible(Conversation, who.user_id)
    )
    if row is None:
        raise not_found("conversation")
    require_role(who, row.project_id, at_least)
    return row


def page(who: Principal, model_id: int | None, limit: int, offset: int) -> dict[str, Any]:
    """The visible conversations, the one that was used last first."""
    rows = Conversation.select().where(visible(Conversation, who.user_id))
    if model_id is not None:
        rows = rows.where(Conversation.model == model_id)
    ordered = rows.order_by(Conversation.updated_at.desc(), Conversation.id.desc())
    return {
        "items": [as_out(row) for row in ordered.limit(limit).offset(offset)],
        "total": rows.count(),
    }


def create(context: Context, who: Principal, body: ConversationIn) -> dict[str, Any]:
    """A conversation without messages; its title comes from the first one unless it is given."""
    project_id = project_for(who, body.project_id)
    model = inference.visible_model(who, body.model_id, "model_id")
    row = Conversation.create(
        user=who.user_id,
        project=project_id,
        model=model.id,
        title=body.title or "",
        system_prompt=body.system_prompt or None,
        params=body.params.model_dump(exclude_none=True),
    )
    return as_out(row)


def detail(who: Principal, conversation_id: int) -> dict[str, Any]:
    """As `ConversationDetail` wants it: with every message of every branch, oldest first."""
    row = find(who, conversation_id)
    branches = Branches(messages_of(row))
    return {**as_out(row), "messages": [message_out(one, branches) for one in branches.messages]}


def rate(
    who: Principal, conversation_id: int, message_id: int, rating: int | None
) -> dict[str, Any]:
    """Say that an answer is good (1) or bad (-1). Raises 404, 403, 422 for a question."""
    row = find(who, conversation_id, ProjectRole.EDITOR)
    branches = Branches(messages_of(row))
    message = branches.get(message_id)
    if message is None:
        raise not_found("message")
    if message.role != "assistant":
        raise invalid(["rating"], "Only an answer is rated.")
    Message.update(rating=rating).where(Message.id == message_id).execute()
    message.rating = rating
    return message_out(message, branches)


def change(who: Principal, conversation_id: int, body: ConversationPatch) -> dict[str, Any]:
    """Change what the body names. Raises 404, 403, and 422 for a model that is not theirs."""
    row = find(who, conversation_id, ProjectRole.EDITOR)
    given = body.model_dump(exclude_unset=True)
    changes: dict[str, Any] = {}
    if given.get("model_id") is not None:
        changes["model"] = inference.visible_model(who, given["model_id"], "model_id").id
    if given.get("title") is not None:
        changes["title"] = given["title"]
    if "system_prompt" in given:
        changes["system_prompt"] = given["system_prompt"] or None
    if "params" in given:
        params = body.params.model_dump(exclude_none=True) if body.params else {}
        changes["params"] = params
    if changes:
        Conversation.update(**changes).where(Conversation.id == row.id).execute()
    return as_out(Conversation.get_by_id(row.id))


def delete(who: Principal, conversation_id: int) -> None:
    """Delete it with its messages. Raises 404, 403."""
    row = find(who, conversation_id, ProjectRole.EDITOR)
    Conversation.delete().where(Conversation.id == row.id).execute()


def messages_of(row: Conversation) -> list[Message]:
    """Its messages, oldest first."""
    rows = Message.select().where(Message.conversation == row.id).order_by(Message.id)
    return list(rows)
