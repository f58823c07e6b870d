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

"""A published study: what was run, what came out, what is said of it.

The raw figures are stored, ratios are worked out. A case is declarative, so
that a site can run it on its own cloud and put its figures beside the
published ones.
"""

import dataclasses
import enum
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.bench.model import outcome


class Partition(enum.StrEnum):
    """What a guest spans: a package, the host, or a part of the host."""

    SOCKET = 'socket'
    HOST = 'host'
    PART = 'part'


@dataclasses.dataclass(frozen=True)
class Guests:
    """The guests of a case.

    :ivar instances: how many, on all hosts together
    :ivar vcpus: of each
    :ivar memory_mib: of each, None if the study does not say
    :ivar partition: what each spans
    :ivar share: the part of the host's CPUs that each has, ``1/4``; for
        ``PART`` only
    :ivar tuned: guest NUMA cells shown and pinned
    :ivar pages: page size inside the guest and the application, ``small`` or
        ``large``; empty if the study did not vary it
    :ivar host_pages: page size behind the guest's memory
    :ivar networks: virtual switches between the guests, 0 if none is used
    :ivar device: ``emulated``, ``virtio``, ``sriov``, ``passthrough``, or
        empty if no network is measured
    """

    instances: int
    vcpus: int
    memory_mib: int | None = None
    partition: Partition = Partition.HOST
    share: str = ''
    tuned: bool = False
    pages: str = ''
    host_pages: str = 'small'
    networks: int = 0
    device: str = ''

    @property
    def shape(self) -> str:
        return f'{self.instances}x{self.vcpus}'


@dataclasses.dataclass(frozen=True)
class Use:
    """A benchmark of a case.

    :ivar parameters: sizes and ranks of the study; a site that is larger or
        smaller leaves them to the definition's rule
    :ivar instead: free benchmarks that may stand in
    """

    benchmark: str
    variant: str
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    instead: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration that is compared with native.

    :ivar hosts: physical hosts that the guests are on
    :ivar launch: ``cold`` or ``warm`` if it matters
    :ivar host_settings: such as ``nested_paging: 'on'``, ``smt: 'off'``
    """

    id: str
    text: str
    guests: Guests
    uses: tuple[Use, ...]
    hosts: int = 1
    launch: str = ''
    host_settings: Mapping[str, str] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Row:
    """One published comparison.

    Either both arms have a figure, or the study states a percentage alone.

    :ivar what: benchmark and its figure as the study names them
    :ivar scope: what else varies, ``processes: '8'`` for example
    :ivar below_bytes: only message sizes below this
    :ivar from_bytes: only message sizes from this on
    :ivar stated_percent: loss of a rate, or increase of a time, in percent
    :ivar relation: ``about``, ``below``, ``above``; empty for a plain figure
    :ivar native_spread: after the sign +/- in the study
    :ivar each: figure of one guest where ``guest`` is the sum
    """

    id: str
    case: str
    what: str
    benchmark: str
    metric: str
    unit: str
    direction: outcome.Direction
    scope: Mapping[str, str] = dataclasses.field(default_factory=dict)
    below_bytes: int | None = None
    from_bytes: int | None = None
    native: float | None = None
    guest: float | None = None
    stated_percent: float | None = None
    relation: str = ''
    native_spread: float | None = None
    each: float | None = None
    each_spread: float | None = None

    @property
    def ratio(self) -> float:
        """Worked out: guest / native, or from the percentage."""
        if self.native is not None and self.guest is not None:
            return self.guest / self.native
        percent = self.stated_percent or 0.0
        if self.direction is outcome.Direction.UP:
            return 1 - percent / 100
        return 1 + percent / 100

    @property
    def title(self) -> str:
        """The figure, with what else varies."""
        return self.what + ''.join(
            f', {value} {name}' if value.isdigit() else ''
            for name, value in self.scope.items())

    @property
    def figures(self) -> tuple[str, str, str]:
        """Native, guest and their ratio, as text."""
        native = _number(self.native)
        if self.native_spread:
            native += f' +/- {self.native_spread:g}'
        relation = f'{self.relation} ' if self.relation else ''
        return native, _number(self.guest), f'{relation}{self.ratio:.4f}'


class Kind(enum.StrEnum):
    """How a claim follows from figures a, b, c, d."""

    RATIO = 'ratio'                # a / b
    GAIN = 'gain'                  # (a / b - 1) x 100
    LOSS = 'loss'                  # (1 - a / b) x 100
    POINTS = 'points'              # (a / b - c / d) x 100
    REDUCTION = 'reduction'        # loss(a, c) after loss(b, c), in percent
    TOTAL = 'total'                # a x factor
    SHARE = 'share'                # a / b x 100


@dataclasses.dataclass(frozen=True)
class Claim:
    """A number that a study prints and that follows from others it prints.

    :ivar printed: as it stands there, with its decimals
    :ivar of: ``ROW.native``, ``ROW.guest``, ``ROW.each``, or a number
    :ivar disputed: why the printed number is not what follows; empty if it
        is
    """

    text: str
    printed: str
    kind: Kind
    of: tuple[str, ...]
    factor: float = 1.0
    disputed: str = ''


@dataclasses.dataclass(frozen=True)
class Study:
    """One study.

    :ivar source: name of the document
    :ivar setup: hardware and software, one sentence each
    :ivar lessons: what an operator takes from it
    :ivar unfounded: figures that the document prints without what they
        follow from
    """

    id: str
    title: str
    source: str
    document: str
    setup: tuple[str, ...]
    cases: tuple[Case, ...]
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    lessons: tuple[str, ...]
    unfounded: tuple[str, ...] = ()

    def case(self, name: str) -> Case:
        """A case by its name.

        :raises InvalidInput: if there is none
        """
        for case in self.cases:
            if case.id == name:
                return case
        known = ', '.join(case.id for case in self.cases)
        raise exception.InvalidInput(
            self.id, f'no case {name!r}; there is {known}')


def _number(value: float | None) -> str:
    return '-' if value is None else f'{value:.6g}'
