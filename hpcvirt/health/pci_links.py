# SPDX-License-Identifier: Apache-2.0

"""Read which PCIe links have lost width or speed.

A link can be as wide and fast as both of its ends. Cards for displays and
accelerators lower the speed while they idle, so that only their width counts.
"""

import math
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
        fractions = [_find_fraction(place, what) for what in (
            ('width',) if kind.startswith(_SLOW_AT_REST)
            else ('width', 'speed'))]
        if all(fractions):
            yield place.name, max(0.0, 1 - math.prod(fractions))


def _find_fraction(place: pathlib.Path, what: str) -> float:
    """Find what part a link has of what both ends can; 0 if not known."""
    now, *most = (
        float(match[0]) if match else 0.0 for match in map(_NUMBER.match, (
            _read(place / f'current_link_{what}'),
            *(_read(end / f'max_link_{what}')
              for end in (place, place.resolve().parent)))))
    # A link that is down has no width.
    return now / min(most) if all(most) else 0.0


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding='ascii', errors='replace').strip()
    except OSError:
        return ''
