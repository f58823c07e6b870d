# SPDX-License-Identifier: Apache-2.0

"""Choose the sockets, cores and threads that a guest sees.

The choice is that of Nova's ``get_best_cpu_topology``
(``nova/virt/hardware.py``) without image properties.
"""

from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import key
from hpcvirt.specs import vocabulary

#: Nova's limit if the flavor sets none.
_NO_LIMIT = 65536

_WANTED = (vocabulary.CPU_SOCKETS, vocabulary.CPU_CORES,
           vocabulary.CPU_THREADS)
_LIMITS = (vocabulary.CPU_MAX_SOCKETS, vocabulary.CPU_MAX_CORES,
           vocabulary.CPU_MAX_THREADS)


def read(vcpus: int,
         specs: Mapping[str, str]) -> shape.GuestTopology | None:
    """Return the CPU topology that the guest will see.

    :returns: None if the flavor does not set any; Nova then gives each vCPU
        its own socket
    :raises InvalidInput: if a value is not an integer, or if the limits do
        not allow any arrangement of the vCPUs
    """
    if not any(row.name in specs for row in _WANTED + _LIMITS):
        return None
    limits = [_integer(specs, row) or _NO_LIMIT for row in _LIMITS]
    wanted = [_integer(specs, row) for row in _WANTED]
    if any(want > limit for want, limit in zip(wanted, limits, strict=True)):
        wanted = [0, 0, 0]
    best = max(
        _arrangements(vcpus, limits), default=None,
        key=lambda parts: (
            sum(part == want for part, want
                in zip(parts, wanted, strict=True)),
            parts[0] * parts[1], parts[0], parts[2]))
    if best is None:
        at_fault = next(row.name for row in _LIMITS if row.name in specs)
        raise exception.InvalidInput(
            at_fault, f'{vcpus} vCPUs cannot be arranged within the limits '
            'on sockets, cores and threads')
    return shape.GuestTopology(*best)


def write(topology: shape.GuestTopology, vcpus: int) -> dict[str, str]:
    """Write a topology.

    :raises InvalidInput: if it does not have exactly the guest's vCPUs
    """
    parts = (topology.sockets, topology.cores, topology.threads)
    if min(parts) < 1 or parts[0] * parts[1] * parts[2] != vcpus:
        raise exception.InvalidInput(
            'shape', f'{parts[0]} x {parts[1]} x {parts[2]} sockets, cores '
            f'and threads are not {vcpus} vCPUs')
    return {row.name: str(part)
            for row, part in zip(_WANTED, parts, strict=True)}


def _arrangements(vcpus: int,
                  limits: list[int]) -> Iterator[tuple[int, int, int]]:
    for sockets in _divisors(vcpus, limits[0]):
        for cores in _divisors(vcpus // sockets, limits[1]):
            threads = vcpus // (sockets * cores)
            if threads <= limits[2]:
                yield sockets, cores, threads


def _divisors(number: int, limit: int) -> list[int]:
    return [part for part in range(1, min(number, limit) + 1)
            if number % part == 0]


def _integer(specs: Mapping[str, str], row: key.ExtraSpecKey) -> int:
    text = specs.get(row.name, '0')
    try:
        return int(text)
    except ValueError:
        raise exception.InvalidInput(
            row.name, f'{text[:64]!r} is not one of its values '
            f'({row.values})') from None
