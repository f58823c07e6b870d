# SPDX-License-Identifier: Apache-2.0

"""The reasons why a guest does not fit: all messages of the fit engine.

A refusal is a value, a :class:`Misfit`. Its message is formatted only when
it is read, because the scheduler creates thousands that are never read.

To refuse a host by counting takes less time than to determine what each of its
cells lacks. The reason of a :class:`LateMisfit` is therefore determined only
when it is read: nova-scheduler reads only those of requests that no host can
take. Where refusals are counted, they are named by kind (:data:`KINDS`).
"""

import collections
import dataclasses
import enum
import typing
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from hpcvirt import printable


class Code(enum.StrEnum):
    """The kinds of refusal; the values do not change between releases."""

    # One guest cell on one host cell.
    CELL_PCPUS = 'cell-pcpus'
    FREE_PCPUS = 'free-pcpus'
    SHARED_CPUS = 'shared-cpus'
    CPU_RATIO = 'cpu-ratio'
    RAM_RATIO = 'ram-ratio'
    MEMORY = 'memory'
    FREE_MEMORY = 'free-memory'
    PAGE_SIZE = 'page-size'
    PAGE_CLASS = 'page-class'
    PAGE_MULTIPLE = 'page-multiple'
    FREE_PAGES = 'free-pages'
    NO_SIBLINGS = 'no-siblings'
    SIBLINGS = 'siblings'
    SIBLINGS_ON_ISOLATE = 'siblings-on-isolate'
    FREE_CORES = 'free-cores'
    NO_CORES = 'no-cores'
    NOTHING_TO_ISOLATE = 'nothing-to-isolate'
    EMULATOR_PCPU = 'emulator-pcpu'
    NO_VCPUS = 'no-vcpus'
    # A whole guest on a whole host.
    CLOSED = 'closed'
    QUARANTINED = 'quarantined'
    TRAIT = 'trait'
    FORBIDDEN_TRAIT = 'forbidden-trait'
    AGGREGATE = 'aggregate'
    ADDRESS_BITS = 'address-bits'
    RESOURCES = 'resources'
    EXTRA_SPEC = 'extra-spec'
    MALFORMED_HOST = 'malformed-host'
    NO_CANDIDATES = 'no-candidates'
    NO_TOPOLOGY = 'no-topology'
    HOST_CELLS = 'host-cells'
    NO_CELL = 'no-cell'
    NO_CELL_FOR = 'no-cell-for'
    TOO_FEW_CELLS = 'too-few-cells'
    CELLS_CONTENDED = 'cells-contended'
    DEVICES = 'devices'
    DEVICES_TAKEN = 'devices-taken'
    DEVICE_AFFINITY = 'device-affinity'
    NETWORK_AFFINITY = 'network-affinity'
    NO_DEVICE_SET = 'no-device-set'
    DEVICE_SET_UNKNOWN = 'device-set-unknown'
    BROKEN_DEVICE_SET = 'broken-device-set'
    SCOPE_SOCKET = 'scope-socket'
    SOCKET_UNKNOWN = 'socket-unknown'
    CELL_OCCUPIED = 'cell-occupied'
    UNDECIDED = 'undecided'
    # The guest fits, but Nova's claim would not succeed.
    CLAIM_REFUSES = 'claim-refuses'
    CLAIM_MISPLACES = 'claim-misplaces'
    CLAIM_MISACCOUNTS = 'claim-misaccounts'
    CLAIM_RAISES = 'claim-raises'
    CLAIM_TOO_LONG = 'claim-too-long'
    CLAIM_TAKES_FEWER = 'claim-takes-fewer'
    CLAIM_OF_A_MOVE = 'claim-of-a-move'
    UNSAFE_ALTERNATE = 'unsafe-alternate'


