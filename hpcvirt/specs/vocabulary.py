# SPDX-License-Identifier: Apache-2.0

"""The table of all extra specs that hpcvirt reads, writes or accepts.

The parser, the generator, lint, the validators for Nova's API and the
documentation are derived from this table. Its rows that nova-scheduler needs
are in :mod:`hpcvirt.specs.scheduler_keys`; no other module contains the name
of an extra spec. The extra specs in the namespace ``hw`` are those that Nova
34 reads. Their types are those of ``nova/api/validation/extra_specs``, as far
as Nova has a validator for them.
"""

import functools
import re

from hpcvirt import words
from hpcvirt.model import shape
from hpcvirt.specs import extra_spec_key as keys
from hpcvirt.specs import scheduler_keys

_CPU_LIST = r'\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*'
_NUM = {'num': r'\d+'}
_GROUP = {'group': r'[a-zA-Z0-9_-]{0,64}'}

# CPUs

CPU_POLICY = keys.choice(
    'hw:cpu_policy', tuple(shape.CPUPolicy),
    'Whether vCPUs are pinned to dedicated host CPUs (dedicated), float over '
    'the shared host CPUs (shared), or some are pinned and some float '
    '(mixed).')
CPU_THREAD_POLICY = keys.choice(
    'hw:cpu_thread_policy', tuple(shape.ThreadPolicy),
    'Whether dedicated vCPUs get SMT siblings if the host has them (prefer), '
    'get only siblings (require), or get only hosts without SMT (isolate).')
CPU_DEDICATED_MASK = keys.text(
    'hw:cpu_dedicated_mask', _CPU_LIST,
    'The vCPUs that are dedicated with the policy mixed; a mask that starts '
    'with ^ names the shared vCPUs.')
EMULATOR_THREADS_POLICY = keys.choice(
    'hw:emulator_threads_policy', tuple(shape.EmulatorThreads),
    'Where the emulator threads run: on one additional dedicated CPU of the '
    'host cell of guest cell 0 (isolate) or on the shared host CPUs '
    '(share).')
CPU_REALTIME = keys.flag(
    'hw:cpu_realtime', 'Whether vCPUs run with real-time priority.')
CPU_REALTIME_MASK = keys.text(
    'hw:cpu_realtime_mask', _CPU_LIST,
    'The vCPUs that are real-time; with the policy mixed these are the '
    'dedicated vCPUs.')

# NUMA cells and memory

NUMA_NODES = keys.count(
    'hw:numa_nodes', 'The number of guest NUMA cells, each of which is placed '
    'on a different host cell.')
NUMA_CPUS = keys.ExtraSpecKey(
    'hw:numa_cpus.{num}', keys.ValueType.TEXT,
    'The vCPUs of guest cell {num}; needed only if the cells are unequal.',
    pattern=_CPU_LIST, parts=_NUM)
NUMA_MEM = keys.ExtraSpecKey(
    'hw:numa_mem.{num}', keys.ValueType.INTEGER,
    'The memory of guest cell {num} in MiB; needed only if the cells are '
    'unequal.',
    minimum=1, parts=_NUM)
LOCKED_MEMORY = keys.flag(
    'hw:locked_memory', "Whether the guest's memory is locked in the host's "
    'RAM; requires hw:mem_page_size.')
PMEM = keys.text(
    'hw:pmem', r'([a-zA-Z0-9_]+(,)?)+',
    'The labels of virtual persistent memory devices, which give the guest '
    'a NUMA topology.')

# Devices

PCI_NUMA_AFFINITY_POLICY = keys.choice(
    'hw:pci_numa_affinity_policy', tuple(shape.PCIAffinity),
    "The host cells that the guest's PCI devices may belong to, relative to "
    'the cells of its CPUs.')
PCI_ALIAS = keys.text(
    'pci_passthrough:alias', r'[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*',
    'The PCI devices of the guest: alias:count, separated by commas.')

# The CPU topology that the guest sees

CPU_SOCKETS = keys.count('hw:cpu_sockets', 'Sockets that the guest sees.')
CPU_CORES = keys.count('hw:cpu_cores', 'Cores per socket that the guest sees.')
CPU_THREADS = keys.count('hw:cpu_threads', 'Threads per core that the guest '
                         'sees.')
CPU_MAX_SOCKETS = keys.count(
    'hw:cpu_max_sockets', 'The most sockets that an image may ask for.')
CPU_MAX_CORES = keys.count(
    'hw:cpu_max_cores', 'The most cores per socket that an image may ask '
    'for.')
CPU_MAX_THREADS = keys.count(
    'hw:cpu_max_threads', 'The most threads per core that an image may ask '
    'for.')

# Resources and traits, for Placement

RESOURCES = keys.ExtraSpecKey(
    'resources{group}:{resource}', keys.ValueType.INTEGER,
    'The amount of a resource class; PCPU and VCPU also set the CPU policy.',
    parts={**_GROUP, 'resource': '[A-Z0-9_]+'})
