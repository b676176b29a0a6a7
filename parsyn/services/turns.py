"""Turns of a conversation: questions are kept before they are asked, answers as they came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from parsyn.clock import now
from parsyn.errors import ErrorCode, ParsynError, invalid
from parsyn.services import inference
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
    """One question on its way: what the model gets, and which answers the new one replaces."""

    conversation_id: int
    target: Target
    messages: tuple[dict[str, Any], ...]
    sampling: Sampling
    replaces: tuple[int, ...] = ()


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
    """Store the question (or take the last one again) and build what the model gets.

    A question that is sent once more because its answer failed is not stored twice. The
    conversation is `process`'s until `keep` or `release`.

    Raises 404, 403, 422 for an empty question, 409 where there is nothing to regenerate or another
    hub process is at it.
    """
    row = find(who, conversation_id, ProjectRole.EDITOR)
    _claim(row, process)
    history = messages_of(row)
    replaces: tuple[int, ...] = ()
    if body.regenerate or _asks_again(history, body.content):
        replaces = _last_answers(history, body)
        history = [message for message in history if message.id not in replaces]
    else:
        history.append(_store_question(row, body.content))
    Conversation.update(updated_at=now()).where(Conversation.id == row.id).execute()
    return Turn(
        conversation_id=row.id,
        target=aim,
        messages=_prompt(row.system_prompt, history),
        sampling=inference.merged(aim.defaults, row.params, body.params.model_dump()),
        replaces=replaces,
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

    An answer that failed without a word does not replace a good one.
    """
    release(turn.conversation_id)
    row = Conversation.get_or_none(Conversation.id == turn.conversation_id)
    text = written.text.replace("\x00", "")
    if row is None or (turn.replaces and not text and written.finish_reason != "stop"):
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
    )
    Conversation.update(updated_at=now()).where(Conversation.id == row.id).execute()
    return int(message.id)


def _asks_again(history: list[Message], content: str | None) -> bool:
    """True for the last question once more, whose answer failed or never came."""
    while history and history[-1].role == "assistant" and history[-1].finish_reason not in ENDED:
        history = history[:-1]
    return bool(history) and history[-1].role == "user" and history[-1].content == content


def _last_answers(history: list[Message], body: MessageIn) -> tuple[int, ...]:
    if body.regenerate and body.content is not None:
        raise invalid(["content"], "Leave it out: regenerate asks the last question again.")
    questions = [message.id for message in history if message.role == "user"]
    if not questions:
        raise ParsynError(ErrorCode.INVALID_STATE, "There is no question yet to answer again.")
    return tuple(message.id for message in history if message.id > questions[-1])


def _store_question(row: Conversation, content: str | None) -> Message:
    if content is None or not content.strip():
        raise invalid(["content"], "The message is empty; write something.")
    if not row.title:
        title = title_of(content)
        Conversation.update(title=title).where(Conversation.id == row.id).execute()
    return Message.create(conversation=row, role="user", content=content)


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
