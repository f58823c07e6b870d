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

"""Check the extra specs that an operator adds to the planned flavors.

They may set whatever hpcvirt leaves open: traits, aggregates, quotas, and
devices of Placement. Keys that hpcvirt writes itself, and keys that would
change the guest for which the hosts were counted, are refused.
"""

import re
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary

ExtraSpecs = tuple[tuple[str, str], ...]

_SPELLING = re.compile('[A-Za-z0-9_.: -]{1,255}')
_MOST = 255

#: Nova interprets these as well, but they leave the guest as it is.
_OPEN = (vocabulary.RESOURCES, vocabulary.TRAIT, vocabulary.LOCKED_MEMORY,
         vocabulary.PMEM, vocabulary.EXCLUSIVE_CELLS)
_TAKEN = tuple(row for row in vocabulary.INTERPRETED if row not in _OPEN)

#: Nova requests these from Placement for the size of the flavor.
_SIZES = re.compile(
    'resources[A-Za-z0-9_-]*:(VCPU|PCPU|MEMORY_MB|DISK_GB)')


def read(value: object) -> ExtraSpecs:
    """Read the extra specs of a profile.

    :raises ValueError: naming the key at fault
    """
    if not isinstance(value, Mapping):
        raise serialization.expected('a mapping of keys to text', value)
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
        fault = serialization.expected('text, in quotes', text)
        raise ValueError(f'{where}{fault}')
    if not 0 < len(text) <= _MOST or not text.isprintable():
        raise ValueError(f'{where}must be printable text of 1 to {_MOST} '
                         'characters')
    if is_taken(name) or _SIZES.fullmatch(name):
        raise ValueError(f'{where}is set by hpcvirt, from the hosts and the '
                         'other keys of the profile')
    if vocabulary.is_unknown(name):
        raise ValueError(f'{where}is no extra spec of its namespace')
    row = vocabulary.find(name)
    try:
        if row is not None:
            row.check(text, name)
        # Some values contradict dedicated CPUs and huge pages.
        codec.decode(2, 1024, {vocabulary.CPU_POLICY.name: 'dedicated',
                               vocabulary.CPU_THREAD_POLICY.name: 'require',
                               vocabulary.MEM_PAGE_SIZE.name: '2048',
                               name: text})
    except exception.InvalidInput as exc:
        raise ValueError(str(exc)) from None
