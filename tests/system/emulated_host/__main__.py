# SPDX-License-Identifier: Apache-2.0

"""Capture emulated machines again: their files in tests/data/hosts.

    python -m tests.system.emulated_host [NAME...]

Without a name all are captured. It needs root, and the Debian packages
qemu-system-x86, busybox-static, cpio and kmod. The kernel is kept in
``.emulated``.
"""

import argparse
import pathlib
import sys
import tempfile

from tests.system.emulated_host import boot
from tests.system.emulated_host import kernel
from tests.system.emulated_host import machines

HOSTS = boot.CLONE / 'tests/data/hosts'
CAPTURE = pathlib.Path(__file__).with_name('capture.py')


def main() -> int:
    """Boot each machine and capture it."""
    parser = argparse.ArgumentParser(
        prog='python -m tests.system.emulated_host',
        description='Capture emulated machines in tests/data/hosts.')
    parser.add_argument('name', metavar='NAME', nargs='*',
                        choices=[[], *machines.MACHINES])
    names = parser.parse_args().name or machines.MACHINES
    unpacked = kernel.prepare(boot.CLONE / '.emulated')
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            job = pathlib.Path(directory)
            boot.run(machines.MACHINES[name], unpacked, job,
                     f'{sys.executable} {CAPTURE} /job/tree\n')
            text = (job / 'tree').read_text()
        (HOSTS / f'{name}.txt').write_text(text)
        print(f'{name}: {text.count(chr(10))} files')
    return 0


if __name__ == '__main__':
    sys.exit(main())
