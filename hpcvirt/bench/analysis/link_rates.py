# SPDX-License-Identifier: Apache-2.0

"""What the links of a machine could transfer at most.

The kernel says the rate of an InfiniBand port with the bits of its encoding
up to FDR, such as "40 Gb/sec (4X QDR)", and that of Ethernet in Mb/s without.
"""

import re
from collections.abc import Iterable

from hpcvirt.bench.model import record

#: Of 10 bits on the wire, or of 66, 8 or 64 are data.
_DATA = {'SDR': 0.8, 'DDR': 0.8, 'QDR': 0.8, 'FDR': 64 / 66}
_INFINIBAND = re.compile(
    r'([0-9]{1,5}(?:[.][0-9])?) Gb/sec \([0-9]{1,2}X ([A-Z0-9]{1,4})\)')
_ETHERNET = re.compile('[1-9][0-9]{0,6}')
_PREFIX = 'link.'


def read_mb_s(text: str) -> float | None:
    """Read the MB/s of data of a link; None if it is down or unknown."""
    found = _INFINIBAND.fullmatch(text)
    if found:
        return float(found[1]) * _DATA.get(found[2], 1.0) * 1000 / 8
    if _ETHERNET.fullmatch(text):
        return int(text) / 8
    return None


def find_fastest(samples: Iterable[record.Sample]) -> float | None:
    """Find the MB/s of the fastest link that any sample has seen."""
    rates = []
    for sample in samples:
        for name, value in sample.environment.items():
            if name.startswith(_PREFIX):
                rates.append(read_mb_s(value))
    return max((rate for rate in rates if rate is not None), default=None)