REQUIRED, FORBIDDEN = 'required', 'forbidden'
TRAIT = keys.ExtraSpecKey(
    'trait{group}:{trait}', keys.ValueType.CHOICE,
    'A trait that the host must have or must not have.',
    choices=(REQUIRED, FORBIDDEN),
    parts={**_GROUP, 'trait': '[A-Z0-9_]+'})

GROUP_POLICY = keys.choice(
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

GENERATED_BY = keys.text(
    'hpcvirt:generated_by', r'hpcvirt-\d+(\+[0-9a-f]{8,64})?',
    'Marks a flavor that hpcvirt created and may change: the version of the '
    'naming scheme, and optionally a digest of the content.')

#: The value of GENERATED_BY that this release writes, without the digest.
GENERATED_MARK = 'hpcvirt-1'

# Extra specs of Nova that hpcvirt ignores

MAXPHYSADDR_MODE = keys.choice(
    'hw:maxphysaddr_mode', ('passthrough', 'emulate'),
    "Whether the guest has the host's width of physical addresses "
    '(passthrough), or that of hw:maxphysaddr_bits (emulate).')
MAXPHYSADDR_BITS = keys.count(
    'hw:maxphysaddr_bits', 'The width of physical addresses in bits that the '
    'guest has at most and its host at least.', minimum=32, maximum=52)

_ENCRYPTION_MODELS = ('amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx')
_OTHERS = (
    keys.flag('hw:boot_menu', 'Whether the guest shows a boot menu.'),
    keys.flag('hw:ephemeral_encryption', 'Whether local disks are encrypted.'),
    keys.choice('hw:ephemeral_encryption_format', ('luks', 'luksv2', 'plain'),
                'How local disks are encrypted.'),
    keys.flag('hw:hide_hypervisor_id', 'Whether the guest cannot detect the '
              'hypervisor.'),
    keys.flag('hw:mem_encryption', 'Whether memory is encrypted.'),
    keys.choice('hw:mem_encryption_model', _ENCRYPTION_MODELS, 'How memory is '
                'encrypted.'),
    MAXPHYSADDR_MODE, MAXPHYSADDR_BITS,
    keys.flag('hw:pci_numa_topology', 'Whether the guest sees the cells of '
              'its PCI devices; Nova needs patch 0009 of contrib/nova.'),
    keys.flag('hw:pmu', 'Whether the guest has performance counters.'),
    keys.count('hw:redirected_usb_ports',
               'USB ports redirected to the console.', minimum=0, maximum=15),
    keys.count('hw:serial_port_count', 'Serial ports.', minimum=0),
    keys.text('hw:sound_model', None, 'The sound device.'),
    keys.choice('hw:tpm_model', ('tpm-tis', 'tpm-crb'), 'The TPM device.'),
    keys.choice('hw:tpm_secret_security', ('user', 'host', 'deployment'),
                "Who can read the TPM's secret."),
    keys.choice('hw:tpm_version', ('1.2', '2.0'), 'The TPM version.'),
    keys.text('hw:usb_model', None, 'The USB controller.'),
    keys.flag('hw:vif_multiqueue_enabled', 'Whether network devices have one '
              'queue for each vCPU.'),
    keys.choice('hw:viommu_model', ('intel', 'smmuv3', 'virtio', 'auto'),
                'The virtual IOMMU.'),
    keys.flag('hw:virtio_packed_ring', 'Whether virtio may use packed rings.'),
    keys.choice('hw:watchdog_action',
                ('none', 'pause', 'poweroff', 'reset', 'disabled'),
                'What the watchdog does.'),
)

#: The extra specs that hpcvirt interprets, in the order of the documentation.
INTERPRETED = (
    CPU_POLICY, CPU_THREAD_POLICY, CPU_DEDICATED_MASK,
    EMULATOR_THREADS_POLICY, CPU_REALTIME, CPU_REALTIME_MASK,
    NUMA_NODES, NUMA_CPUS, NUMA_MEM, scheduler_keys.MEM_PAGE_SIZE,
    LOCKED_MEMORY, PMEM,
    PCI_NUMA_AFFINITY_POLICY, PCI_ALIAS,
    CPU_SOCKETS, CPU_CORES, CPU_THREADS,
    CPU_MAX_SOCKETS, CPU_MAX_CORES, CPU_MAX_THREADS,
    RESOURCES, TRAIT, GROUP_POLICY,
    scheduler_keys.NUMA_SCOPE, scheduler_keys.EXCLUSIVE_CELLS,
    scheduler_keys.DEVICE_SET, GENERATED_BY,
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
def _by_name() -> dict[str, keys.ExtraSpecKey]:
    return {row.name: row for row in KEYS if not row.parts}


def find(name: str) -> keys.ExtraSpecKey | None:
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
