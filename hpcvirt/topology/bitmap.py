# SPDX-License-Identifier: Apache-2.0

"""Bitmaps in the notation of the kernel and hwloc: ``000000ff,00000003``.

A bitmap consists of words of 32 bits, the most significant first. hwloc
writes ``0x`` before each word, omits words that are 0 (``0x1,,0x3``), and
writes ``0xf...f`` for all numbers above the other words.
"""

from collections.abc import Iterable

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.topology import document

_WORD_BITS = 32
#: Enough for all CPU numbers.
_MAX_WORDS = (cpuset.MAX_CPU + 1) // _WORD_BITS

_INFINITE = '0xf...f'


def members(text: str, universe: Iterable[int], where: str) -> frozenset[int]:
    """Return the numbers of a universe that are in the set.

    :param text: the bitmap
    :param universe: the numbers to consider, because a set can be infinite
    :raises InvalidInput: if it is not a bitmap
    """
    words = [word.strip() for word in text.strip().split(',')]
    if len(words) > _MAX_WORDS:
        raise exception.InvalidInput(
            where, f'has more than {_MAX_WORDS} words')
    infinite = words[0].lower() == _INFINITE
    if infinite:
        del words[0]
    bits = 0
    for word in words:
        bits <<= _WORD_BITS
        if word:
            bits |= document.hexadecimal(word, where, 'a word of a set', 8)
    width = _WORD_BITS * len(words)
    digits = f'{bits:0{width}b}'[::-1] if words else ''
    return frozenset(number for number in universe
                     if (infinite if number >= width
                         else digits[number] == '1'))


def only_member(text: str, where: str) -> int | None:
    """Return the number in a set of exactly one; None for other sets.

    :raises InvalidInput: if it is not a bitmap
    """
    found = members(text, range(_WORD_BITS * (text.count(',') + 2)), where)
    return min(found) if len(found) == 1 else None