class Defect(enum.StrEnum):
    """Defects of Nova's claim, by their letters in the documentation."""

    #: Unequal guest cells are refused or misplaced.
    UNEQUAL_CELLS = 'A'
    #: Equal guest cells whose devices are on distant cells get wrong pins.
    DISTANT_DEVICES = 'B'
    #: The first cell tried fixes a page size requested by class.
    PAGE_CLASS = 'C'
    #: A claim that cannot succeed tries all arrangements.
    TOO_MANY_ATTEMPTS = 'D'
    #: Isolated emulator threads get a CPU on a core in use.
    EMULATOR_THREADS = 'F'
    #: The claim raises on a cell without cores.
    NO_CORES = 'G'
    #: After a failed build all guest cells have the same number.
    FAILED_BUILD = 'H'
    #: A move ignores the affinity policy of the flavor.
    LOST_AFFINITY = 'I'
    #: An unshelve starts from the cells of the guest on its former host.
    FORMER_HOST = 'J'
    #: A live migration ignores allocation ratios and networks.
    LOST_LIMITS = 'K'
    #: The claim takes fewer devices than Placement has allocated.
    FEWER_DEVICES = 'L'
    #: The claim does not know that devices make others unusable.
    DEPENDENT_DEVICES = 'M'
    #: The claim of a move does not take the devices that were allocated.
    LOST_ALLOCATION = 'N'


