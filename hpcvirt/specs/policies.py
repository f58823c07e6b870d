# SPDX-License-Identifier: Apache-2.0

"""Read the CPU policies of a flavor from all keys that set them.

The rules are those of ``numa_get_constraints`` and the ``get_*_constraint``
functions in ``nova/virt/hardware.py``.

Lists and masks of vCPUs are those of the realtime and dedicated masks
(:func:`read_mask`).
"""

import dataclasses
import re
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.model import shape
from hpcvirt.specs import extra_spec_key
from hpcvirt.specs import vocabulary


def read_mask(text: str, vcpus: int, where: str) -> frozenset[int]:
    """Read a mask; a mask that starts with ``^`` excludes vCPUs.

    :param vcpus: the guest's number of vCPUs
    :param where: the key, for the error
    :raises InvalidInput: if it is not a mask, or names a vCPU that the guest
        does not have
    """
    if text.strip().startswith('^'):
        text = f'0-{vcpus - 1},{text}'
    cpus = read_list(text, where)
    if cpus and max(cpus) >= vcpus:
        raise exception.InvalidInput(
            where, f'names vCPU {max(cpus)} of a guest with {vcpus} vCPUs')
    return cpus


def read_list(text: str, where: str) -> frozenset[int]:
    """Read a list of vCPUs.

    As in Nova, empty terms are ignored, numbers are read_mask with int(), and
    excluded vCPUs need not exist.

    :raises InvalidInput: if it is not such a list
    """
    terms = [_plain(term.strip()) for term in text.split(',') if term.strip()]
    return cpuset.parse(','.join(terms), where)


def _plain(term: str) -> str:
    """Write the numbers of a term as digits."""
    caret = '^' if term.startswith('^') else ''
    return caret + '-'.join(_digits(number, bool(caret)) for number
                            in term.removeprefix('^').split('-', 1))


def _digits(text: str, is_excluded: bool) -> str:
    number = extra_spec_key.integer(text)
    if number is None:
        return text
    return str(min(number, cpuset.MAX_CPU) if is_excluded else number)


@dataclasses.dataclass(frozen=True, slots=True)
class Policies:
    """The CPU policies of a flavor.

    :ivar cpu: shared if the flavor sets none
    :ivar thread: None if the flavor sets none
    :ivar emulator: None if the flavor sets none
    :ivar dedicated: the vCPUs that are pinned to dedicated host CPUs
    """

    cpu: shape.CPUPolicy
    thread: shape.ThreadPolicy | None
    emulator: shape.EmulatorThreads | None
    dedicated: frozenset[int]


def read(vcpus: int, specs: Mapping[str, str]) -> Policies:
    """Read the policies.

    :raises InvalidInput: if Nova refuses a value or a combination
    """
    emulator_word = _choice(specs, vocabulary.EMULATOR_THREADS_POLICY)
    emulator = (shape.EmulatorThreads(emulator_word)
                if emulator_word else None)
    cpu = _cpu(vcpus, specs, emulator)
    thread = _thread(specs)
    realtime = _realtime_cpus(vcpus, specs, emulator)
    masked = _masked_cpus(vcpus, specs)

    if cpu is shape.CPUPolicy.SHARED:
        _refuse_on_shared(thread, emulator, realtime)
    if cpu is not shape.CPUPolicy.MIXED:
        if masked:
            raise exception.InvalidInput(
                vocabulary.CPU_DEDICATED_MASK.name,
                f'needs {vocabulary.CPU_POLICY.name}='
                f'{shape.CPUPolicy.MIXED}')
        dedicated = (frozenset(range(vcpus))
                     if cpu is shape.CPUPolicy.DEDICATED else frozenset())
        return Policies(cpu, thread, emulator, dedicated)
    if bool(realtime) == bool(masked):
        raise exception.InvalidInput(
            vocabulary.CPU_POLICY.name,
            f'{cpu} needs either {vocabulary.CPU_DEDICATED_MASK.name} or '
            f'{vocabulary.CPU_REALTIME_MASK.name}')
    return Policies(cpu, thread, emulator, masked or realtime)


def dedicated_range(policy: shape.CPUPolicy, cpus: int) -> range:
    """Return the numbers of dedicated CPUs that a policy allows."""
    if policy is shape.CPUPolicy.DEDICATED:
        return range(cpus, cpus + 1)
    return range(1, cpus) if policy is shape.CPUPolicy.MIXED else range(1)


