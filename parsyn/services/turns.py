"""Turns of a conversation: questions are kept before they are asked, answers as they came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, invalid
from parsyn.services import inference
from parsyn.services.branches import ROOT, Branches
from parsyn.services.context import Context
from parsyn.services.conversations import find, messages_of
from parsyn.services.inference import Target
from parsyn.services.principal import Principal
from parsyn.store.conversations import Conversation, Message
from parsyn.store.models import Model
from parsyn.wire.api.chat import MessageIn
from parsyn.wire.states import ProjectRole
from parsyn.wire.worker import Sampling, Timings, Usage

TITLE_CHARACTERS = 60
ENDED = frozenset({"stop", "length", "cancelled"})
"""Ways of an answer to end that its reader has seen as one."""


@dataclass(frozen=True)
class Turn:
    """One question on its way: what the model gets, and which answers that failed the new one
    replaces. `has_answer` says that there is a good one already."""

    conversation_id: int
    question_id: int
    target: Target
    messages: tuple[dict[str, Any], ...]
    sampling: Sampling
    replaces: tuple[int, ...] = ()
    has_answer: bool = False


@dataclass(frozen=True)
class Written:
    """What a worker made of a turn. `finish_reason` says why it ended, well or not."""

    text: str
    finish_reason: str
    worker_name: str
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    failed: bool = False


def target(context: Context, who: Principal, conversation_id: int) -> Target:
    """The model that this conversation asks. Raises 404, 403, 409 where there is none or it is
    not ready."""
    row = find(who, conversation_id, ProjectRole.EDITOR)
    if row.model_id is None:
        raise ParsynError(
            ErrorCode.INVALID_STATE,
            "The model of this conversation was deleted; choose another one for it.",
        )
    return inference.target_of(context, who, row.model_id)


def ask(
    who: Principal, conversation_id: int, body: MessageIn, aim: Target, process: str = ""
) -> Turn:
    """Store the question (or take one again) and build what the model gets.

    A question that is sent once more because its answer failed is not stored twice. The
    conversation is `process`'s until `keep` or `release`.

    Raises 404, 403, 422 for an empty question or a message that is not of this conversation, 409
    where there is nothing to regenerate or another hub process is at it.
    """
    row = find(who, conversation_id, ProjectRole.EDITOR)
    _claim(row, process)
    branches = Branches(messages_of(row))
    if body.regenerate:
        path = _to_question(branches, body)
    else:
        path = _asked_again(branches, body) or _with_question(row, branches, body)
    answers = branches.after(path[-1].id)
    Conversation.update(updated_at=now()).where(Conversation.id == row.id).execute()
    return Turn(
        conversation_id=row.id,
        question_id=path[-1].id,
        target=aim,
        messages=_prompt(row.system_prompt, path),
        sampling=inference.merged(aim.defaults, row.params, body.params.model_dump()),
        replaces=tuple(
            one.id for one in answers if _has_failed(one) and not branches.after(one.id)
        ),
        has_answer=any(not _has_failed(one) for one in answers),
    )


def _claim(row: Conversation, process: str) -> None:
    free = Conversation.answering.is_null() | (Conversation.answering == process)
    taken = (
        Conversation.update(answering=process or None)
        .where((Conversation.id == row.id) & free)
        .execute()
    )
    if not taken:
        raise still_answering()


def still_answering() -> ParsynError:
    return ParsynError(
        ErrorCode.CONFLICT,
        "An answer is still being written in this conversation; stop it or wait for it.",
        retry_after=1,
    )


def release(conversation_id: int) -> None:
    """No answer is written there any more."""
    Conversation.update(answering=None).where(Conversation.id == conversation_id).execute()


def keep(turn: Turn, written: Written) -> int | None:
    """Store an answer, as far as it came; its id, None where there is nothing to keep.

    One that failed without a word is not kept beside a good one.
    """
    release(turn.conversation_id)
    row = Conversation.get_or_none(Conversation.id == turn.conversation_id)
    text = written.text.replace("\x00", "")
    is_empty = not text and written.finish_reason != "stop"
    if row is None or (is_empty and (turn.replaces or turn.has_answer)):
        return None
    Message.delete().where(
        Message.id.in_(turn.replaces) & (Message.conversation == row.id)
    ).execute()
    message = Message.create(
        conversation=row,
        role="assistant",
        content=text,
        model=_still_there(turn),
        worker_name=written.worker_name,
        finish_reason=written.finish_reason,
        usage=written.usage.model_dump(),
        timings=written.timings.model_dump(),
        parent_id=turn.question_id,
    )
    Conversation.update(updated_at=now()).where(Conversation.id == row.id).execute()
    return int(message.id)


def _has_failed(message: Message) -> bool:
    return message.role == "assistant" and message.finish_reason not in ENDED


def _start(branches: Branches, body: MessageIn) -> list[Message]:
    """The messages before the question: of the branch that was named, else of the newest one."""
    if "parent_id" not in body.model_fields_set:
        return branches.newest_path()
    if body.parent_id is not None and branches.get(body.parent_id) is None:
        raise invalid(["parent_id"], "There is no such message in this conversation.")
    return branches.path_to(body.parent_id)


def _asked_again(branches: Branches, body: MessageIn) -> list[Message] | None:
    """The way to the last question, where it is sent once more since it was not answered."""
    path = _start(branches, body)
    while path and _has_failed(path[-1]):
        path = path[:-1]
    again = path and path[-1].role == "user" and path[-1].content == body.content
    return path if again else None


def _to_question(branches: Branches, body: MessageIn) -> list[Message]:
    if body.content is not None:
        raise invalid(["content"], "Leave it out: regenerate asks the last question again.")
    path = _start(branches, body)
    while path and path[-1].role != "user":
        path = path[:-1]
    if not path:
        raise ParsynError(ErrorCode.INVALID_STATE, "There is no question yet to answer again.")
    return path


def _with_question(row: Conversation, branches: Branches, body: MessageIn) -> list[Message]:
    if body.content is None or not body.content.strip():
        raise invalid(["content"], "The message is empty; write something.")
    if not row.title:
        title = title_of(body.content)
        Conversation.update(title=title).where(Conversation.id == row.id).execute()
    path = _start(branches, body)
    question = Message.create(
        conversation=row,
        role="user",
        content=body.content,
        parent_id=path[-1].id if path else ROOT,
    )
    return [*path, question]


def title_of(content: str) -> str:
    """The beginning of the first message, cut between words."""
    text = " ".join(content.split())
    if len(text) <= TITLE_CHARACTERS:
        return text
    cut = text[:TITLE_CHARACTERS]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut else cut}…"


def _prompt(system: str | None, history: list[Message]) -> tuple[dict[str, Any], ...]:
    """Turns in the order that chat templates insist on: one of each after the other.

    A question whose answer never came is joined with the next one.
    """
    turns: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in history:
        if not message.content:
            continue
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += f"\n\n{message.content}"
        else:
            turns.append({"role": message.role, "content": message.content})
    return tuple(turns)


def _still_there(turn: Turn) -> int | None:
    model = Model.get_or_none(Model.id == turn.target.model.id)
    return None if model is None else int(model.id)
