# SPDX-License-Identifier: Apache-2.0

"""The kinds of refusal, as they are named where refusals are counted."""

import collections
from collections.abc import Mapping

from hpcvirt.fit import reasons

#: The name of each kind where refusals are counted.
KINDS: Mapping[reasons.Code, str] = {
    reasons.Code.CELL_PCPUS: 'too few PCPUs in a cell',
    reasons.Code.FREE_PCPUS: 'too few free PCPUs in a cell',
    reasons.Code.SHARED_CPUS: 'too few shared CPUs in a cell',
    reasons.Code.CPU_RATIO: 'CPU allocation ratio of a cell exceeded',
    reasons.Code.RAM_RATIO: 'RAM allocation ratio of a cell exceeded',
    reasons.Code.MEMORY: 'too little memory in a cell',
    reasons.Code.FREE_MEMORY: 'too little free memory in a cell',
    reasons.Code.PAGE_SIZE: 'no pages of the requested size',
    reasons.Code.PAGE_CLASS:
        'too few free pages of the requested class in a cell',
    reasons.Code.PAGE_MULTIPLE: 'memory not a multiple of the page size',
    reasons.Code.FREE_PAGES: 'too few free pages in a cell',
    reasons.Code.NO_SIBLINGS: 'no SMT siblings',
    reasons.Code.SIBLINGS: 'too few free SMT siblings in a cell',
    reasons.Code.SIBLINGS_ON_ISOLATE:
        'thread policy isolate with SMT siblings',
    reasons.Code.FREE_CORES: 'too few whole free cores in a cell',
    reasons.Code.NO_CORES: 'no cores in a cell',
    reasons.Code.NOTHING_TO_ISOLATE: 'a guest cell without dedicated vCPUs',
    reasons.Code.NO_VCPUS: 'a guest cell without vCPUs',
    reasons.Code.EMULATOR_PCPU: 'no PCPU for the emulator threads',
    reasons.Code.CLOSED: 'closed to new instances',
    reasons.Code.QUARANTINED: 'in quarantine',
    reasons.Code.RESOURCES: 'too little on the whole host',
    reasons.Code.EXTRA_SPEC: 'malformed extra spec',
    reasons.Code.MALFORMED_HOST: 'malformed data',
    reasons.Code.NO_CANDIDATES: 'no allocation candidate',
    reasons.Code.NO_TOPOLOGY: 'no NUMA topology',
    reasons.Code.HOST_CELLS: 'too few cells',
    reasons.Code.NO_CELL: 'no cell with room',
    reasons.Code.NO_CELL_FOR: 'no cell with room',
    reasons.Code.TOO_FEW_CELLS: 'too few cells with room',
    reasons.Code.CELLS_CONTENDED: 'too few cells with room',
    reasons.Code.DEVICES: 'too few PCI devices',
    reasons.Code.DEVICES_TAKEN: 'too few PCI devices',
    reasons.Code.DEVICE_AFFINITY: 'PCI devices on other cells',
    reasons.Code.NETWORK_AFFINITY: 'networks with affinity to other cells',
    reasons.Code.NO_DEVICE_SET: 'no free set of PCI devices',
    reasons.Code.BROKEN_DEVICE_SET: 'no free set of PCI devices',
    reasons.Code.DEVICE_SET_UNKNOWN: 'PCI devices not in Placement',
    reasons.Code.SCOPE_SOCKET: 'cells of several sockets',
    reasons.Code.SOCKET_UNKNOWN: 'unknown sockets',
    reasons.Code.CELL_OCCUPIED: 'cells in use',
    reasons.Code.UNDECIDED: 'too many sets of cells to try',
    reasons.Code.CLAIM_REFUSES: "fits, but Nova's claim would refuse it",
    reasons.Code.CLAIM_MISPLACES: "fits, but Nova's claim would misplace it",
    reasons.Code.CLAIM_MISACCOUNTS: "fits, but Nova's claim would fail",
    reasons.Code.CLAIM_RAISES: "fits, but Nova's claim would fail",
    reasons.Code.CLAIM_TOO_LONG: "fits, but Nova's claim would take too long",
    reasons.Code.CLAIM_TAKES_FEWER:
        "fits, but Nova's claim would take fewer devices",
    reasons.Code.CLAIM_OF_A_MOVE:
        "fits, but Nova's claim of a move goes wrong",
    reasons.Code.UNSAFE_ALTERNATE: 'unsafe if a build fails on another host',
}


def tally(refused: Mapping[reasons.Code, int]) -> str:
    """Summarize refusals by kind, the most frequent first."""
    kinds: collections.Counter[str] = collections.Counter()
    for code, count in refused.items():
        kinds[KINDS[code]] += count
    return ', '.join(f'{kind} ({n})' for kind, n in kinds.most_common())
