# SPDX-License-Identifier: Apache-2.0

"""What a fault of a host costs, as far as somebody has published it."""

import dataclasses
from collections.abc import Mapping

from hpcvirt import bibliography


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """A published figure.

    :ivar percent: how much longer the work took that suffered most, by which
        findings are ordered; 0 if the figure is about no work of guests
    :ivar source: the key of a document of the bibliography
    """

    percent: float
    words: str
    source: str

    def __str__(self) -> str:
        return f'{self.words} {bibliography.get(self.source).citation}'


NOT_MEASURED = 'not measured'

SMALL_PAGES = Cost(
    144, 'random access to memory took 2.4 times as long with pages of 4 KiB, '
    'and HPL 6 % longer', 'VMware-Memory-2010')
DEBUG_KERNEL = Cost(200, 'work in a kernel with KASAN takes three times as '
                    'long', 'Linux-Kasan')
_SWAPPING = Cost(43, 'guests and host waited for the disk 20 to 30 % of the '
                 'time', 'CERN-HEPiX-2015')

#: The code of a rule -> what all its findings cost.
BY_RULE: Mapping[str, Cost] = {
    'nested-paging': Cost(900, 'a few jobs took 10 times as long, at 30 to '
                          '50 % of system time', 'CERN-HEPiX-2015'),
    'swap': _SWAPPING,
    'host-memory': _SWAPPING,
    'nova-dedicated': Cost(
        26, 'guests of 32 CPUs lost 20 % of HS06 untuned, and 3 to 6 % with '
        'their own CPUs, cells and huge pages', 'CERN-HEPiX-2015'),
    'isolation': Cost(1.6, 'services took 1.5 % of HS06', 'CERN-HEPiX-2015'),
    'device-ordering': Cost(
        300, 'a TCP stream into the memory of another cell had a quarter of '
        'the bandwidth', 'Levin-2020'),
    'ksm': Cost(0.5, 'KSM took 0.5 % of HS06', 'CERN-HEPiX-2015'),
    'ksm-slab': Cost(0, 'more than 1 GB of memory', 'CERN-HEPiX-2015'),
    'clocksource': Cost(
        0, 'reading the time took 22 (HPET) and 45 (ACPI PM) times as long',
        'RHEL-RT-Timestamps'),
    'mitigations': Cost(
        0, 'work of the operating system took up to 30 % longer on old '
        'processors and 3 % on new ones; guests and computations took no '
        'measurably longer time', 'Behrens-2022'),
}
