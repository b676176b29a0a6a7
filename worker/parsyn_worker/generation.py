"""One answer, token by token: prefill, sample, detokenise, and know when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal, cast

from parsyn.plugin.task import TaskFailure
from parsyn.rows.template import TemplateError
from parsyn.rows.turns import Message
from parsyn.wire.states import FailureReason
from parsyn.wire.worker import Timings, Usage
from parsyn_worker.answer_text import Detokenizer, StopFilter
from parsyn_worker.choose import Chooser
from parsyn_worker.events import ChatOrder
from parsyn_worker.shelf import Base, Shelf, Voice

PREFILL = 2048
"""Prompt tokens of one forward pass: a long prompt can be cancelled, and needs less memory."""

Finish = Literal["stop", "length"]


class Generation:
    """The order's answer. `pieces` yields once a forward pass, text or an empty string."""

    def __init__(self, order: ChatOrder, shelf: Shelf, base: Base, ready_at: float) -> None:
        self.order, self.shelf, self.base = order, shelf, base
        self.voice: Voice = shelf.voice(base, order.model)
        self.ids = self._prompt()
        self.cache: Any = base.new_cache()
        self.finish: Finish = "length"
        self.completed = 0
        self.ready_at = ready_at
        self.first_at = self.last_at = 0.0

    def pieces(self) -> Iterator[str]:
        """Raises TaskFailure when the prompt does not fit."""
        most = self._room()
        text, stops = self._detokenizer(), StopFilter(self.order.sampling.stop)
        logits = yield from self._prefill()
        chooser = Chooser(self.order.sampling, logits.device)
        while True:
            token = chooser.choose(logits)
            self._count()
            if token in self.voice.ends:
                self.finish = "stop"
                break
            yield stops.push(text.push(token))
            if stops.stopped:
                self.finish = "stop"
                return
            if self.completed >= most:
                break
            logits = self._forward([token])
        rest = stops.push(text.finish())
        yield rest if stops.stopped else rest + stops.finish()

    def usage(self) -> Usage:
        return Usage(prompt_tokens=len(self.ids), completion_tokens=self.completed)

    def timings(self) -> Timings:
        asked, now = self.order.asked_at, time.time()
        span = self.last_at - self.first_at
        return Timings(
            load_seconds=round(max(0.0, self.ready_at - asked), 4),
            first_token_seconds=round(max(0.0, self.first_at - asked), 4) if self.first_at else 0,
            total_seconds=round(max(0.0, now - asked), 4),
            tokens_per_second=round((self.completed - 1) / span, 2) if span > 0 else 0.0,
        )

    def _prompt(self) -> list[int]:
        order = self.order
        if order.raw_prompt is not None:
            return list(self.voice.tokenizer(order.raw_prompt)["input_ids"])
        messages = cast("list[Message]", [dict(message) for message in order.messages])
        try:
            text = self.voice.template.render(messages, add_generation_prompt=True)
        except TemplateError as error:
            raise TaskFailure(
                FailureReason.USER_ERROR,
                str(error).replace("this row", "this conversation"),
                advice="Check the roles and the order of the messages.",
            ) from None
        return list(self.voice.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _room(self) -> int:
        """The most tokens that may be generated."""
        most, context = self.order.sampling.max_tokens, self._context()
        if not self.ids:
            raise TaskFailure(FailureReason.USER_ERROR, "The prompt is empty.")
        if context is None:
            return most
        if len(self.ids) >= context:
            raise TaskFailure(
                FailureReason.USER_ERROR,
                f"The conversation has {len(self.ids)} tokens, and this model reads at most"
                f" {context} with its answer.",
                advice="Shorten the conversation or begin a new one.",
            )
        return min(most, context - len(self.ids))

    def _context(self) -> int | None:
        known = [n for n in (self.base.context, self.order.model.context_length) if n]
        return min(known) if known else None

    def _prefill(self) -> Generator[str, None, Any]:
        for start in range(0, len(self.ids), PREFILL):
            if start:
                yield ""
            logits = self._forward(self.ids[start : start + PREFILL])
        return logits

    def _forward(self, ids: list[int]) -> Any:
        """Logits behind the last of `ids`, whose keys and values join the cache."""
        torch, model = self._torch(), self.base.model
        self.shelf.choose(self.base, self.order.model.adapter)
        with torch.inference_mode():
            tokens = torch.tensor([ids], device=model.device)
            past = {self.base.cache_name: self.cache}
            return model(input_ids=tokens, use_cache=True, logits_to_keep=1, **past).logits[0, -1]

    def _torch(self) -> Any:
        import torch

        return torch

    def _count(self) -> None:
        self.completed += 1
        self.last_at = time.time()
        self.first_at = self.first_at or self.last_at

    def _detokenizer(self) -> Detokenizer:
        tokenizer = self.voice.tokenizer
        decode: Callable[[Any], str] = lambda ids: tokenizer.decode(  # noqa: E731
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return Detokenizer(decode)
