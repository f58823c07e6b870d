# SPDX-License-Identifier: Apache-2.0

"""The emulated machines: processors, cells, devices, kernel parameters."""

import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Machine:
    """One machine.

    :ivar cpu: the processor, as QEMU's ``-cpu``
    :ivar sockets: sockets, each with the same number of cores
    :ivar cells: CPUs of each cell, as QEMU's ``cpus=``, and its MiB
    :ivar parameters: kernel parameters
    :ivar modules: kernel modules besides the drivers of the PCI devices
    :ivar tuning: shell commands that an administrator's services would run
    :ivar iommu: QEMU's IOMMU device
    :ivar etc: (path below /etc, text) of each file
    """

    name: str
    cpu: str
    sockets: int
    cores: int
    threads: int
    cells: tuple[tuple[str, int], ...]
    parameters: str = ''
    modules: tuple[str, ...] = ()
    tuning: str = ''
    iommu: str = ''
    etc: tuple[tuple[str, str], ...] = ()

    def arguments(self) -> Iterator[str]:
        """Return the arguments of QEMU that make this machine."""
        memory = sum(size for _, size in self.cells)
        cpus = self.sockets * self.cores * self.threads
        yield from (
            '-machine', 'q35,kernel-irqchip=off', '-cpu', self.cpu,
            '-m', f'{memory}M', '-smp',
            (f'{cpus},sockets={self.sockets},cores={self.cores},'
             f'threads={self.threads}'))
        if self.iommu:
            yield from ('-device', self.iommu)
        for cell, (cpu_list, size) in enumerate(self.cells):
            ranges = ''.join(f',cpus={part}' for part in cpu_list.split(','))
            yield from (
                '-object', f'memory-backend-ram,id=m{cell},size={size}M',
                '-numa', f'node,nodeid={cell},memdev=m{cell}{ranges}')
            yield from self._devices(cell)
        for one in range(len(self.cells)):
            for other in range(one + 1, len(self.cells)):
                distance = self._distance(one, other)
                yield from ('-numa',
                            f'dist,src={one},dst={other},val={distance}')

    def _distance(self, one: int, other: int) -> int:
        in_socket = max(1, len(self.cells) // self.sockets)
        return 12 if one // in_socket == other // in_socket else 21

    def _devices(self, cell: int) -> Iterator[str]:
        """Attach a network adapter and an SR-IOV capable disk to a cell."""
        bridge = f'bridge{cell}'
        bus = 32 * (cell + 1)
        root = (f'pxb-pcie,id={bridge},bus=pcie.0,bus_nr={bus},'
                f'numa_node={cell}')
        disk = (f'nvme,serial=disk{cell},subsys=disk{cell},sriov_max_vfs=4,'
                'sriov_vq_flexible=8,sriov_vi_flexible=4,max_ioqpairs=12,'
                'msix_qsize=8')
        adapter = f'e1000e,mac=52:54:00:00:00:{cell:02x}'
        yield from ('-device', root, '-device', f'nvme-subsys,id=disk{cell}')
        for slot, device in enumerate((adapter, disk)):
            port = f'port{cell}.{slot}'
            place = f'chassis={2 * cell + slot + 1},slot={slot}'
            yield from (
                '-device', f'pcie-root-port,bus={bridge},id={port},{place}',
                '-device', f'{device},bus={port}')


_INTEL = 'Haswell-noTSX,+pdpe1gb,-pcid,-invpcid,-x2apic,-tsc-deadline'

_NOVA_CONF = """\
[DEFAULT]
reserved_host_memory_mb = 512
reserved_huge_pages = node:0,size:2048,count:0
[compute]
cpu_dedicated_set = 2-3,6-7
cpu_shared_set = 0-1,4-5
[libvirt]
virt_type = kvm
cpu_mode = host-passthrough
"""

#: Two sockets with SMT, as installed: only the kernel's defaults.
TWO_SOCKETS = Machine('intel-2s-smt', _INTEL, 2, 2, 2,
                      (('0-3', 1024), ('4-7', 1024)))

#: Sub-NUMA clustering: two cells in each socket.
FOUR_CELLS = Machine('intel-2s-snc2', _INTEL, 2, 4, 1,
                     (('0-1', 768), ('2-3', 512), ('4-5', 512), ('6-7', 512)))

#: The advice of tuning guides, and reserved huge pages in each cell.
TUNED = Machine(
    'intel-2s-tuned', _INTEL, 2, 4, 1, (('0-3', 1536), ('4-7', 1536)),
    parameters='default_hugepagesz=2M hugepagesz=2M hugepages=0:384,1:384 '
    'isolcpus=managed_irq,domain,2-3,6-7 nohz_full=2-3,6-7 rcu_nocbs=2-3,6-7 '
    'irqaffinity=0-1,4-5 transparent_hugepage=never numa_balancing=disable '
    'intel_iommu=on iommu=pt mitigations=off',
    tuning='echo 1 > /proc/sys/vm/swappiness; '
    'for disk in /sys/bus/pci/drivers/nvme/*/sriov_numvfs; do '
    'echo 2 > "$disk"; done',
    iommu='intel-iommu,intremap=off',
    etc=(
        ('modprobe.d/kvm.conf', 'options kvm_intel ept=1 nested=0\n'),
        ('nova/nova.conf', _NOVA_CONF),
        ('sysctl.d/90-compute.conf',
         'vm.swappiness = 1\nkernel.numa_balancing = 0\n'),
        ('systemd/system.conf.d/cpu.conf',
         '[Manager]\nCPUAffinity=0-1 4-5\n'),
        ('tuned/active_profile', 'cpu-partitioning\n'),
        ('tuned/cpu-partitioning-variables.conf', 'isolated_cores=2-3,6-7\n'),
        ('tuned/profile_mode', 'manual\n')))

#: A processor of AMD with nested paging.
AMD = Machine('amd-2s', 'EPYC,+svm,+npt', 2, 2, 1,
              (('0-1', 1024), ('2-3', 1024)), modules=('kvm_amd',))

#: A general-purpose machine: KSM merges across cells, THP always, swap.
UNTUNED = Machine(
    'intel-2s-untuned', _INTEL, 2, 2, 2, (('0-3', 1024), ('4-7', 1024)),
    parameters='transparent_hugepage=always', modules=('zram',),
    tuning='echo 1 > /sys/kernel/mm/ksm/run; '
    'echo 256M > /sys/block/zram0/disksize; mkswap /dev/zram0; '
    'swapon /dev/zram0')

#: A compute host before its configuration; KVM works on it.
COMPUTE = Machine('compute', 'EPYC,+svm,+npt', 2, 2, 1,
                  (('0-1', 2048), ('2-3', 2048)), modules=('kvm_amd',))

#: The machines in tests/data/hosts.
MACHINES = {machine.name: machine
            for machine in (TWO_SOCKETS, FOUR_CELLS, TUNED, AMD, UNTUNED)}
