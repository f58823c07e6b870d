# SPDX-License-Identifier: Apache-2.0

"""Compare the requested parameters with those that a program printed."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import reading

#: Relative difference of equal energies: their last digits depend on the
#: order of summation.
ENERGY_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True, slots=True)
class ParameterKey:
    """A parameter that ``--expect`` may name.

    :ivar name: as in :attr:`hpcvirt.bench.model.outcome.Outcome.parameters`
    :ivar aliases: other accepted names; case does not matter
    """

    name: str
    kind: outcome.ParameterType
    help: str
    aliases: tuple[str, ...] = ()


def whole(name: str, description: str, *aliases: str) -> ParameterKey:
    """Make the key of a parameter that is a whole number."""
    return ParameterKey(name, outcome.ParameterType.WHOLE, description,
                        aliases)


def word(name: str, description: str, *aliases: str) -> ParameterKey:
    """Make the key of a parameter that is a word."""
    return ParameterKey(name, outcome.ParameterType.WORD, description, aliases)


RANKS = whole('ranks', 'MPI ranks', 'np', 'nprocs', 'procs', 'processes',
              'ntasks')
#: The keys of a table over message sizes.
SIZES = (
    whole('max_size', 'largest message in bytes, which the table must reach',
          'max', 'size', 'upper', 'max_message_size'),
    whole('min_size', 'smallest message in bytes', 'min'),
    whole('rows', 'number of sizes'),
)
EXIT_STATUS = whole('rc', 'exit status of the program', 'exit_status',
                    'exitstatus', 'exit', 'status', 'returncode')


def normalize(keys: Iterable[ParameterKey], wanted: Mapping[str, str],
              where: str) -> dict[str, str]:
    """Rename the expected parameters to the parser's own names.

    :param where: the benchmark, for the error
    :raises InvalidInput: for an unknown name or an invalid value
    """
    all_keys = (*keys, EXIT_STATUS)
    spelled: dict[str, str] = {}
    for name, value in wanted.items():
        key = _find(all_keys, name)
        if key is None:
            names = ', '.join(key.name for key in all_keys)
            raise exception.InvalidInput(
                where, f'cannot expect {name!r}; the parameters are {names}')
        text = value.strip()
        _check(key, text)
        if spelled.get(key.name, text) != text:
            raise exception.InvalidInput(
                where, f'{key.name} is expected to be both '
                f'{spelled[key.name]} and {text}')
        spelled[key.name] = text
    return spelled


def find_mismatch(keys: Iterable[ParameterKey], wanted: Mapping[str, str],
                  found: reading.Reading) -> str | None:
    """Return why a valid output is not the one that was requested.

    :param wanted: from :func:`normalize`
    :returns: the reason, None if everything is as expected
    """
    for key in keys:
        expected = wanted.get(key.name)
        if expected is None:
            continue
        echoed = found.parameters.get(key.name)
        if echoed is None:
            return (f'{key.name}={expected} was requested, but the output '
                    'does not name it')
        if not is_same(key.kind, expected, echoed):
            return (f'{key.name}={expected} was requested, but the output '
                    f'says {echoed}')
    expected = wanted.get(EXIT_STATUS.name, '0')
    if reading.whole(expected, EXIT_STATUS.name) != found.exit_status:
        return (f'{found.ending or "a good run"}: exit status '
                f'{found.exit_status}, expected {expected}')
    return None


def is_same(kind: outcome.ParameterType | None, left: str, right: str) -> bool:
    """Whether two values of a parameter mean the same.

    :param kind: None compares the values as text
    """
    if kind is None or left == right:
        return left == right
    if kind is outcome.ParameterType.WORD:
        return _squeezed(left) == _squeezed(right)
    read = (reading.whole if kind is outcome.ParameterType.WHOLE
            else reading.real)
    try:
        first, second = read(left, 'one value'), read(right, 'the other')
    except reading.InvalidOutput:
        return False
    if kind is outcome.ParameterType.WHOLE:
        return first == second
    return abs(first - second) <= ENERGY_TOLERANCE * max(abs(first), 1.0)


def _squeezed(text: str) -> str:
    return ''.join(text.split()).lower()


def _find(keys: Iterable[ParameterKey], name: str) -> ParameterKey | None:
    # Case is ignored only if no name matches exactly: in some parsers N and n
    # may differ.
    keys = tuple(keys)
    for key in keys:
        if name in (key.name, *key.aliases):
            return key
    wanted = name.strip().lower().replace('-', '_')
    for key in keys:
        if wanted in (text.lower() for text in (key.name, *key.aliases)):
            return key
    return None


def _check(key: ParameterKey, text: str) -> None:
    if key.kind is outcome.ParameterType.WHOLE:
        good = words.read_whole(text) is not None
    elif key.kind is outcome.ParameterType.ENERGY:
        try:
            reading.real(text, key.name)
            good = True
        except reading.InvalidOutput:
            good = False
    else:
        good = bool(text) and len(text) <= 200
    if not good:
        raise exception.InvalidInput(
            key.name, f'{text[:60]!r} is not a {key.kind.value}')
