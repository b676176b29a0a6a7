"""From token ids to the text that may be shown: whole characters only, and no part of a stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

UNFINISHED = "\ufffd"
LONGEST_CHARACTER = 8
"""Tokens after which an unfinished character is given up as one: UTF-8 needs at most 4 bytes."""


class Detokenizer:
    """Decodes one token at a time to the same text as all at once.

    A window of the last tokens is decoded with and without the newest: what the longer text has
    more is new. It is held back while it ends inside a character.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._start = self._shown = 0

    def push(self, token: int) -> str:
        """The text that this token completes, perhaps none."""
        self._ids.append(token)
        text = self._new()
        held = len(self._ids) - self._shown
        if text.endswith(UNFINISHED) and held < LONGEST_CHARACTER:
            return ""
        return self._take(text)

    def finish(self) -> str:
        """What was held back."""
        return self._take(self._new())

    def _new(self) -> str:
        before = self._decode(self._ids[self._start : self._shown])
        return self._decode(self._ids[self._start :])[len(before) :]

    def _take(self, text: str) -> str:
        self._start, self._shown = self._shown, len(self._ids)
        return text


class StopFilter:
    """Lets text through up to the first stop string, and never the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """The text that can be shown now; sets `stopped` at a stop string."""
        if self.stopped:
            return ""
        text = self._held + text
        cuts = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if cuts:
            self.stopped, self._held = True, ""
            return text[: min(cuts)]
        keep = self._undecided(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back and turned out to be no stop string."""
        held, self._held = self._held, ""
        return held

    def _undecided(self, text: str) -> int:
        """Length of the longest end of `text` with which a stop string begins."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:length]):
                    longest = length
                    break
        return longest
