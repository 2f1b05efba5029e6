"""Statements of an RTLIL module: what they assign and read, restricted to some bits, folded, simplified, merged."""

from collections.abc import Iterable, Sequence

from .rtlil import Assign, Driver, Part, Spec, Statement, Switch, sliced

__all__ = ["all_merged", "assignments", "folded", "merged", "restricted", "simplified", "specs_read", "switch_key"]


def assignments(body: Iterable[Statement]) -> Iterable[Assign]:
    for item in body:
        if isinstance(item, Assign):
            yield item
        else:
            for _, inner in item.cases:
                yield from assignments(inner)


def specs_read(body: Iterable[Statement]) -> Iterable[Spec]:
    for item in body:
        if isinstance(item, Assign):
            yield item.value
        else:
            yield item.selector
            for _, inner in item.cases:
                yield from specs_read(inner)


def restricted(body: Sequence[Statement], target: str, low: int, width: int) -> tuple[Statement, ...]:
    """What a process does to some bits of a net, as a net of its own."""
    found: list[Statement] = []
    for item in body:
        if isinstance(item, Assign):
            at = item.target.low
            begin, end = max(low, at), min(low + width, at + item.target.width)
            if begin < end:
                place = Part(target, begin - low, end - begin)
                found.append(Assign(place, sliced(item.value, begin - at, end - begin)))
        else:
            cases = tuple((patterns, restricted(inner, target, low, width)) for patterns, inner in item.cases)
            if any(inner for _, inner in cases):
                found.append(Switch(item.selector, cases))
    return tuple(found)


def folded(body: Sequence[Statement], target: str, width: int) -> tuple[Statement, ...]:
    """With the assignments that come before any condition made one, where they leave no bit out."""
    count = next((n for n, item in enumerate(body) if isinstance(item, Switch)), len(body))
    if count < 2:
        return tuple(body)
    bits: list[Part | None] = [None] * width
    for item in body[:count]:
        assert isinstance(item, Assign)
        for n in range(item.target.width):
            bits[item.target.low + n] = sliced(item.value, n, 1)[0]
    if None in bits:
        return tuple(body)
    whole = Assign(Part(target, 0, width), _together(part for part in bits if part is not None))
    return (whole, *body[count:])


def _together(parts: Iterable[Part]) -> Spec:
    """Neighbours that follow one another as one part."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        if last is not None and not part.name and not last.name:
            found[-1] = Part("", 0, last.width + part.width, part.bits + last.bits)
        elif last is not None and part.name and last.name == part.name and last.low + last.width == part.low:
            found[-1] = Part(part.name, last.low, last.width + part.width)
        else:
            found.append(part)
    return tuple(found)


def simplified(body: Iterable[Statement]) -> tuple[Statement, ...]:
    """Without questions that a constant answers."""
    found: list[Statement] = []
    for item in body:
        if isinstance(item, Assign):
            found.append(item)
            continue
        cases = tuple((patterns, simplified(inner)) for patterns, inner in item.cases)
        if all(not part.name for part in item.selector):
            bits = "".join(part.bits for part in reversed(item.selector))
            for patterns, inner in cases:
                if not patterns or any(all(p in ("-", b) for p, b in zip(x, bits, strict=True)) for x in patterns):
                    found += inner
                    break
        elif any(inner for _, inner in cases):
            found.append(Switch(item.selector, cases))
    return tuple(found)


def switch_key(item: Switch) -> object:
    return item.selector, tuple(patterns for patterns, _ in item.cases)


def merged(left: Sequence[Statement], right: Sequence[Statement]) -> tuple[Statement, ...]:
    """Two bodies that assign to different registers as one, with what both ask asked once."""
    found = list(left)
    at = 0
    for item in right:
        if isinstance(item, Switch):
            for n in range(at, len(found)):
                other = found[n]
                if isinstance(other, Switch) and switch_key(other) == switch_key(item):
                    pairs = zip(other.cases, item.cases, strict=True)
                    cases = tuple((patterns, merged(one, two)) for (patterns, one), (_, two) in pairs)
                    found[n] = Switch(item.selector, cases)
                    at = n + 1
                    break
            else:
                found.insert(at, item)
                at += 1
        else:
            while at < len(found) and isinstance(found[at], Assign):
                at += 1
            found.insert(at, item)
            at += 1
    return tuple(found)


def all_merged(group: Iterable[Driver]) -> tuple[Statement, ...]:
    """What all of these drivers do."""
    body: tuple[Statement, ...] = ()
    for driver in group:
        body = merged(body, driver.body)
    return body
