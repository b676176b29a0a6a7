"""From tokens to text: whole characters, and stop strings that never show."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from parsyn_worker.answer_text import Detokenizer, StopFilter


def decode(ids: Sequence[int]) -> str:
    """Each token is one byte, as with byte-level fallback."""
    return bytes(ids).decode("utf-8", "replace")


@given(st.text(alphabet="aé€😀\n ", max_size=40))
def test_pieces_make_the_text_and_no_broken_character(text: str) -> None:
    detokenizer = Detokenizer(decode)
    pieces = [detokenizer.push(byte) for byte in text.encode()]
    assert "\ufffd" not in "".join(pieces)
    assert "".join(pieces) + detokenizer.finish() == text


@given(st.binary(max_size=40))
@example(b"\x80\x80\x80\x80\x80\x80\xe1\x80\x80")
def test_nothing_is_lost_of_broken_bytes(data: bytes) -> None:
    detokenizer = Detokenizer(decode)
    text = "".join(detokenizer.push(byte) for byte in data) + detokenizer.finish()
    kept = [c for c in decode(data) if c != "\ufffd"]
    assert [c for c in text if c != "\ufffd"] == kept


@given(
    st.lists(st.text(alphabet="ab", max_size=3), max_size=20),
    st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3),
)
def test_shows_exactly_what_stands_before_the_first_stop(
    pieces: list[str], stops: list[str]
) -> None:
    filter = StopFilter(stops)
    shown = ""
    for piece in pieces:
        shown += filter.push(piece)
        assert not any(stop in shown for stop in stops)
        if filter.stopped:
            break
    shown += "" if filter.stopped else filter.finish()
    whole = "".join(pieces)
    # Text comes in pieces: the stop that is complete first cuts, at its first character.
    ends = [whole.find(stop) for stop in stops if stop in whole]
    assert filter.stopped == bool(ends)
    assert whole.startswith(shown)
    if not ends:
        assert shown == whole


def test_holds_back_only_what_may_become_a_stop() -> None:
    filter = StopFilter(["</end>"])
    assert filter.push("hello <") == "hello "
    assert filter.push("/e") == ""
    assert filter.push("arth") == "</earth"
    assert filter.push(" </en") == " "
    assert filter.push("d> and more") == ""
    assert filter.stopped
