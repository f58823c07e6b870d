# SPDX-License-Identifier: Apache-2.0

"""A published study: its cases, figures and lessons.

The figures are stored as the study prints them; ratios are computed from
them. A site can run a case on its own cloud and compare its figures with the
published ones.
"""

import dataclasses
import enum
from collections.abc import Mapping

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt import words
from hpcvirt.bench.model import outcome


class GuestSpan(enum.StrEnum):
    """What a guest spans: a socket, the host, or a part of the host."""

    SOCKET = 'socket'
    HOST = 'host'
    PART = 'part'


class Relation(enum.StrEnum):
    """The relation of a measurement to a printed number, if not rounded."""

    ABOUT = 'about'
    BELOW = 'below'
    AT_MOST = 'at most'
    ABOVE = 'above'
    AT_LEAST = 'at least'


#: The relation of a loss to that of the ratio computed from it.
_OPPOSITE = {Relation.BELOW: Relation.ABOVE, Relation.ABOVE: Relation.BELOW,
             Relation.AT_MOST: Relation.AT_LEAST,
             Relation.AT_LEAST: Relation.AT_MOST}


@dataclasses.dataclass(frozen=True)
class CaseGuests:
    """The guests of a case.

    :ivar instances: number of guests on all hosts together
    :ivar vcpus: vCPUs of each guest
    :ivar memory_mib: memory of each guest, None if the study does not state
        it
    :ivar partition: what each guest spans
    :ivar share: for ``PART``, the share of the host's CPUs of each guest, such
        as ``1/4``
    :ivar tuned: the guest has NUMA cells, which are pinned
    :ivar pages: page size inside the guest and the application, ``small`` or
        ``large``; empty if the study did not vary it
    :ivar host_pages: page size that backs the guest's memory
    :ivar networks: virtual switches between the guests, 0 if none is used
    :ivar device: ``emulated``, ``virtio``, ``sriov``, ``passthrough``, or
        empty if no network is measured
    """

    instances: int
    vcpus: int
    memory_mib: int | None = None
    partition: GuestSpan = GuestSpan.HOST
    share: str = ''
    tuned: bool = False
    pages: str = ''
    host_pages: str = 'small'
    networks: int = 0
    device: str = ''

    @property
    def shape(self) -> str:
        """Instances x vCPUs of each."""
        return f'{self.instances}x{self.vcpus}'


