# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What an operator asked for, compared with what a program echoed."""

import dataclasses
import enum
import math
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.bench.parsers import reading

#: Energies differ in the last digits with the order of summation.
ENERGY_PART = 1e-5


class Kind(enum.StrEnum):
    """How an echoed value is written and compared."""

    WHOLE = 'whole number'
    WORD = 'word'
    ENERGY = 'energy'


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """One thing that ``--expect`` may name.

    :ivar name: as in :attr:`hpcvirt.bench.model.outcome.Outcome.parameters`
    :ivar aliases: other names that people know it by; case does not matter
    """

    name: str
    kind: Kind
    help: str
    aliases: tuple[str, ...] = ()


EXIT_STATUS = Key(
    'rc', Kind.WHOLE, 'exit status that the program ends with',
    ('exit_status', 'exitstatus', 'exit', 'status', 'returncode'))


def normal(keys: Iterable[Key], wanted: Mapping[str, str],
           where: str) -> dict[str, str]:
    """Spell what is expected with the parser's own names.

    :param where: the benchmark, for the error
    :raises InvalidInput: for an unknown name, or a value that it cannot have
    """
    known = (*keys, EXIT_STATUS)
    spelled: dict[str, str] = {}
    for name, value in wanted.items():
        key = _find(known, name)
        if key is None:
            names = ', '.join(key.name for key in known)
            raise exception.InvalidInput(
                where, f'nothing to expect by the name {name!r}; there is '
                f'{names}')
        text = value.strip()
        _check(key, text)
        if spelled.get(key.name, text) != text:
            raise exception.InvalidInput(
                where, f'{key.name} is expected to be both '
                f'{spelled[key.name]} and {text}')
        spelled[key.name] = text
    return spelled


def unmet(keys: Iterable[Key], wanted: Mapping[str, str],
          found: reading.Reading) -> str | None:
    """Why a valid output is not the one that was asked for.

    :param wanted: as :func:`normal` spells it
    :returns: the reason, None if everything is as expected
    """
    for key in keys:
        asked = wanted.get(key.name)
        if asked is None:
            continue
        got = found.parameters.get(key.name)
        if got is None:
            return (f'{key.name}={asked} was asked for, and the output does '
                    'not say')
        if not same(key.kind, asked, got):
            return f'{key.name}={asked} was asked for, the output says {got}'
    asked = wanted.get(EXIT_STATUS.name, '0')
    if int(asked) != found.exit_status:
        return (f'{found.ending or "a good run"}: exit status '
                f'{found.exit_status}, expected was {asked}')
    return None


def same(kind: Kind, one: str, other: str) -> bool:
    """Whether two values mean the same."""
    if kind is Kind.WHOLE:
        return int(one) == int(other)
    if kind is Kind.ENERGY:
        first, second = float(one), float(other)
        return abs(first - second) <= ENERGY_PART * max(abs(first), 1.0)
    return _squeezed(one) == _squeezed(other)


def _squeezed(text: str) -> str:
    return ''.join(text.split()).lower()


def _find(keys: Iterable[Key], name: str) -> Key | None:
    # N and n are both in use for the same thing; an exact match goes first
    # all the same, for a parser in which they differ.
    keys = tuple(keys)
    for key in keys:
        if name in (key.name, *key.aliases):
            return key
    wanted = name.strip().lower().replace('-', '_')
    for key in keys:
        if wanted in (text.lower() for text in (key.name, *key.aliases)):
            return key
    return None


def _check(key: Key, text: str) -> None:
    if key.kind is Kind.WHOLE:
        good = text.isascii() and text.isdigit() and len(text) <= 18
    elif key.kind is Kind.ENERGY:
        good = _finite(text)
    else:
        good = bool(text) and len(text) <= 200
    if not good:
        raise exception.InvalidInput(
            key.name, f'{text[:60]!r} is not a {key.kind.value}')


def _finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
