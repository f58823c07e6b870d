# SPDX-License-Identifier: Apache-2.0

"""Check the template of names and the extra specs that an operator gives.

The template has fields in braces. The extra specs may set what hpcvirt leaves
open: traits, aggregates, quotas, and resources of Placement. hpcvirt refuses
keys that it writes itself, and keys that would change the guest for which it
counted the instances of each host.
"""

import re
import string
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary

TEMPLATE = '{prefix}.{shape}.{page}{options}'
#: The fields of a template, as the operator's guide explains them.
FIELDS = ('prefix', 'shape', 'cores', 'vcpus', 'cells', 'sockets', 'threads',
          'memory', 'memory_mib', 'disk', 'page', 'options')

_LITERALS = frozenset(string.ascii_letters + string.digits + '._-')
_LONGEST = 128


def read_template(value: object) -> str:
    """Check the template of a profile.

    :raises ValueError: saying what is wrong
    """
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise serialization.make_error(f'text such as {TEMPLATE}', value)
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as exc:
        raise ValueError(f'{value!r} is no template: {exc}') from None
    for literal, field, form, conversion in parts:
        if not _LITERALS.issuperset(literal):
            raise ValueError('must have only letters, digits and "._-" '
                             f'between its fields, not {literal!r}')
        if field is not None and (field not in FIELDS or form or conversion):
            raise ValueError(
                f'has the unknown field {{{field}{form and ":" + form}}}; '
                f'known: {", ".join(FIELDS)}')
    return value


ExtraSpecs = tuple[tuple[str, str], ...]

_SPELLING = re.compile('[A-Za-z0-9_.: -]{1,255}')
_MAX_LENGTH = 255

#: Nova interprets these keys, but they do not change the size of the guest.
_OPEN = (vocabulary.RESOURCES, vocabulary.TRAIT, vocabulary.LOCKED_MEMORY,
         vocabulary.PMEM, vocabulary.EXCLUSIVE_CELLS,
         vocabulary.GROUP_POLICY)
_TAKEN = tuple(row for row in vocabulary.INTERPRETED if row not in _OPEN)

#: Nova itself requests these resources, from the size of the flavor.
_SIZES = re.compile(
    'resources[A-Za-z0-9_-]*:(VCPU|PCPU|MEMORY_MB|DISK_GB)')


def read_specs(value: object) -> ExtraSpecs:
    """Read the extra specs of a profile.

    :raises ValueError: naming the key at fault
    """
    if not isinstance(value, Mapping):
        raise serialization.make_error('a mapping of keys to text', value)
    for name, text in value.items():
        _check(name, text)
    return tuple(sorted(value.items()))


def is_taken(name: str) -> bool:
    """Tell whether only hpcvirt sets a key."""
    return any(row.matches(name) for row in _TAKEN)


def _check(name: object, text: object) -> None:
    if not isinstance(name, str) or not _SPELLING.fullmatch(name):
        raise ValueError('must have keys of letters, digits and "_.:-", such '
                         f'as trait:CUSTOM_HPC, not {str(name)[:64]!r}')
    where = f'{name[:64]}: '
    if not isinstance(text, str):
        fault = serialization.make_error('text, in quotes', text)
        raise ValueError(f'{where}{fault}')
    if not 0 < len(text) <= _MAX_LENGTH or not text.isprintable():
        raise ValueError(
            f'{where}must be printable text of 1 to {_MAX_LENGTH} '
                         'characters')
    if is_taken(name) or _SIZES.fullmatch(name):
        raise ValueError(f'{where}is set by hpcvirt, from the hosts and the '
                         'other keys of the profile')
    if vocabulary.is_unknown(name):
        raise ValueError(f'{where}is unknown in its namespace'
                         + vocabulary.nearest(name))
    row = vocabulary.find(name)
    try:
        if row is not None:
            row.check(text, name)
        # A value can contradict dedicated CPUs and huge pages.
        codec.decode(2, 1024, {vocabulary.CPU_POLICY.name: 'dedicated',
                               vocabulary.CPU_THREAD_POLICY.name: 'require',
                               vocabulary.MEM_PAGE_SIZE.name: '2048',
                               name: text})
    except exception.InvalidInput as exc:
        raise ValueError(str(exc)) from None