@dataclasses.dataclass(frozen=True)
class StudyBenchmark:
    """A benchmark of a case.

    :ivar parameters: sizes and ranks of the study; for guests of another size,
        see :func:`hpcvirt.bench.studies.scaling.scale_parameters`
    :ivar stand_ins: free benchmarks that may replace it
    """

    benchmark: str
    variant: str
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration that is compared with native.

    :ivar hosts: number of physical hosts that the guests run on
    :ivar launch: ``cold`` or ``warm`` if it matters, empty otherwise
    :ivar host_settings: such as ``nested_paging: 'on'``, ``smt: 'off'``
    """

    id: str
    text: str
    guests: CaseGuests
    benchmarks: tuple[StudyBenchmark, ...]
    hosts: int = 1
    launch: str = ''
    host_settings: Mapping[str, str] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass(frozen=True)
class PublishedComparison:
    """One published comparison of guest and native.

    Either both sides have a figure, or the study states only a percentage.

    :ivar what: the benchmark and its figure, as the study names them
    :ivar place: the table, slide or section of the document
    :ivar scope: other parameters that vary, such as ``processes: '8'``
    :ivar below_bytes: only message sizes below this
    :ivar above_bytes: only message sizes above this
    :ivar stated_percent: loss of a rate, or increase of a time, in percent
    :ivar relation: relation of the measurement to the percentage, None if the
        percentage is rounded
    :ivar native_spread: the number after +/- in the study
    :ivar each_guest: the figure of one guest, if ``guest`` is the sum of all
    :ivar each_spread: the number after +/- of the figure of one guest
    """

    id: str
    case: str
    what: str
    benchmark: str
    metric: str
    unit: str
    direction: outcome.Direction
    place: str
    scope: Mapping[str, str] = dataclasses.field(default_factory=dict)
    below_bytes: int | None = None
    above_bytes: int | None = None
    native: float | None = None
    guest: float | None = None
    stated_percent: float | None = None
    relation: Relation | None = None
    native_spread: float | None = None
    each_guest: float | None = None
    each_spread: float | None = None

    @property
    def ratio(self) -> float:
        """Guest / native, computed from the figures or the percentage."""
        if self.native is not None and self.guest is not None:
            return self.guest / self.native
        percent = self.stated_percent or 0.0
        if self.direction is outcome.Direction.UP:
            return 1 - percent / 100
        return 1 + percent / 100

    @property
    def title(self) -> str:
        """The figure, with its scope."""
        return self.what + ''.join(
            f', {value} {name}' if value.isdigit() else ''
            for name, value in self.scope.items())

    @property
    def figures(self) -> tuple[str, str, str]:
        """Native, guest and their ratio, as text."""
        native = _number(self.native)
        if self.native_spread:
            native += f' +/- {self.native_spread:g}'
        guest = _number(self.guest)
        if self.each_guest is not None:
            guest += f' ({self.each_guest:g} +/- {self.each_spread:g} each)'
        relation = self.relation
        if relation and self.direction is outcome.Direction.UP:
            relation = _OPPOSITE.get(relation, relation)
        return native, guest, ' '.join(
            filter(None, (relation, f'{self.ratio:.4f}')))


@dataclasses.dataclass(frozen=True)
class Statement:
    """A number that a study states without the underlying figures.

    :ivar to: the upper end of a range, None for a single number
    :ivar place: the table, slide or section of the document
    :ivar link: what the link could transfer at most, in the same unit, without
        the bits of its encoding
    :ivar mix: the rows whose losses it is the mean of, each for an equal part
        of the cores, as far as the study says
    :ivar remark: what else a reader must know about the number
    """

    text: str
    value: float
    unit: str
    place: str
    to: float | None = None
    relation: Relation | None = None
    link: float | None = None
    mix: tuple[str, ...] = ()
    remark: str = ''

    @property
    def figure(self) -> str:
        """The number as text: ``about 1 to 2 %``."""
        value = _number(self.value)
        if self.to is not None:
            value += f' to {_number(self.to)}'
        text = ' '.join(filter(None, (self.relation, value, self.unit)))
        if self.link is not None:
            text += (f', {self.value / self.link:.0%} of the '
                     f'{_number(self.link)} {self.unit} of the link')
        return text.replace('%', ' %') if self.link is not None else text


@dataclasses.dataclass(frozen=True)
class Study:
    """One study.

    :ivar source: key of the document in the bibliography
    :ivar setup: hardware and software, one sentence each
    :ivar lessons: what an operator learns from the study
    """

    id: str
    title: str
    source: str
    setup: tuple[str, ...]
    cases: tuple[Case, ...]
    rows: tuple[PublishedComparison, ...]
    lessons: tuple[str, ...]
    statements: tuple[Statement, ...] = ()

    @property
    def document(self) -> bibliography.Publication:
        """The document that published the study."""
        return bibliography.get(self.source)

    def case(self, name: str) -> Case:
        """Return a case by its name.

        :raises InvalidInput: if the study has no such case
        """
        for case in self.cases:
            if case.id == name:
                return case
        names = [case.id for case in self.cases]
        raise exception.InvalidInput(
            self.id, f'has no case {name!r}; its cases are '
            f'{", ".join(names)}' + words.nearest(name, names))

    def find_mix_percent(self, statement: Statement) -> float | None:
        """Compute what a mix of guests of equal parts of the cores loses.

        :returns: None for a number of no mix, or if the study lacks a row
        """
        ratios = [row.ratio for row in self.rows if row.id in statement.mix]
        if not ratios or len(ratios) < len(statement.mix):
            return None
        return 100 * (1 - sum(ratios) / len(ratios))

    def limited_to(self, name: str) -> 'Study':
        """Return the study with only one case and its rows.

        :raises InvalidInput: if the study has no such case
        """
        case = self.case(name)
        rows = tuple(row for row in self.rows if row.case == case.id)
        return dataclasses.replace(self, cases=(case,), rows=rows)


def _number(value: float | None) -> str:
    return '-' if value is None else f'{value:.6g}'
