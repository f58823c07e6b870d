# SPDX-License-Identifier: Apache-2.0

r"""A pattern for a line of an output, which needs linear time.

It is a regular expression with few means: text, classes (``\S``, ``[0-9.]``),
repeats of one of these, and one group around the figure. It describes the
whole line, without the blanks around it. A repeat must not match what may
follow it: ``\S+ GB`` is accepted, and ``.* GB`` is not. A repeat then ends at
one place only, so that no text, however it was made, lets the search go back
and try again.
"""

import dataclasses
import re
from collections.abc import Mapping

from hpcvirt import exception

MAX_PATTERN = 200
#: Lines that are longer have no figure.
MAX_LINE = 4096

#: Text, an escaped sign, or a class; signs with a meaning must be escaped.
_ATOM = re.compile(
    r'\\[sSdDwWt]|\\[^\sA-Za-z0-9]|'
    r'\[\^?(?:\\[sSdDwWt]|\\[^\sA-Za-z0-9]|[^\[\]\\])+\]|'
    r'[^\\\[\](){}*+?|^$]')
_REPEAT = re.compile(r'[*+?]|\{(\d{1,3})(?:,(\d{1,3}))?\}', re.ASCII)
_END = re.compile(r'(?<!\\)\$$')
#: What atoms may match: each sign of ASCII, and one for all other signs.
_SIGNS = ('\t', *map(chr, range(32, 127)), '\u2022')
_MEANS = (r'a pattern has text, classes such as \S or [0-9.], the repeats * + '
          '? {2} {2,5} of one of them, and one group ( ) around the figure')


@dataclasses.dataclass(frozen=True)
class LineRules:
    """The lines of an output.

    :ivar figures: metric to the pattern of its line, whose group is the figure
    :ivar parameters: parameter to the pattern of the line that prints it
    :ivar required: texts that lines of a complete output contain
    :ivar forbidden: texts that no line of a good output contains, in any case
        of letters
    """

    figures: Mapping[str, str]
    parameters: Mapping[str, str]
    required: tuple[str, ...]
    forbidden: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Part:
    """One atom of a pattern.

    :ivar signs: what it matches
    :ivar may_miss: it may match nothing
    :ivar varies: it may match different numbers of signs
    """

    text: str
    signs: frozenset[str]
    may_miss: bool
    varies: bool


def compile_pattern(pattern: str, where: str) -> re.Pattern[str]:
    """Check a pattern and compile it.

    :param where: what it is the pattern of, for the error
    :raises InvalidInput: if it has other means, or if a repeat may match what
        follows it
    """
    if len(pattern) > MAX_PATTERN:
        raise exception.InvalidInput(
            where, f'is longer than {MAX_PATTERN} characters')
    inner = _END.sub('', pattern.removeprefix('^'))
    following: frozenset[str] = frozenset()
    for part in reversed(_split(inner, where)):
        if part.varies and part.signs & following:
            raise exception.InvalidInput(
                where, f'{part.text} may match what follows it; name what it '
                r'must not contain, as in [^:]+: or \S+ ')
        following = part.signs | (following if part.may_miss else frozenset())
    return re.compile(inner, re.ASCII)


def _split(pattern: str, where: str) -> list[_Part]:
    """Split a pattern into its atoms, and check its group."""
    parts: list[_Part] = []
    begin = end = None
    place = 0
    while place < len(pattern):
        if pattern[place] == '(' and begin is None:
            begin = len(parts)
            place += 1
            continue
        if pattern[place] == ')' and begin is not None and end is None:
            end = len(parts)
            place += 1
            continue
        atom = _ATOM.match(pattern, place)
        if atom is None:
            raise exception.InvalidInput(
                where, f'cannot have {pattern[place:place + 10]!r}: {_MEANS}')
        repeat = _REPEAT.match(pattern, atom.end())
        parts.append(_make_part(atom[0], repeat, where))
        place = repeat.end() if repeat else atom.end()
    if begin is None or end is None or all(
            part.may_miss for part in parts[begin:end]):
        raise exception.InvalidInput(
            where, f'has no group that always has text: {_MEANS}')
    return parts


def _make_part(atom: str, repeat: re.Match[str] | None, where: str) -> _Part:
    try:
        matcher = re.compile(atom, re.ASCII)
    except re.error as exc:
        raise exception.InvalidInput(
            where, f'{atom} is no class: {exc}') from exc
    # A sign outside of ASCII is like no other.
    signs = frozenset(filter(matcher.fullmatch, {*_SIGNS, *atom}))
    if repeat is None:
        return _Part(atom, signs, may_miss=False, varies=False)
    text = atom + repeat[0]
    if repeat[1] is None:
        return _Part(text, signs, may_miss=repeat[0] != '+', varies=True)
    return _Part(text, signs, may_miss=not repeat[1].strip('0'),
                 varies=repeat[2] is not None)