def _cpu(vcpus: int, specs: Mapping[str, str],
         emulator: shape.EmulatorThreads | None) -> shape.CPUPolicy:
    word = _choice(specs, vocabulary.CPU_POLICY)
    shared, shared_name = _amount(specs, vocabulary.VCPU_RESOURCE)
    pcpus, pcpus_name = _amount(specs, vocabulary.PCPU_RESOURCE)
    if word and (shared or pcpus):
        raise exception.InvalidInput(
            vocabulary.CPU_POLICY.name,
            f'cannot be combined with {shared_name or pcpus_name}')
    if shared and pcpus:
        raise exception.InvalidInput(
            pcpus_name, f'cannot be combined with {shared_name}')
    if pcpus:
        isolated = emulator is shape.EmulatorThreads.ISOLATE
        needed = vcpus + (1 if isolated else 0)
        if pcpus != needed:
            raise exception.InvalidInput(
                pcpus_name, f'must be {needed} for {vcpus} vCPUs and the '
                f'emulator threads policy, not {pcpus}')
        return shape.CPUPolicy.DEDICATED
    return shape.CPUPolicy(word) if word else shape.CPUPolicy.SHARED


def _thread(specs: Mapping[str, str]) -> shape.ThreadPolicy | None:
    word = _choice(specs, vocabulary.CPU_THREAD_POLICY)
    trait, value = next(
        ((name, value) for name, value in specs.items()
         if vocabulary.SMT_TRAIT.match(name)), ('', ''))
    if word and value:
        raise exception.InvalidInput(
            vocabulary.CPU_THREAD_POLICY.name,
            f'cannot be combined with {trait}')
    if value == vocabulary.FORBIDDEN:
        return shape.ThreadPolicy.ISOLATE
    if value == vocabulary.REQUIRED:
        return shape.ThreadPolicy.REQUIRE
    return shape.ThreadPolicy(word) if word else None


def _masked_cpus(vcpus: int, specs: Mapping[str, str]) -> frozenset[int]:
    """Read the dedicated vCPUs of the mask; empty without a mask."""
    name = vocabulary.CPU_DEDICATED_MASK.name
    mask = specs.get(name)
    if not mask:
        return frozenset()
    cpus = read_mask(mask, vcpus, name)
    if not cpus or len(cpus) == vcpus:
        raise exception.InvalidInput(
            name, f'{mask!r} leaves no dedicated or no shared vCPU')
    return cpus


def _realtime_cpus(vcpus: int, specs: Mapping[str, str],
                   emulator: shape.EmulatorThreads | None) -> frozenset[int]:
    """Read the real-time vCPUs; empty if the guest is not real-time."""
    if not extra_spec_key.truth(specs.get(vocabulary.CPU_REALTIME.name, '')):
        return frozenset()
    name = vocabulary.CPU_REALTIME_MASK.name
    mask = specs.get(name)
    if not mask:
        cpus = frozenset(range(vcpus))
    else:
        cpus = read_mask(mask, vcpus, name)
    if not cpus:
        raise exception.InvalidInput(name, f'{mask!r} leaves no vCPU')
    if len(cpus) == vcpus and emulator is None:
        raise exception.InvalidInput(
            name, 'must exclude a vCPU from real-time, unless '
            f'{vocabulary.EMULATOR_THREADS_POLICY.name} is set')
    return cpus


def _refuse_on_shared(thread: shape.ThreadPolicy | None,
                      emulator: shape.EmulatorThreads | None,
                      realtime: frozenset[int]) -> None:
    for row, is_set in (
            (vocabulary.CPU_THREAD_POLICY, thread is not None),
            (vocabulary.EMULATOR_THREADS_POLICY,
             emulator is shape.EmulatorThreads.ISOLATE),
            (vocabulary.CPU_REALTIME, realtime)):
        if is_set:
            raise exception.InvalidInput(
                row.name, 'needs dedicated CPUs '
                f'({vocabulary.CPU_POLICY.name})')


def _choice(specs: Mapping[str, str], row: extra_spec_key.ExtraSpecKey) -> str:
    """Return the value of a key; empty if the key is absent or empty."""
    value = specs.get(row.name, '')
    if value:
        row.check(value)
    return value


def _amount(specs: Mapping[str, str],
            names: re.Pattern[str]) -> tuple[int, str]:
    """Sum the resource requests with matching names, and return one name.

    As in Nova, amounts that are not integers are ignored; Nova refuses them
    later, when it queries Placement.
    """
    total, found = 0, ''
    for name, value in specs.items():
        if names.match(name):
            try:
                total += int(value)
            except ValueError:
                continue
            found = name
    return total, found
