# SPDX-License-Identifier: Apache-2.0

"""The table of all extra specs that hpcvirt reads, writes or accepts.

The parser, the generator, lint, the validators for Nova's API and the
documentation are derived from this table; no other module contains the name of
an extra spec. The extra specs in the namespace ``hw`` are those that Nova 34
reads. Their types are those of ``nova/api/validation/extra_specs``, as far as
Nova has a validator for them.

A key has a name, perhaps with places for numbers or names, and the type of its
values (:class:`ExtraSpecKey`).
"""

import dataclasses
import enum
import functools
import re
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.model import shape

#: The words that Nova (oslo.utils) accepts as booleans, in any case.
TRUE_WORDS = frozenset({'1', 't', 'true', 'on', 'y', 'yes'})
FALSE_WORDS = frozenset({'0', 'f', 'false', 'off', 'n', 'no'})


class ValueType(enum.StrEnum):
    """The type of a value. The Compute API transfers every value as text."""

    INTEGER = 'integer'
    BOOLEAN = 'boolean'
    CHOICE = 'choice'
    TEXT = 'text'


@dataclasses.dataclass(frozen=True)
class ExtraSpecKey:
    """A row of the vocabulary.

    :ivar name: the key, with placeholders such as ``{num}``
    :ivar kind: the type of the value
    :ivar help: one sentence for an operator
    :ivar choices: the values of a CHOICE
    :ivar pattern: the regular expression that a TEXT value matches as a whole
    :ivar minimum: the smallest INTEGER; None without a limit
    :ivar maximum: the largest INTEGER; None without a limit
    :ivar parts: the regular expression of each placeholder in the name
    """

    name: str
    kind: ValueType
    help: str
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    parts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The part of the name before the colon, without placeholders."""
        return self.name.partition(':')[0].partition('{')[0]

    @functools.cached_property
    def name_pattern(self) -> re.Pattern[str]:
        text = re.escape(self.name)
        for part, pattern in self.parts.items():
            text = text.replace(re.escape(f'{{{part}}}'), f'(?:{pattern})')
        return re.compile(text)

    @property
    def values(self) -> str:
        """A description of the values, for messages and documentation."""
        if self.kind is ValueType.CHOICE:
            return ', '.join(self.choices)
        if self.kind is ValueType.BOOLEAN:
            return 'true, false'
        if self.kind is ValueType.INTEGER:
            low = '' if self.minimum is None else f' from {self.minimum}'
            high = '' if self.maximum is None else f' to {self.maximum}'
            return f'integer{low}{high}'
        return 'text' if self.pattern is None else self.pattern

    def matches(self, name: str) -> bool:
        return self.name_pattern.fullmatch(name) is not None

    def at(self, **parts: object) -> str:
        """Fill in the placeholders: ``NUMA_CPUS.at(num=1)``."""
        return self.name.format(**parts)

    def check(self, value: str, name: str | None = None) -> None:
        """Check the type of a value.

        :param value: the text in the flavor
        :param name: the concrete name, if the name has placeholders
        :raises InvalidInput: naming the key and its values
        """
        if not self.accepts(value):
            raise exception.InvalidInput(
                name or self.name,
                f'{value[:64]!r} is not one of its values ({self.values})')

    def accepts(self, value: str) -> bool:
        """Whether a value is of the type."""
        if self.kind is ValueType.CHOICE:
            return value in self.choices
        if self.kind is ValueType.BOOLEAN:
            return truth(value) is not None
        if self.kind is ValueType.TEXT:
            return self.pattern is None or bool(
                re.fullmatch(self.pattern, value))
        number = integer(value)
        if number is None:
            return False
        return ((self.minimum is None or number >= self.minimum)
                and (self.maximum is None or number <= self.maximum))


def integer(value: str) -> int | None:
    """Read an integer with int(), as Nova does; None if it is not one.

    ``+2``, ``1_000``, surrounding blanks and digits of any script are valid.
    """
    try:
        return int(value)
    except ValueError:
        return None


def truth(value: str) -> bool | None:
    """Read a boolean as Nova does; None if it is not one."""
    word = value.strip().lower()
    if word in TRUE_WORDS:
        return True
    return False if word in FALSE_WORDS else None


_CPU_LIST = r'\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*'
_NUM = {'num': r'\d+'}
_GROUP = {'group': r'[a-zA-Z0-9_-]{0,64}'}


def _choice(name: str, choices: tuple[str, ...],
            help_line: str) -> ExtraSpecKey:
    return ExtraSpecKey(name, ValueType.CHOICE, help_line,
                            choices=choices)


def _flag(name: str, help_line: str) -> ExtraSpecKey:
    return ExtraSpecKey(name, ValueType.BOOLEAN, help_line)


def _count(name: str, help_line: str, minimum: int = 1,
           maximum: int | None = None) -> ExtraSpecKey:
    return ExtraSpecKey(name, ValueType.INTEGER, help_line,
                            minimum=minimum,
                            maximum=maximum)


def _text(name: str, pattern: str | None, help_line: str) -> ExtraSpecKey:
    return ExtraSpecKey(name, ValueType.TEXT, help_line,
                            pattern=pattern)


# CPUs

CPU_POLICY = _choice(
    'hw:cpu_policy', tuple(shape.CPUPolicy),
    'Whether vCPUs are pinned to dedicated host CPUs (dedicated), float over '
    'the shared host CPUs (shared), or some are pinned and some float '
    '(mixed).')
CPU_THREAD_POLICY = _choice(
    'hw:cpu_thread_policy', tuple(shape.ThreadPolicy),
    'Whether dedicated vCPUs get SMT siblings if the host has them (prefer), '
    'get only siblings (require), or get only hosts without SMT (isolate).')
CPU_DEDICATED_MASK = _text(
    'hw:cpu_dedicated_mask', _CPU_LIST,
    'The vCPUs that are dedicated with the policy mixed; a mask that starts '
    'with ^ names the shared vCPUs.')
EMULATOR_THREADS_POLICY = _choice(
    'hw:emulator_threads_policy', tuple(shape.EmulatorThreads),
    'Where the emulator threads run: on one additional dedicated CPU of the '
    'host cell of guest cell 0 (isolate) or on the shared host CPUs '
    '(share).')
CPU_REALTIME = _flag(
    'hw:cpu_realtime', 'Whether vCPUs run with real-time priority.')
CPU_REALTIME_MASK = _text(
    'hw:cpu_realtime_mask', _CPU_LIST,
    'The vCPUs that are real-time; with the policy mixed these are the '
    'dedicated vCPUs.')

# NUMA cells and memory

NUMA_NODES = _count(
    'hw:numa_nodes', 'The number of guest NUMA cells, each of which is placed '
    'on a different host cell.')
NUMA_CPUS = ExtraSpecKey(
    'hw:numa_cpus.{num}', ValueType.TEXT,
    'The vCPUs of guest cell {num}; needed only if the cells are unequal.',
    pattern=_CPU_LIST, parts=_NUM)
NUMA_MEM = ExtraSpecKey(
    'hw:numa_mem.{num}', ValueType.INTEGER,
    'The memory of guest cell {num} in MiB; needed only if the cells are '
    'unequal.',
    minimum=1, parts=_NUM)
MEM_PAGE_SIZE = _text(
    'hw:mem_page_size',
    r'(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)',
    "The size of the pages of the guest's memory, in KiB or with a unit "
    '(2048, 2MB, 1GB), or a class of sizes (small, large, any).')
LOCKED_MEMORY = _flag(
    'hw:locked_memory', "Whether the guest's memory is locked in the host's "
    'RAM; requires hw:mem_page_size.')
PMEM = _text(
    'hw:pmem', r'([a-zA-Z0-9_]+(,)?)+',
    'The labels of virtual persistent memory devices, which give the guest '
    'a NUMA topology.')

# Devices

PCI_NUMA_AFFINITY_POLICY = _choice(
    'hw:pci_numa_affinity_policy', tuple(shape.PCIAffinity),
    "The host cells that the guest's PCI devices may belong to, relative to "
    'the cells of its CPUs.')
PCI_ALIAS = _text(
    'pci_passthrough:alias', r'[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*',
    'The PCI devices of the guest: alias:count, separated by commas.')

# The CPU topology that the guest sees

CPU_SOCKETS = _count('hw:cpu_sockets', 'Sockets that the guest sees.')
CPU_CORES = _count('hw:cpu_cores', 'Cores per socket that the guest sees.')
CPU_THREADS = _count('hw:cpu_threads', 'Threads per core that the guest '
                     'sees.')
CPU_MAX_SOCKETS = _count(
    'hw:cpu_max_sockets', 'The most sockets that an image may ask for.')
CPU_MAX_CORES = _count(
    'hw:cpu_max_cores', 'The most cores per socket that an image may ask '
    'for.')
CPU_MAX_THREADS = _count(
    'hw:cpu_max_threads', 'The most threads per core that an image may ask '
    'for.')

# Resources and traits, for Placement

RESOURCES = ExtraSpecKey(
    'resources{group}:{resource}', ValueType.INTEGER,
    'The amount of a resource class; PCPU and VCPU also set the CPU policy.',
    parts={**_GROUP, 'resource': '[A-Z0-9_]+'})
REQUIRED, FORBIDDEN = 'required', 'forbidden'
TRAIT = ExtraSpecKey(
    'trait{group}:{trait}', ValueType.CHOICE,
    'A trait that the host must have or must not have.',
    choices=(REQUIRED, FORBIDDEN),
    parts={**_GROUP, 'trait': '[A-Z0-9_]+'})

GROUP_POLICY = _choice(
    'group_policy', ('none', 'isolate'), 'Whether numbered groups of '
    'resources may share a provider; nova-scheduler warns if a flavor with '
    'several devices does not say so.')

#: The requests by which Nova sets CPU policies, see
#: ``_get_vcpu_pcpu_resources`` and ``_get_hyperthreading_trait`` in
#: ``nova/virt/hardware.py``. As in Nova, they match the beginning of a name.
VCPU_RESOURCE = re.compile(r'resources([1-9][0-9]*)?:VCPU')
VGPU_RESOURCE = re.compile(r'resources[a-zA-Z0-9_-]{0,64}:VGPU')
PCPU_RESOURCE = re.compile(r'resources([1-9][0-9]*)?:PCPU')
SMT_TRAIT = re.compile(r'trait([1-9][0-9]*)?:HW_CPU_HYPERTHREADING')

# The namespace of hpcvirt

NUMA_SCOPE = _choice(
    'hpcvirt:numa_scope', tuple(shape.NUMAScope),
    'Whether the host cells of the guest may belong to any sockets of the '
    'host (host, the default) or must belong to one socket (socket).')
EXCLUSIVE_CELLS = _flag(
    'hpcvirt:exclusive_cells', 'Whether the guest starts only on host cells '
    'on which no other guest with a NUMA topology has CPUs or memory; the '
    'default is false.')
DEVICE_SET = _text(
    'hpcvirt:device_set', shape.DEVICE_SET_KIND,
    "The kind of the set that the guest's PCI devices belong to, as named by "
    'hpcvirt_device_sets in [pci]device_spec: the guest gets the devices of '
    'one such set.')
GENERATED_BY = _text(
    'hpcvirt:generated_by', r'hpcvirt-\d+(\+[0-9a-f]{8,64})?',
    'Marks a flavor that hpcvirt created and may change: the version of the '
    'naming scheme, and optionally a digest of the content.')

#: The value of GENERATED_BY that this release writes, without the digest.
GENERATED_MARK = 'hpcvirt-1'

# Extra specs of Nova that hpcvirt ignores

MAXPHYSADDR_MODE = _choice(
    'hw:maxphysaddr_mode', ('passthrough', 'emulate'),
    "Whether the guest has the host's width of physical addresses "
    '(passthrough), or that of hw:maxphysaddr_bits (emulate).')
MAXPHYSADDR_BITS = _count(
    'hw:maxphysaddr_bits', 'The width of physical addresses in bits that the '
    'guest has at most and its host at least.', minimum=32, maximum=52)

_ENCRYPTION_MODELS = ('amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx')
_OTHERS = (
    _flag('hw:boot_menu', 'Whether the guest shows a boot menu.'),
    _flag('hw:ephemeral_encryption', 'Whether local disks are encrypted.'),
    _choice('hw:ephemeral_encryption_format', ('luks', 'luksv2', 'plain'),
            'How local disks are encrypted.'),
    _flag('hw:hide_hypervisor_id', 'Whether the guest cannot detect the '
          'hypervisor.'),
    _flag('hw:mem_encryption', 'Whether memory is encrypted.'),
    _choice('hw:mem_encryption_model', _ENCRYPTION_MODELS, 'How memory is '
            'encrypted.'),
    MAXPHYSADDR_MODE, MAXPHYSADDR_BITS,
    _flag('hw:pci_numa_topology', 'Whether the guest sees the cells of its '
          'PCI devices; Nova needs patch 0009 of contrib/nova.'),
    _flag('hw:pmu', 'Whether the guest has performance counters.'),
    _count('hw:redirected_usb_ports', 'USB ports redirected to the console.',
           minimum=0, maximum=15),
    _count('hw:serial_port_count', 'Serial ports.', minimum=0),
    _text('hw:sound_model', None, 'The sound device.'),
    _choice('hw:tpm_model', ('tpm-tis', 'tpm-crb'), 'The TPM device.'),
    _choice('hw:tpm_secret_security', ('user', 'host', 'deployment'),
            "Who can read the TPM's secret."),
    _choice('hw:tpm_version', ('1.2', '2.0'), 'The TPM version.'),
    _text('hw:usb_model', None, 'The USB controller.'),
    _flag('hw:vif_multiqueue_enabled', 'Whether network devices have one '
          'queue for each vCPU.'),
    _choice('hw:viommu_model', ('intel', 'smmuv3', 'virtio', 'auto'),
            'The virtual IOMMU.'),
    _flag('hw:virtio_packed_ring', 'Whether virtio may use packed rings.'),
    _choice('hw:watchdog_action',
            ('none', 'pause', 'poweroff', 'reset', 'disabled'),
            'What the watchdog does.'),
)

#: The extra specs that hpcvirt interprets, in the order of the documentation.
INTERPRETED = (
    CPU_POLICY, CPU_THREAD_POLICY, CPU_DEDICATED_MASK,
    EMULATOR_THREADS_POLICY, CPU_REALTIME, CPU_REALTIME_MASK,
    NUMA_NODES, NUMA_CPUS, NUMA_MEM, MEM_PAGE_SIZE, LOCKED_MEMORY, PMEM,
    PCI_NUMA_AFFINITY_POLICY, PCI_ALIAS,
    CPU_SOCKETS, CPU_CORES, CPU_THREADS,
    CPU_MAX_SOCKETS, CPU_MAX_CORES, CPU_MAX_THREADS,
    RESOURCES, TRAIT, GROUP_POLICY,
    NUMA_SCOPE, EXCLUSIVE_CELLS, DEVICE_SET, GENERATED_BY,
)
KEYS = INTERPRETED + _OTHERS

#: The extra specs that Nova reads, but for which its API has no validator:
#: from microversion 2.86 on, the API takes them for spelling mistakes.
UNVALIDATED = (MAXPHYSADDR_MODE, MAXPHYSADDR_BITS)

#: The namespace whose validators hpcvirt registers with Nova's API.
OWN_NAMESPACE = 'hpcvirt'
OWN = tuple(row for row in KEYS if row.namespace == OWN_NAMESPACE)

#: Namespaces in which a key that is not in the table is an error. Others
#: (aggregate properties, quota, accelerators) may contain any key.
CLOSED_NAMESPACES = frozenset({OWN_NAMESPACE, 'hw', 'pci_passthrough'})


@functools.cache
def _by_name() -> dict[str, ExtraSpecKey]:
    return {row.name: row for row in KEYS if not row.parts}


def find(name: str) -> ExtraSpecKey | None:
    """Return the row of a concrete name, such as ``hw:numa_mem.0``."""
    fixed = _by_name().get(name)
    if fixed is not None:
        return fixed
    return next((row for row in KEYS if row.parts and row.matches(name)),
                None)


def is_unknown(name: str) -> bool:
    """Whether a key of a closed namespace is missing from the table."""
    namespace = name.partition(':')[0]
    return namespace in CLOSED_NAMESPACES and find(name) is None


def is_unvalidated(name: str) -> bool:
    """Whether Nova reads a key, but its API has no validator for it."""
    return any(row.name == name for row in UNVALIDATED)


def nearest(name: str) -> str:
    """Write `` (did you mean hw:cpu_policy?)`` for an unknown key.

    Namespaces are left out of the comparison: all keys of one begin alike,
    and a key may have that of another.
    """
    word = name.partition(':')[2]
    number = re.search('[0-9]{1,4}$', word)
    known = {}
    for row in KEYS:
        if row.namespace not in CLOSED_NAMESPACES:
            continue
        full = row.at(num=number[0] if number else 0)
        known[full.partition(':')[2]] = full
    found = words.find_nearest(word, known)
    return '' if found is None else f' (did you mean {known[found]}?)'
