# SPDX-License-Identifier: Apache-2.0

"""Read which PCIe links have lost width or speed.

A link can be as wide and fast as both of its ends. Cards for displays and
accelerators lower the speed while they idle, so that only their width counts.
"""

import pathlib
import re
from collections.abc import Iterator

#: The classes of storage, networks, displays and accelerators [pci.ids].
_CLASSES = re.compile(r'0x(01|02|03|12)[0-9a-f]{4}')
_SLOW_AT_REST = ('0x03', '0x12')

_NUMBER = re.compile(r'\d+(\.\d+)?')


def read_losses(sys: pathlib.Path) -> Iterator[tuple[str, float]]:
    """Yield the address and the loss of each device, as a fraction.

    :param sys: the folder where sysfs is
    """
    for place in (sys / 'bus/pci/devices').glob('*'):
        kind = _read(place / 'class')
        if _CLASSES.fullmatch(kind) is None or (place / 'physfn').exists():
            continue
        ends = place, place.resolve().parent
        fractions = [
            _fraction(*(_read(end / f'{word}_link_{what}') for word, end in (
                ('current', place), *(('max', end) for end in ends))))
            for what in ('width', *(() if kind.startswith(_SLOW_AT_REST)
                                    else ('speed',)))]
        if None not in fractions:
            product = 1.0
            for fraction in fractions:
                product *= fraction or 0.0
            yield place.name, max(0.0, 1 - product)


def _fraction(current: str, *most: str) -> float | None:
    numbers = [float(match[0]) for match in map(_NUMBER.match,
                                                (current, *most)) if match]
    # A link that is down has no width.
    if len(numbers) < 3 or not all(numbers):
        return None
    return numbers[0] / min(numbers[1:])


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding='ascii', errors='replace').strip()
    except OSError:
        return ''
