# SPDX-License-Identifier: Apache-2.0

"""CPU lists in the notation of the kernel and Nova: ``0-3,8``, ``0-7,^2``.

Ranges are inclusive; ``^`` excludes CPUs or a range, as in Nova's
``[compute]cpu_dedicated_set``.
"""

import re
from collections.abc import Iterable

from hpcvirt import exception

#: No kernel has higher CPU numbers (NR_CPUS is at most 8192). The limit
#: prevents that a typing error such as ``0-99999999`` uses up the memory.
MAX_CPU = 65535

#: A list of every second CPU number is shorter.
_MAX_LENGTH = 400_000

#: Up to this number of CPUs, sets are faster than bits.
_FEW = 1024


def parse(text: str, where: str = 'CPU list') -> frozenset[int]:
    """Read a CPU list.

    :param text: for example ``0-3,^2,8``; white space is ignored, an empty
        text is an empty set
    :param where: the name of the list, for errors
    :raises InvalidInput: if it is not a CPU list
    """
    if len(text) > _MAX_LENGTH:
        raise exception.InvalidInput(where, 'is too long to be a CPU list')
    spans: tuple[list[range], list[range]] = [], []
    if not text.strip():
        return frozenset()
    for rule in text.split(','):
        term = rule.strip()
        is_excluded = term.startswith('^')
        first, dash, last = term.removeprefix('^').partition('-')
        low = _number(first, rule, where)
        high = _number(last, rule, where) if dash else low
        if high < low:
            raise exception.InvalidInput(
                where, f'the range {rule.strip()[:40]!r} runs backwards')
        spans[is_excluded].append(range(low, high + 1))
    if sum(map(len, spans[0] + spans[1])) <= _FEW:
        return frozenset().union(*spans[0]).difference(*spans[1])
    return _members(_bits(spans[0]) & ~_bits(spans[1]))


def render(cpus: Iterable[int]) -> str:
    """Write CPUs as a list with ranges: ``{0, 1, 2, 8}`` is ``0-2,8``."""
    terms: list[str] = []
    start = previous = None
    for cpu in sorted(set(cpus)):
        if previous is not None and cpu == previous + 1:
            previous = cpu
            continue
        if start is not None:
            terms.append(_range(start, previous))
        start = previous = cpu
    if start is not None:
        terms.append(_range(start, previous))
    return ','.join(terms)


def _bits(spans: Iterable[range]) -> int:
    """Set bit n for CPU n; that is fast even for a million ranges."""
    bits = 0
    for span in spans:
        bits |= (1 << span.stop) - (1 << span.start)
    return bits


def _members(bits: int) -> frozenset[int]:
    digits = bin(bits)[:1:-1]
    return frozenset(match.start() for match in re.finditer('1', digits))


def _range(start: int, end: int | None) -> str:
    return str(start) if end in (None, start) else f'{start}-{end}'


def _number(text: str, rule: str, where: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()):
        raise exception.InvalidInput(
            where, f'{rule.strip()[:40]!r} is not a CPU number or range')
    digits = text.lstrip('0') or '0'
    if len(digits) > len(str(MAX_CPU)) or int(digits) > MAX_CPU:
        raise exception.InvalidInput(
            where, f'CPU {digits[:12]} is above the largest number {MAX_CPU}')
    return int(digits)