_MESSAGES: Mapping[Code, str] = {
    Code.CELL_PCPUS: 'cell {cell} has {total} of the {needed} PCPUs needed',
    Code.FREE_PCPUS:
        'cell {cell} has {free} of the {needed} free PCPUs needed',
    Code.SHARED_CPUS:
        'cell {cell} has {total} of the {needed} shared CPUs needed',
    Code.CPU_RATIO:
        'cell {cell} would have {needed} shared vCPUs, over its limit of '
        '{limit:g}',
    Code.RAM_RATIO:
        'cell {cell} would have {needed} MiB in use, over its limit of '
        '{limit:g} MiB',
    Code.MEMORY:
        'cell {cell} has {total} of the {needed} MiB of memory needed',
    Code.FREE_MEMORY:
        'cell {cell} has {free} of the {needed} MiB of free memory needed',
    Code.PAGE_SIZE: 'cell {cell} has no pages of {size} KiB',
    Code.PAGE_CLASS:
        'cell {cell} has no page size of class {size} with {needed} MiB free',
    Code.PAGE_MULTIPLE:
        '{needed} MiB is not a multiple of the page size of {size} KiB on '
        'cell {cell}',
    Code.FREE_PAGES:
        'cell {cell} has {free} of the {needed} free pages of {size} KiB '
        'needed',
    Code.NO_SIBLINGS:
        'cell {cell} has no SMT siblings, but the thread policy is require',
    Code.SIBLINGS:
        'cell {cell} has room on free SMT siblings for {free} of the '
        '{needed} vCPUs',
    Code.SIBLINGS_ON_ISOLATE:
        'cell {cell} has SMT siblings, but the thread policy is isolate and '
        'the host sets cpu_dedicated_set',
    Code.FREE_CORES:
        'cell {cell} has {free} of the {needed} whole free cores needed',
    Code.NO_CORES: 'cell {cell} has no cores',
    Code.NOTHING_TO_ISOLATE:
        'a guest cell has no dedicated vCPUs, but the thread policy is '
        'isolate',
    Code.NO_VCPUS: 'a guest cell has no vCPUs',
    Code.EMULATOR_PCPU:
        'cell {cell} has no PCPU for isolated emulator threads, because the '
        'guest cell has no dedicated vCPUs',
    Code.CLOSED: 'the host takes no new instance: {what}',
    Code.QUARANTINED: 'the host is in quarantine: {what}',
    Code.TRAIT: 'the host lacks the trait {trait}',
    Code.FORBIDDEN_TRAIT:
        'the host has the trait {trait}, which is forbidden',
    Code.AGGREGATE:
        'the host is kept for flavors that require the trait {trait}',
    Code.ADDRESS_BITS:
        'the host has addresses of {total} bits, and hw:maxphysaddr_bits asks '
        'for {needed}',
    Code.RESOURCES: 'the host has {free} {resource} {which}, {needed} needed',
    Code.EXTRA_SPEC: 'the extra spec {key} is malformed: {what}',
    Code.MALFORMED_HOST: 'the host reports malformed data: {what}',
    Code.NO_CANDIDATES: 'no allocation candidate is left',
    Code.NO_TOPOLOGY: 'the host reports no NUMA topology',
    Code.HOST_CELLS: 'the host has {total} of the {needed} cells needed',
    Code.NO_CELL: 'no cell has room',
    Code.NO_CELL_FOR: 'no cell has room for guest cell {guest_cell}',
    Code.TOO_FEW_CELLS:
        'the host has room on {free} of the {needed} cells needed',
    Code.CELLS_CONTENDED:
        'the host has room for guest cells {guest_cells} on {free} of the '
        '{needed} cells needed',
    Code.DEVICES:
        'the host has {free} of the {needed} free PCI devices that request '
        '{request} needs',
    Code.DEVICES_TAKEN:
        'request {request} gets too few PCI devices of the whole host: '
        'requests before it take them, or Placement has allocated others',
    Code.DEVICE_AFFINITY:
        'no cells with room satisfy the affinity policy of the PCI devices '
        '(devices on {cells})',
    Code.NETWORK_AFFINITY:
        'no cells with room have affinity to {networks} (affinity to {cells})',
    Code.NO_DEVICE_SET: 'no set {kind} of PCI devices is free',
    Code.DEVICE_SET_UNKNOWN:
        'the flavor needs a set {kind} of PCI devices, but its devices are '
        'not in Placement',
    Code.BROKEN_DEVICE_SET:
        'set {set} has {free} of its {total} devices free{used}',
    Code.SCOPE_SOCKET:
        'Nova would use {cells} of sockets {sockets}, but '
        'hpcvirt:numa_scope asks for one socket',
    Code.SOCKET_UNKNOWN:
        'the socket of cell {cell} is unknown, but hpcvirt:numa_scope asks '
        'for one socket',
    Code.CELL_OCCUPIED:
        'Nova would use cell {cell}, which has {what} in use, but '
        'hpcvirt:exclusive_cells asks for empty cells',
    Code.UNDECIDED:
        'the search was given up: none of the first {tried} sets of cells '
        'tried, for all allocation candidates together, is known to have the '
        'requested PCI devices and networks',
    Code.CLAIM_REFUSES:
        'the guest fits on {cells}, but the claim on the compute host '
        "would refuse it (Nova's defect {defect})",
    Code.CLAIM_MISPLACES:
        'the claim on the compute host would place guest cell {guest_cell} '
        'on cell {cell} with CPUs or memory that are not free there '
        "(Nova's defect {defect})",
    Code.CLAIM_MISACCOUNTS:
        'the claim on the compute host would give the emulator threads a '
        'CPU of cell {cell} whose SMT sibling belongs to another instance '
        "(Nova's defect {defect})",
    Code.CLAIM_RAISES:
        'the claim on the compute host would fail on cell {cell}, which has '
        "no cores (Nova's defect {defect})",
    Code.CLAIM_TOO_LONG:
        'the claim on the compute host would try more than {tried} '
        "arrangements of cells (Nova's defect {defect})",
    Code.CLAIM_TAKES_FEWER:
        'the claim on the compute host would take {free} of the {needed} PCI '
        "devices of request {request} (Nova's defect {defect})",
    Code.CLAIM_OF_A_MOVE:
        "{why} (Nova's defect {defect}): the claim would {what}",
    Code.UNSAFE_ALTERNATE:
        "wrong if the build fails on another host (Nova's defect {defect})",
}

#: The messages if one is needed and none is left.
_MESSAGES_FOR_ONE: Mapping[Code, str] = {
    Code.CELL_PCPUS: 'cell {cell} has no PCPU',
    Code.FREE_PCPUS: 'cell {cell} has no free PCPU',
    Code.SHARED_CPUS: 'cell {cell} has no shared CPU',
    Code.CPU_RATIO:
        'cell {cell} would have 1 shared vCPU, over its limit of {limit:g}',
    Code.FREE_PAGES: 'cell {cell} has no free page of {size} KiB',
    Code.SIBLINGS: 'cell {cell} has no free SMT siblings for the vCPU',
    Code.FREE_CORES: 'cell {cell} has no whole free core',
    Code.HOST_CELLS: 'the host has no cell',
    Code.DEVICES:
        'the host has no free PCI device for request {request}',
    Code.CLAIM_TAKES_FEWER:
        'the claim on the compute host would take no PCI device for request '
        "{request} (Nova's defect {defect})",
}

