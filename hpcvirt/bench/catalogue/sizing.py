# SPDX-License-Identifier: Apache-2.0

"""Compute the size of a benchmark from the memory and CPUs of the guest.

Both sides use the size that is computed for the guest: a native run of
another size would be another benchmark.
"""

import dataclasses
import enum
import math

from hpcvirt import exception

#: Bytes of a double precision number.
DOUBLE = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """The resources of all guests of one run together.

    :ivar cpus: CPUs that the benchmark may use
    :ivar memory_mib: memory of the guests
    :ivar cells: NUMA cells of the guests
    :ivar llc_kib: last-level cache behind these CPUs, None if unknown
    :ivar gpus: GPUs with a driver, None if unknown
    :ivar nodes: number of machines that one run spans
    """

    cpus: int
    memory_mib: int
    cells: int = 1
    llc_kib: int | None = None
    gpus: int | None = None
    nodes: int = 1


class ProcessCount(enum.StrEnum):
    """How many ranks or threads a variant uses."""

    ONE = 'one'
    TWO = 'two'
    PER_CPU = 'per-cpu'
    PER_CELL = 'per-cell'
    PER_GPU = 'per-gpu'
    REST = 'rest'
    POWER_OF_TWO = 'power-of-two'
    SQUARE = 'square'


class SizeRule(enum.StrEnum):
    """How a size is calculated."""

    FIXED = 'fixed'
    HPL_ORDER = 'hpl-order'
    GRID_ROWS = 'grid-rows'
    GRID_COLUMNS = 'grid-columns'
    STREAM_ELEMENTS = 'stream-elements'
    LARGEST = 'largest'


@dataclasses.dataclass(frozen=True, slots=True)
class ProblemSize:
    """One of several problem sizes, smallest first.

    :ivar memory_mib: the memory that it needs, approximately
    """

    value: str
    memory_mib: int


@dataclasses.dataclass(frozen=True, slots=True)
class SizeParameter:
    """One parameter of a benchmark's size.

    :ivar rule: how it is calculated
    :ivar help: one sentence for an operator
    :ivar value: the value of FIXED
    :ivar memory_fraction: fraction of the guests' memory that may be used
    :ivar multiple_of: round HPL_ORDER down to a multiple of this
    :ivar llc_multiple: each array of STREAM is at least this many times as
        large as the last-level cache
    :ivar choices: the sizes of which LARGEST takes the largest that fits
    """

    rule: SizeRule
    help: str
    value: str = ''
    memory_fraction: float = 0.5
    multiple_of: int = 1
    llc_multiple: int = 4
    choices: tuple[ProblemSize, ...] = ()


def count(rule: ProcessCount, machine: Machine, ranks: int = 1) -> int:
    """Calculate the number of ranks or threads.

    :param ranks: number of ranks, which REST divides the CPUs by
    """
    cpus = max(1, machine.cpus)
    return {
        ProcessCount.ONE: 1, ProcessCount.TWO: 2, ProcessCount.PER_CPU: cpus,
        ProcessCount.PER_CELL: max(1, machine.cells),
        ProcessCount.PER_GPU: 1 if machine.gpus is None else machine.gpus,
        ProcessCount.REST: max(1, cpus // ranks),
        ProcessCount.POWER_OF_TWO: 1 << (cpus.bit_length() - 1),
        ProcessCount.SQUARE: math.isqrt(cpus) ** 2}[rule]


def weight(rule: ProcessCount, machine: Machine) -> int:
    """Return in which proportion a machine gets ranks of a spanning run."""
    if rule is ProcessCount.PER_GPU:
        return machine.gpus or 1
    return machine.cpus


def size(rule: SizeParameter, machine: Machine, ranks: int, where: str) -> str:
    """Calculate the value of a size parameter.

    :param where: the subject of the error
    :raises InvalidInput: if the machine is too small for the benchmark
    """
    usable_bytes = machine.memory_mib * 2 ** 20 * rule.memory_fraction
    if rule.rule is SizeRule.FIXED:
        return rule.value
    if rule.rule is SizeRule.GRID_ROWS:
        return str(grid(ranks)[0])
    if rule.rule is SizeRule.GRID_COLUMNS:
        return str(grid(ranks)[1])
    if rule.rule is SizeRule.HPL_ORDER:
        order = math.isqrt(int(usable_bytes / DOUBLE))
        return str(_positive(order // rule.multiple_of * rule.multiple_of,
                             machine, where))
    if rule.rule is SizeRule.STREAM_ELEMENTS:
        return str(_stream(rule, usable_bytes, machine, where))
    fitting = [choice.value for choice in rule.choices
               if choice.memory_mib * 2 ** 20 <= usable_bytes]
    _positive(len(fitting), machine, where)
    return fitting[-1]


def grid(ranks: int) -> tuple[int, int]:
    """Return the squarest process grid (P, Q), P x Q = ranks and P <= Q."""
    rows = next(rows for rows in range(math.isqrt(ranks), 0, -1)
                if ranks % rows == 0)
    return rows, ranks // rows


def _stream(rule: SizeParameter, usable_bytes: float, machine: Machine,
            where: str) -> int:
    # Three arrays share the usable memory.
    elements = int(usable_bytes / 3 / DOUBLE)
    cache_bytes = (machine.llc_kib or 0) * 1024
    if elements * DOUBLE < rule.llc_multiple * cache_bytes:
        raise exception.InvalidInput(
            where, f'{machine.memory_mib} MiB of memory are not enough for '
            f'arrays of {rule.llc_multiple} times a cache of '
            f'{machine.llc_kib} KiB')
    return _positive(elements, machine, where)


def _positive(number: int, machine: Machine, where: str) -> int:
    if number < 1:
        raise exception.InvalidInput(
            where, f'{machine.memory_mib} MiB of memory are not enough')
    return number
