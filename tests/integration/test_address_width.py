# SPDX-License-Identifier: Apache-2.0

import json
import shutil
import subprocess
import unittest

from hpcvirt.flavors import address_width

_QEMU = shutil.which('qemu-system-x86_64')


@unittest.skipUnless(_QEMU, 'needs qemu-system-x86_64')
class QemuTest(unittest.TestCase):
    """QEMU decides how much memory a guest of 40 bits can have."""

    def ask(self, *arguments, path='/machine/unattached/device[0]'):
        commands = [
            {'execute': 'qmp_capabilities'},
            {'execute': 'qom-get',
             'arguments': {'path': path, 'property': 'phys-bits'}},
            {'execute': 'quit'}]
        return subprocess.run(
            [_QEMU, '-S', '-machine', 'q35,accel=tcg', '-display', 'none',
             '-qmp', 'stdio', *arguments], text=True, capture_output=True,
            check=False, timeout=60,
            input='\n'.join(map(json.dumps, commands)))

    def test_a_model_has_the_default_width(self):
        self.assertIn(f'"return": {address_width.DEFAULT_BITS}',
                      self.ask('-cpu', 'Skylake-Server').stdout)

    def test_qemu_refuses_the_memory_that_does_not_fit(self):
        for gib in (512, 989, 990, 991, 1000, 1023):
            found = self.ask(
                '-cpu', 'Skylake-Server', '-m', f'{gib}G', '-machine',
                'memory-backend=m', '-object',
                f'memory-backend-ram,id=m,size={gib}G,reserve=off')
            fits = address_width.find_end_mib(gib * 1024, ()) <= 2 ** 20
            self.assertEqual(fits, 'phys-bits too low' not in found.stderr,
                             f'{gib} GiB: {found.stderr}')