#: The message about a whole host quotes at most this many causes.
_MAX_CAUSES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Misfit:
    """A refusal.

    :ivar details: the values of the placeholders in its message
    :ivar causes: if a whole host is refused, the refusals by its cells
    """

    code: Code
    details: Mapping[str, typing.Any] = dataclasses.field(
        default_factory=dict, hash=False)
    causes: tuple['Misfit', ...] = ()

    @property
    def message(self) -> str:
        """One sentence without a full stop."""
        message = _MESSAGES[self.code]
        if self.details.get('needed') == 1:
            message = _MESSAGES_FOR_ONE.get(self.code, message)
        sentence = message.format_map(self.details)
        if not self.causes:
            return sentence
        causes = [cause.message for cause in self.causes[:_MAX_CAUSES]]
        if len(self.causes) > _MAX_CAUSES:
            causes.append(f'and {len(self.causes) - _MAX_CAUSES} more')
        return f'{sentence}: {"; ".join(causes)}'

    @property
    def root(self) -> Code:
        """The code under which it is counted: the most frequent cause."""
        codes = [cause.root for cause in self.causes] or [self.code]
        return max(dict.fromkeys(codes), key=codes.count)

    def __str__(self) -> str:
        """Return the message in one line, for a log."""
        return printable.escape(self.message)


def refuse_host(free: int, needed: int,
                obstacles: Iterable[Misfit]) -> Misfit:
    """Refuse a host because obstacles leave too few of its cells free."""
    return Misfit(Code.TOO_FEW_CELLS if free else Code.NO_CELL,
                  {'free': free, 'needed': needed}, sort_by_cell(obstacles))


def sort_by_cell(obstacles: Iterable[Misfit]) -> tuple[Misfit, ...]:
    """Sort refusals by the number of the host cell, without repetitions."""
    misfits = tuple(obstacles)
    numbers = [misfit.details.get('cell', -1) for misfit in misfits]
    if numbers == sorted(set(numbers)):
        return misfits
    found = dict.fromkeys(zip(numbers, misfits, strict=True))
    return tuple(pair[1] for pair in sorted(found, key=lambda pair: pair[0]))


def cells(numbers: Iterable[int]) -> str:
    """Name the cells in a message: ``cell 2``, ``cells 2, 0``, ``no cell``."""
    texts = [str(number) for number in numbers]
    named = f'cell{"s" * (len(texts) > 1)} {", ".join(texts)}'
    return named if texts else 'no cell'


class LateMisfit(Misfit):
    """A refusal that a function determines when it is read."""

    __slots__ = ('_arguments', '_explain', '_misfit')
    _arguments: tuple[Any, ...]
    _explain: Callable[..., Misfit]
    _misfit: Misfit
    # A request makes one for each host, so it must be cheap.
    __setattr__ = object.__setattr__

    def __init__(self, explain: Callable[..., Misfit],
                 *arguments: Any) -> None:
        self._explain = explain
        self._arguments = arguments

    @property
    def misfit(self) -> Misfit:
        """The refusal with its reason."""
        try:
            return self._misfit
        except AttributeError:
            self._misfit = self._explain(*self._arguments)
            return self._misfit

    @property
    def code(self) -> Code:
        return self.misfit.code

    @property
    def details(self) -> Mapping[str, Any]:
        return self.misfit.details

    @property
    def causes(self) -> tuple[Misfit, ...]:
        return self.misfit.causes

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LateMisfit):
            other = other.misfit
        return self.misfit == other

    def __hash__(self) -> int:
        return hash(self.misfit)


