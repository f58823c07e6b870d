# SPDX-License-Identifier: Apache-2.0

"""QEMU and libvirt say which width of addresses a guest can have."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from hpcvirt.flavors import address_width


class QemuTest(unittest.TestCase):
    """QEMU decides how much memory a guest of 40 bits can have."""

    def ask(self, *arguments, path='/machine/unattached/device[0]'):
        commands = [
            {'execute': 'qmp_capabilities'},
            {'execute': 'qom-get',
             'arguments': {'path': path, 'property': 'phys-bits'}},
            {'execute': 'quit'}]
        return subprocess.run(
            ['qemu-system-x86_64', '-S', '-machine', 'q35,accel=tcg',
             '-display', 'none', '-qmp', 'stdio', *arguments],
            text=True, capture_output=True, check=False, timeout=60,
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

    def test_memory_of_a_guest_of_amd_is_moved_behind_a_hole(self):
        for gib in (512, 978, 979, 990, 1023):
            found = self.ask(
                '-cpu', 'EPYC', '-m', f'{gib}G', '-machine',
                'memory-backend=m', '-object',
                f'memory-backend-ram,id=m,size={gib}G,reserve=off')
            end = address_width.find_end_mib(gib * 1024, (), is_amd=True)
            self.assertEqual(end <= 2 ** 20,
                             'phys-bits too low' not in found.stderr,
                             f'{gib} GiB: {found.stderr}')
            if end > 2 ** 20:
                self.assertIn(f'< {(end << 20) - 1:#x} ', found.stderr)


class LibvirtTest(unittest.TestCase):
    """libvirt decides which widths a domain can have."""

    def define(self, folder, width):
        """Define a domain; return what libvirt says against it."""
        domain = folder / 'domain.xml'
        domain.write_text(
            '<domain type="qemu"><name>d</name>'
            '<uuid>00000000-0000-4000-8000-000000000001</uuid>'
            '<memory>65536</memory><os>'
            '<type arch="x86_64" machine="q35">hvm</type></os>'
            f'<cpu mode="custom"><model>qemu64</model>{width}</cpu></domain>')
        # libvirt asks for the user of its daemon, which is not installed.
        users, groups = folder / 'passwd', folder / 'group'
        users.write_text(
            'root:x:0:0::/root:/bin/sh\n'
            'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n')
        groups.write_text('root:x:0:\nkvm:x:64054:\n'
                          'libvirt-qemu:x:64055:\n')
        (folder / 'etc').mkdir(exist_ok=True)
        (folder / 'etc' / 'qemu.conf').write_text(
            'user = "root"\ngroup = "root"\n')
        # An embedded libvirt keeps all that it knows in its folder.
        return subprocess.run(
            ['virsh', '-q', '-c', f'qemu:///embed?root={folder}', 'define',
             domain], text=True, capture_output=True, check=False,
            timeout=60, env={**os.environ,
                             'LD_PRELOAD': 'libnss_wrapper.so',
                             'NSS_WRAPPER_PASSWD': str(users),
                             'NSS_WRAPPER_GROUP': str(groups)}).stderr

    def test_the_widths_that_libvirt_refuses_are_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual('', self.define(folder, ''))
            mode, bits = 'hw:maxphysaddr_mode', 'hw:maxphysaddr_bits'
            for specs in ({mode: 'passthrough'}, {mode: 'emulate'},
                          {mode: 'passthrough', bits: '46'},
                          {mode: 'emulate', bits: '42'}):
                # As Nova writes it: its test_config.py, and format_dom.
                width = f"<maxphysaddr mode='{specs[mode]}'/>"
                if bits in specs:
                    width = width.replace('/', f" bits='{specs[bits]}'/")
                self.assertEqual(
                    address_width.find_refusal(specs) is None,
                    not self.define(folder, width), specs)
