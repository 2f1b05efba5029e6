"""What a block's docstring says, taken apart: prose, parameters, members, timing; as Markdown."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rtl.lib.block import Block

__all__ = ["BlockText", "block_text", "member_meaning", "without_roles"]

_SECTION = re.compile(r"(?m)^([A-Z][a-z]+)\n-{3,}\n")
_ROLE = re.compile(r":\w+:`~?([^`]+)`")


@dataclass(frozen=True)
class BlockText:
    """``summary`` in one line; ``prose`` and ``timing`` as Markdown; meaning of ``parameters`` and ``members`` by name.

    ``mentions`` are the names of classes that the text refers to.
    """

    summary: str
    prose: str
    timing: str
    parameters: dict[str, str] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    mentions: tuple[str, ...] = ()


def block_text(kind: type[Block]) -> BlockText:
    """The class's own text; what it leaves out comes from the classes below it."""
    kinds = [base for base in kind.__mro__ if issubclass(base, Block) and base is not Block and base.__doc__]
    texts = [_parsed(inspect.cleandoc(base.__doc__ or "")) for base in kinds] or [_parsed("")]
    first = texts[0]
    parameters: dict[str, str] = {}
    members: dict[str, str] = {}
    for text in reversed(texts):
        parameters |= text.parameters
        members |= text.members
    timing = next((text.timing for text in texts if text.timing), "")
    mentions = tuple(dict.fromkeys(name for text in texts for name in text.mentions))
    return BlockText(first.summary, first.prose, timing, parameters, members, mentions)


def member_meaning(port: str, texts: Sequence[BlockText]) -> tuple[str, str]:
    """Name and meaning of the member that a Verilog port belongs to; the meaning is empty where no text has it."""
    member = port.split("__")[0]
    for text in texts:
        for name, meaning in text.members.items():
            if name == member or (name.endswith("*") and member.startswith(name[:-1])):
                return name, meaning
    return member, ""


def _parsed(text: str) -> BlockText:
    parts = _SECTION.split(text)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    prose = parts[0]
    entries: dict[str, dict[str, str]] = {}
    for name in [name for name in ("Parameters", "Members") if name in sections]:
        entries[name], rest = _entries(sections[name])
        # Paragraphs after the entries belong to the whole block.
        prose += f"\n\n{rest}" if rest else ""
    timed = re.search(r"(?ms)^Timing: (.*?)(?=\n\n|\Z)", prose)
    timing = sections.get("Timing", timed[1] if timed else "")
    if timed:
        prose = prose[: timed.start()] + prose[timed.end() :]
    summary = _markdown(" ".join(prose.split("\n\n")[0].split())).removesuffix(":")
    return BlockText(
        summary=summary,
        prose=_markdown(prose.strip()),
        timing=_markdown(timing.strip()),
        parameters=entries.get("Parameters", {}),
        members=entries.get("Members", {}),
        mentions=tuple(name.split(".")[-1] for name in _ROLE.findall(text)),
    )


def _entries(body: str) -> tuple[dict[str, str], str]:
    """Meaning of each name of a section, and the paragraphs after the entries."""
    found: dict[str, str] = {}
    texts: dict[int, list[str]] = {}
    blocks = body.rstrip().split("\n\n")
    rest: list[str] = []
    heads: list[tuple[list[str], str]] = []
    for block in blocks:
        for line in block.splitlines():
            if line.startswith(" ") and heads:
                texts[len(heads) - 1].append(line.strip())
            elif heads and (rest or (block is not blocks[0] and " : " not in line)):
                rest.append(line)
            else:
                texts[len(heads)] = []
                heads.append((_names(line), line.partition(" : ")[2]))
        if rest:
            rest.append("")
    for n, (named, kind) in enumerate(heads):
        words = " ".join(texts[n]) or (kind if not re.match(r"In\b|Out\b|int\b|str\b|bool\b", kind) else "")
        found |= {name: _markdown(of_one) for name, of_one in zip(named, _shared_out(words, len(named)), strict=True)}
    return found, "\n".join(rest).strip()


def _shared_out(words: str, count: int) -> list[str]:
    """A text for each of several names: "first; second. Both." says one thing of each in its first sentence, or all of all."""
    sentence, dot, rest = words.partition(". ")
    parts = sentence.removesuffix(".").split("; ")
    if count == 1 or len(parts) != count:
        return [words] * count
    return [f"{part[0].upper()}{part[1:]}.{' ' + rest if dot else ''}" for part in parts]


def _names(head: str) -> list[str]:
    """Names at the head of an entry: ``i : In(stream), o : Out(stream)`` and ``base, lines : In``."""
    previous = ""
    while previous != head:
        previous, head = head, re.sub(r"\([^()]*\)", "", head)
    pieces = (re.sub(r"\[.*?\]", "", piece.partition(":")[0]).strip(" `") for piece in head.split(","))
    return [piece for piece in pieces if re.fullmatch(r"\w+\*?", piece)]


def without_roles(text: str) -> str:
    """References to classes as code."""
    return _ROLE.sub(r"`\1`", text)


def _markdown(text: str) -> str:
    """Roles and literals as code, literal blocks as fences."""
    lines: list[str] = []
    fenced = waiting = False
    for line in text.splitlines():
        if fenced and line and not line.startswith(" "):
            while lines and not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            fenced = False
        if waiting and line.strip():
            lines.append("```text")
            fenced, waiting = True, False
        if fenced:
            lines.append(line)
            continue
        if line.rstrip().endswith("::"):
            waiting = True
            line = line.rstrip()[:-1] if line.strip() != "::" else ""
        lines.append(re.sub(r"``([^`]+)``", r"`\1`", without_roles(line)))
    if fenced:
        while lines and not lines[-1]:
            lines.pop()
        lines.append("```")
    return "\n".join(lines).strip()