#: The name of each kind where refusals are counted.
KINDS: Mapping[Code, str] = {
    Code.CELL_PCPUS: 'too few PCPUs in a cell',
    Code.FREE_PCPUS: 'too few free PCPUs in a cell',
    Code.SHARED_CPUS: 'too few shared CPUs in a cell',
    Code.CPU_RATIO: 'CPU allocation ratio of a cell exceeded',
    Code.RAM_RATIO: 'RAM allocation ratio of a cell exceeded',
    Code.MEMORY: 'too little memory in a cell',
    Code.FREE_MEMORY: 'too little free memory in a cell',
    Code.PAGE_SIZE: 'no pages of the requested size',
    Code.PAGE_CLASS:
        'too few free pages of the requested class in a cell',
    Code.PAGE_MULTIPLE: 'memory not a multiple of the page size',
    Code.FREE_PAGES: 'too few free pages in a cell',
    Code.NO_SIBLINGS: 'no SMT siblings',
    Code.SIBLINGS: 'too few free SMT siblings in a cell',
    Code.SIBLINGS_ON_ISOLATE:
        'thread policy isolate with SMT siblings',
    Code.FREE_CORES: 'too few whole free cores in a cell',
    Code.NO_CORES: 'no cores in a cell',
    Code.NOTHING_TO_ISOLATE: 'a guest cell without dedicated vCPUs',
    Code.NO_VCPUS: 'a guest cell without vCPUs',
    Code.EMULATOR_PCPU: 'no PCPU for the emulator threads',
    Code.CLOSED: 'closed to new instances',
    Code.QUARANTINED: 'in quarantine',
    Code.TRAIT: 'a trait is missing',
    Code.FORBIDDEN_TRAIT: 'a trait is forbidden',
    Code.AGGREGATE: 'kept for other flavors',
    Code.ADDRESS_BITS: 'addresses of too few bits',
    Code.RESOURCES: 'too little on the whole host',
    Code.EXTRA_SPEC: 'malformed extra spec',
    Code.MALFORMED_HOST: 'malformed data',
    Code.NO_CANDIDATES: 'no allocation candidate',
    Code.NO_TOPOLOGY: 'no NUMA topology',
    Code.HOST_CELLS: 'too few cells',
    Code.NO_CELL: 'no cell with room',
    Code.NO_CELL_FOR: 'no cell with room',
    Code.TOO_FEW_CELLS: 'too few cells with room',
    Code.CELLS_CONTENDED: 'too few cells with room',
    Code.DEVICES: 'too few PCI devices',
    Code.DEVICES_TAKEN: 'too few PCI devices',
    Code.DEVICE_AFFINITY: 'PCI devices on other cells',
    Code.NETWORK_AFFINITY: 'networks with affinity to other cells',
    Code.NO_DEVICE_SET: 'no free set of PCI devices',
    Code.BROKEN_DEVICE_SET: 'no free set of PCI devices',
    Code.DEVICE_SET_UNKNOWN: 'PCI devices not in Placement',
    Code.SCOPE_SOCKET: 'cells of several sockets',
    Code.SOCKET_UNKNOWN: 'unknown sockets',
    Code.CELL_OCCUPIED: 'cells in use',
    Code.UNDECIDED: 'too many sets of cells to try',
    Code.CLAIM_REFUSES: "fits, but Nova's claim would refuse it",
    Code.CLAIM_MISPLACES: "fits, but Nova's claim would misplace it",
    Code.CLAIM_MISACCOUNTS: "fits, but Nova's claim would fail",
    Code.CLAIM_RAISES: "fits, but Nova's claim would fail",
    Code.CLAIM_TOO_LONG: "fits, but Nova's claim would take too long",
    Code.CLAIM_TAKES_FEWER:
        "fits, but Nova's claim would take fewer devices",
    Code.CLAIM_OF_A_MOVE:
        "fits, but Nova's claim of a move goes wrong",
    Code.UNSAFE_ALTERNATE: 'unsafe if a build fails on another host',
}


def tally(refused: Mapping[Code, int]) -> str:
    """Summarize refusals by kind, the most frequent first."""
    kinds: collections.Counter[str] = collections.Counter()
    for code, count in refused.items():
        kinds[KINDS[code]] += count
    return ', '.join(f'{kind} ({n})' for kind, n in kinds.most_common())
