# SPDX-License-Identifier: Apache-2.0

"""The kinds of refusal, as they are named where refusals are counted."""

import collections
from collections.abc import Mapping

from hpcvirt.fit import reasons

_Code = reasons.Code

#: The name of each kind where refusals are counted.
KINDS: Mapping[_Code, str] = {
    _Code.CELL_PCPUS: 'too few PCPUs in a cell',
    _Code.FREE_PCPUS: 'too few free PCPUs in a cell',
    _Code.SHARED_CPUS: 'too few shared CPUs in a cell',
    _Code.CPU_RATIO: 'CPU allocation ratio of a cell exceeded',
    _Code.RAM_RATIO: 'RAM allocation ratio of a cell exceeded',
    _Code.MEMORY: 'too little memory in a cell',
    _Code.FREE_MEMORY: 'too little free memory in a cell',
    _Code.PAGE_SIZE: 'no pages of the requested size',
    _Code.PAGE_CLASS: 'too few free pages of the requested class in a cell',
    _Code.PAGE_MULTIPLE: 'memory not a multiple of the page size',
    _Code.FREE_PAGES: 'too few free pages in a cell',
    _Code.NO_SIBLINGS: 'no SMT siblings',
    _Code.SIBLINGS: 'too few free SMT siblings in a cell',
    _Code.SIBLINGS_ON_ISOLATE: 'thread policy isolate with SMT siblings',
    _Code.FREE_CORES: 'too few whole free cores in a cell',
    _Code.NO_CORES: 'no cores in a cell',
    _Code.NOTHING_TO_ISOLATE: 'a guest cell without dedicated vCPUs',
    _Code.NO_VCPUS: 'a guest cell without vCPUs',
    _Code.EMULATOR_PCPU: 'no PCPU for the emulator threads',
    _Code.CLOSED: 'closed to new instances',
    _Code.QUARANTINED: 'in quarantine',
    _Code.RESOURCES: 'too little on the whole host',
    _Code.EXTRA_SPEC: 'malformed extra spec',
    _Code.MALFORMED_HOST: 'malformed data',
    _Code.NO_CANDIDATES: 'no allocation candidate',
    _Code.NO_TOPOLOGY: 'no NUMA topology',
    _Code.HOST_CELLS: 'too few cells',
    _Code.NO_CELL: 'no cell with room',
    _Code.NO_CELL_FOR: 'no cell with room',
    _Code.TOO_FEW_CELLS: 'too few cells with room',
    _Code.CELLS_CONTENDED: 'too few cells with room',
    _Code.DEVICES: 'too few PCI devices',
    _Code.DEVICES_TAKEN: 'too few PCI devices',
    _Code.DEVICE_AFFINITY: 'PCI devices on other cells',
    _Code.NETWORK_AFFINITY: 'networks with affinity to other cells',
    _Code.NO_DEVICE_SET: 'no free set of PCI devices',
    _Code.BROKEN_DEVICE_SET: 'no free set of PCI devices',
    _Code.DEVICE_SET_UNKNOWN: 'PCI devices not in Placement',
    _Code.SCOPE_SOCKET: 'cells of several sockets',
    _Code.SOCKET_UNKNOWN: 'unknown sockets',
    _Code.CELL_OCCUPIED: 'cells in use',
    _Code.UNDECIDED: 'too many sets of cells to try',
    _Code.CLAIM_REFUSES: "fits, but Nova's claim would refuse it",
    _Code.CLAIM_MISPLACES: "fits, but Nova's claim would misplace it",
    _Code.CLAIM_MISACCOUNTS: "fits, but Nova's claim would fail",
    _Code.CLAIM_RAISES: "fits, but Nova's claim would fail",
    _Code.CLAIM_TOO_LONG: "fits, but Nova's claim would take too long",
    _Code.CLAIM_TAKES_FEWER: "fits, but Nova's claim would take fewer devices",
    _Code.CLAIM_OF_A_MOVE: "fits, but Nova's claim of a move goes wrong",
    _Code.UNSAFE_ALTERNATE: 'unsafe if a build fails on another host',
}


def tally(refused: Mapping[_Code, int]) -> str:
    """Summarize refusals by kind, the most frequent first."""
    kinds: collections.Counter[str] = collections.Counter()
    for code, count in refused.items():
        kinds[KINDS[code]] += count
    return ', '.join(f'{kind} ({n})' for kind, n in kinds.most_common())
