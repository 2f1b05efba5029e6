"""Names as people and shells read them: file names are bytes, and not every one of them is text. Imports nothing of Fiberloom."""

import codecs
import shlex
from collections.abc import Sequence

__all__ = ["SHOWN", "as_text", "quoted", "shell_line", "shown"]

# Name of the error handler that writes what an encoding has no place for as `as_text` does, then escaped.
SHOWN = "fiberloom-shown"


def as_text(name: str) -> str:
    """The name as text that every encoding of Unicode holds: UTF-8 where its bytes are, else ``\\xe9`` for a byte.

    Python stands for a byte that the locale cannot read by half of a surrogate pair, which is no text: no file takes it.
    """
    if name.isascii():
        return name
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # other halves of pairs, as a JSON file may spell them
        return name.encode("utf-8", "backslashreplace").decode("utf-8")


def shown(text: str) -> str:
    """The text in one line of letters: bytes that are no UTF-8 and control characters become escapes (``caf\\xe9.mtx``)."""
    return "".join(
        f"\\x{ord(letter):02x}" if ord(letter) < 32 or ord(letter) == 127 else letter for letter in as_text(text)
    )


def _handler(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = as_text(error.object[error.start : error.end])
    return text.encode(error.encoding, "backslashreplace"), error.end


codecs.register_error(SHOWN, _handler)


def quoted(word: str) -> str:
    """A word as a shell takes it: plain where it can be, else in quotes; where it cannot be shown, as bash writes bytes."""
    if shown(word) == word:
        return shlex.quote(word)
    content = word.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\x{b:02x}" for b in content) + "'"


def shell_line(words: Sequence[str]) -> str:
    """The words as a shell takes them."""
    return " ".join(map(quoted, words))
