"""From token ids to the text that may be shown: whole characters only, and no part of a stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

UNFINISHED = "\ufffd"
MOST_HELD = 8
"""Tokens after which the oldest of what is held back is given up as characters."""
LONGEST_WINDOW = 64
"""Tokens; a model that writes no characters at all must not take longer and longer to decode."""
MAY_BEGIN = 3
"""Of the last tokens at most so many begin a character that is not complete: UTF-8 has 4 bytes."""


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
        window = self._decode(self._ids[self._start :])
        if not window.endswith(UNFINISHED):
            return self._take(window)
        if len(self._ids) - self._shown < MOST_HELD:
            return ""
        return self._give_up(window)

    def finish(self) -> str:
        """What was held back."""
        return self._take(self._decode(self._ids[self._start :]))

    def _take(self, window: str) -> str:
        """All of it; the next window begins with what is new here."""
        text = window[len(self._before()) :]
        self._start, self._shown = self._shown, len(self._ids)
        return text

    def _give_up(self, window: str) -> str:
        """The text of the oldest held tokens that cuts no character in two.

        The window's beginning stays where a character began, so that none is read out of step.
        """
        if len(self._ids) - self._start > LONGEST_WINDOW:
            return self._take(window)
        for end in range(len(self._ids) - MAY_BEGIN, self._shown, -1):
            text = self._decode(self._ids[self._start : end])
            if window.startswith(text):
                new = text[len(self._before()) :]
                self._shown = end
                return new
        return self._take(window)

    def _before(self) -> str:
        return self._decode(self._ids[self._start : self._shown])


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
