# SPDX-License-Identifier: Apache-2.0

"""Change the state of emulated machines, and check ``host audit``.

    python -m tests.system.emulated_host.flips

Each machine boots, and flip_states.py makes one change after another and
undoes it: the finding must appear and disappear. The requirements are those of
``python -m tests.system.emulated_host``.
"""

import concurrent.futures
import dataclasses
import pathlib
import sys
import tempfile

from tests.system.emulated_host import boot
from tests.system.emulated_host import kernel
from tests.system.emulated_host import machines

FLIP = pathlib.Path(__file__).with_name('flip_states.py')

_NOVA_CONF = """\
[DEFAULT]
reserved_host_memory_mb = 1024
[compute]
cpu_dedicated_set = 2-3,6-7
cpu_shared_set = 0-1,4-5
[libvirt]
cpu_mode = host-passthrough
"""

#: Two sockets with SMT, swap space, an IOMMU and a good configuration.
INTEL = dataclasses.replace(
    machines.UNTUNED, parameters=(
        'intel_iommu=on iommu=pt irqaffinity=0-1,4-5'),
    iommu='intel-iommu,intremap=off', tuning=(
        'echo 256M > /sys/block/zram0/disksize; mkswap /dev/zram0; '
        'swapon /dev/zram0; '
        'for disk in /sys/bus/pci/drivers/nvme/*/sriov_numvfs; do '
        'echo 2 > "$disk"; done'),
    etc=(('nova/nova.conf', _NOVA_CONF), ('tuned/active_profile', 'site\n'),
         ('udev/rules.d/70-vfs.rules', 'ATTR{sriov_numvfs}="2"\n')))


def main() -> int:
    """Flip the states of each machine."""
    unpacked = kernel.prepare(boot.CLONE / '.emulated')

    def flip(machine: machines.Machine) -> str:
        with tempfile.TemporaryDirectory() as directory:
            return boot.run(
                machine, unpacked, pathlib.Path(directory),
                f'{sys.executable} {FLIP} {machine.name} {unpacked.root}\n',
                limit_s=900)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        for said in pool.map(flip, (INTEL, machines.AMD)):
            sys.stdout.write(said)
    return 0


if __name__ == '__main__':
    sys.exit(main())
