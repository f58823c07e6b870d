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

"""Read and write the page size of a guest."""

import math
import re
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import key
from hpcvirt.specs import vocabulary

_CLASSES = {
    'small': shape.PageClass.SMALL,
    'large': shape.PageClass.LARGE,
    'any': shape.PageClass.ANY,
}

#: oslo.utils ``string_to_bytes`` in its IEC system: units are powers of 1024
#: with or without the i, ``b`` and ``bit`` are bits, a unit must end in one.
_SIZE = re.compile(r'\+?(\d*\.?\d+)(?:([KMGTPEZYRQ])i?)?(b|bit|B)$')
_EXPONENTS = {unit: exponent for exponent, unit
              in enumerate(' KMGTPEZYRQ')}

#: Far below the largest float, even with the largest unit.
_MAX_LENGTH = 200


def read(specs: Mapping[str, str]
         ) -> tuple[int | shape.PageClass | None, bool]:
    """Read the page size, and whether the flavor requests one at all.

    The two differ in Nova: a size below 1 KiB gives the guest a NUMA topology,
    whose cells have no page size.

    :returns: the size in KiB, a class, or None; and whether the request
        alone gives the guest a NUMA topology
    :raises InvalidInput: for a size that Nova refuses, and for locked
        memory without a page size
    """
    name = vocabulary.MEM_PAGE_SIZE.name
    text = specs.get(name, '')
    locked = vocabulary.LOCKED_MEMORY.name
    if key.truth(specs.get(locked, '')) and not text:
        raise exception.InvalidInput(locked, f'needs {name}')
    if not text:
        return None, False
    if text in _CLASSES:
        return _CLASSES[text], True
    size_kib = _kib(text, name)
    return int(size_kib) or None, size_kib > 0


def write(page_kib: int | shape.PageClass) -> str:
    """Write an explicit size in KiB, or the name of a class."""
    for word, page_class in _CLASSES.items():
        if page_kib == page_class:
            return word
    if page_kib < 1:
        raise exception.InvalidInput(
            vocabulary.MEM_PAGE_SIZE.name, f'{page_kib} is not a page size')
    return str(int(page_kib))


def _kib(text: str, where: str) -> float:
    if text.isdigit():
        number = key.integer(text)
        if number is not None:
            return number
    match = _SIZE.match(text) if len(text) <= _MAX_LENGTH else None
    if match:
        magnitude, unit, end = match.groups()
        size = float(magnitude) / (1 if end == 'B' else 8)
        size *= 1024.0 ** _EXPONENTS[unit or ' ']
        return math.ceil(size) / 1024
    raise exception.InvalidInput(
        where, f'{text[:64]!r} is not a page size (small, large, any, 2048, '
        '2MB, 1GB)')
