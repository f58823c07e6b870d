# SPDX-License-Identifier: Apache-2.0

"""The warnings of a plan, each with a code and a sentence."""

import dataclasses
import enum
import itertools
import typing
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import words

if typing.TYPE_CHECKING:
    import _typeshed

#: A frozen dataclass.
T = typing.TypeVar('T', bound='_typeshed.DataclassInstance')


class WarningCode(enum.StrEnum):
    """The codes of warnings; each value is part of the JSON document."""

    ADDRESS_WIDTH = 'address-width'
    CELL_NOT_USED = 'cell-not-used'
    CELL_WITHOUT_CPUS = 'cell-without-cpus'
    CELL_WITHOUT_MEMORY = 'cell-without-memory'
    CELLS_WITHOUT_VFS = 'cells-without-vfs'
    CLAIM_TOO_LONG = 'claim-too-long'
    DEVICES_FAR = 'devices-far'
    DEVICES_MISSING = 'devices-missing'
    DEVICE_IN_NO_SET = 'device-in-no-set'
    DEVICES_NOT_COUNTED = 'devices-not-counted'
    DEVICES_NOT_SHARED = 'devices-not-shared'
    DEVICE_TYPE_DIFFERS = 'device-type-differs'
    DEVICE_TYPE_UNSURE = 'device-type-unsure'
    DEVICE_WITHOUT_CELL = 'device-without-cell'
    FITS_ELSEWHERE = 'fits-elsewhere'
    HOST_MAKES_FLAVORS = 'host-makes-flavors'
    HOST_MAKES_FLAVORS_SMALLER = 'host-makes-flavors-smaller'
    HOST_NOT_SERVED = 'host-not-served'
    HUGE_PAGES_GIVEN_BACK = 'huge-pages-given-back'
    HUGE_PAGES_UNEVEN = 'huge-pages-uneven'
    HUGE_PAGES_UNKNOWN = 'huge-pages-unknown'
    INSTANCES_EXCEED = 'instances-exceed'
    IRREGULAR_CORES = 'irregular-cores'
    LLC_NOT_SEEN = 'llc-not-seen'
    MANY_CANDIDATES = 'many-candidates'
    NEAR_DEVICES_MISSING = 'near-devices-missing'
    NO_HOUSEKEEPING = 'no-housekeeping'
    NO_PARTS = 'no-parts'
    PLANNED_ANEW = 'planned-anew'
    SETS_MISSING = 'sets-missing'
    SETS_UNKNOWN = 'sets-unknown'
    SOCKET_SCOPE_NOT_HELD = 'socket-scope-not-held'
    SIBLINGS_IDLE = 'siblings-idle'
    SIZE_NOT_PLACED = 'size-not-placed'
    SMT_MIXED = 'smt-mixed'
    TOPOLOGY_UNKNOWN = 'topology-unknown'
    VF_PRODUCT_UNKNOWN = 'vf-product-unknown'
    VGPU_AFFINITY = 'vgpu-affinity'
    VGPU_ON_SRIOV = 'vgpu-on-sriov'


#: The codes of warnings about instances that contradict their hosts.
OF_RECORDS = frozenset({WarningCode.DEVICES_NOT_COUNTED,
                        WarningCode.INSTANCES_EXCEED})
#: The codes of warnings about the answers that a fleet gives, not its plan.
OF_ANSWERS = OF_RECORDS | {WarningCode.PLANNED_ANEW}

#: The codes of warnings whose subjects are flavors, not hosts.
_OF_FLAVORS = frozenset({WarningCode.ADDRESS_WIDTH,
                         WarningCode.CLAIM_TOO_LONG, WarningCode.DEVICES_FAR,
                         WarningCode.FITS_ELSEWHERE,
                         WarningCode.MANY_CANDIDATES,
                         WarningCode.SOCKET_SCOPE_NOT_HELD,
                         WarningCode.SIZE_NOT_PLACED})


@dataclasses.dataclass(frozen=True, slots=True)
class PlanWarning:
    """A warning about a plan.

    :ivar what: one sentence without a full stop
    :ivar subjects: the hosts or flavors that it is about
    """

    code: WarningCode
    what: str
    subjects: tuple[str, ...] = ()

    @property
    def is_of_flavors(self) -> bool:
        """Whether its subjects are flavors, not hosts."""
        return self.code in _OF_FLAVORS

    @property
    def message(self) -> str:
        if not self.subjects:
            return self.what
        noun = 'flavors' if self.is_of_flavors else 'hosts'
        return f'{words.join_names(self.subjects, noun)}: {self.what}'

    def name_all(self, names: Mapping[str, tuple[str, ...]]) -> 'PlanWarning':
        """Name all hosts like the hosts that the warning is about.

        :param names: host -> the names of all hosts like it
        """
        if self.is_of_flavors:
            return self
        return dataclasses.replace(
            self, subjects=tuple(itertools.chain.from_iterable(
                names[host] for host in self.subjects)))


def gather(items: Iterable[T], subjects: str = 'subjects') -> tuple[T, ...]:
    """Merge equal warnings or findings about different subjects.

    :param subjects: the field that names hosts or flavors
    """
    merged: dict[T, dict[str, None]] = {}
    for item in items:
        merged.setdefault(
            dataclasses.replace(item, **{subjects: ()}), {}).update(
                dict.fromkeys(getattr(item, subjects)))
    return tuple(dataclasses.replace(item, **{subjects: tuple(names)})
                 for item, names in merged.items())
