# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.deployment import after_reboot
from hpcvirt.deployment import written_files
from tests.builders import hosts

GRUB = 'etc/default/grub.d/90-hpcvirt.cfg'
UDEV = 'etc/udev/rules.d/70-hpcvirt-vfs.rules'
UNIT = 'etc/systemd/system/pages.service'
WANTS = 'etc/systemd/system/sysinit.target.d/pages.conf'
AFFINITY = 'etc/systemd/system.conf.d/90-hpcvirt.conf'


class AfterRebootTest(unittest.TestCase):
    def read(self, host=None, **files):
        """Read what a host has with some files."""
        paths = {'grub': GRUB, 'udev': UDEV, 'unit': UNIT, 'wants': WANTS,
                 'affinity': AFFINITY}
        found = {paths[name]: text for name, text in files.items()}
        return after_reboot.read(
            host or hosts.build(mib=4096, vfs={0: 8, 1: 8}),
            written_files.WrittenHost(
                written_files.WrittenText('conf', ''),
                written_files.WrittenVariables('provider', {}),
                files={'other': '', **found}))

    def boot(self, parameters, **files):
        """Boot with parameters; the pages before Linux 5.16, and since."""
        found = self.read(
            grub=f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {parameters}"',
            **files)
        return [own.pages for own in reversed(found.pages)]

    def test_pages_have_the_last_size_before_their_number(self):
        for parameters, pages in (
                ('hugepages=4', {2048: 2}),
                ('default_hugepagesz=1G hugepages=4', {1048576: 2}),
                ('hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=6',
                 {1048576: 1, 2048: 3}),
                ('default_hugepagesz=1G hugepagesz=2m hugepages=6',
                 {2048: 3}),
                ('hugepagesz=2048K hugepages=6', {2048: 3}),
                ('quiet -- hugepages=4', {}),
                ("a='b hugepages=4 c'", {2048: 2}),
                (r'a=\"b hugepages=4 c\"', {}),
                ('default-hugepagesz=1G hugepages=4', {1048576: 2})):
            with self.subTest(parameters):
                self.assertEqual([{0: pages, 1: pages}] * 2,
                                 self.boot(parameters))

    def test_pages_without_cells_are_divided_evenly(self):
        self.assertEqual({0: {2048: 3}, 1: {2048: 2}},
                         self.boot('hugepages=5')[1])
        host = hosts.build(cells=3, mib=(4096, 0, 4096))
        found = self.read(host, grub='GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX '
                          'hugepages=4"')
        self.assertEqual({0: {2048: 2}, 1: {}, 2: {2048: 2}},
                         found.pages[0].pages)

    def test_older_kernels_read_the_number_before_a_colon(self):
        old, new = self.boot('hugepages=0:512,1:256')
        self.assertEqual({0: {2048: 0}, 1: {2048: 0}}, old)
        self.assertEqual({0: {2048: 512}, 1: {2048: 256}}, new)
        self.assertEqual({0: {2048: 1}, 1: {2048: 0}},
                         self.boot('hugepages=1:256')[0])

    def test_what_the_kernel_refuses_is_refused(self):
        for parameters, said in (
                ('hugepages=x', 'hugepages=x, which the kernel refuses'),
                ('hugepages=-1', 'which the kernel refuses'),
                ('hugepages=0:1,7:1', "refuses '7:1'"),
                ('hugepages=0:1,', "refuses ''"),
                ('hugepages=1 hugepages=2', 'which the kernel ignores'),
                ('hugepagesz=2 hugepages=1', 'no size of pages'),
                ('hugepagesz=0M hugepages=1', 'no size of pages'),
                ('nohz_full=0-3,^1', 'only Nova knows'),
                ('nohz_full=1-x', 'nohz_full: ')):
            with self.subTest(parameters), self.assertRaisesRegex(
                    exception.InvalidInput, f'^{GRUB}: .*{said}'):
                self.boot(parameters)
        for text in ('GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX a',
                     'GRUB_CMDLINE_LINUX="a"', 'GRUB_CMDLINE="a"'):
            with self.subTest(text), self.assertRaisesRegex(
                    exception.InvalidInput, f'^{GRUB}: '):
                self.read(grub=text)

    def test_a_unit_that_is_wanted_writes_pages(self):
        place = '/sys/devices/system/node/node1/hugepages/hugepages-2048kB'
        service = (f"[Service]\nExecStart=/bin/sh -c 'echo 9 > {place}"
                   "/nr_hugepages'\n")
        unit = f'[Unit]\nConditionKernelCommandLine=hugepages=4\n{service}'
        wants = '[Unit]\nWants=other.service pages.service\n'
        for own, wanted, pages in (
                (unit, wants, {2048: 9}), (unit, '', {2048: 2}),
                (f'[Unit]\nConditionKernelVersion=<5.16\n{unit}', wants,
                 {2048: 9}),
                (f'[Unit]\nConditionKernelVersion=<5.15\n{unit}', wants,
                 {2048: 2}),
                (f'[Unit]\nConditionKernelCommandLine=hugepages=40\n{unit}',
                 wants, {2048: 2}),
                (f'{unit}ExecStart=\n', wants, {2048: 2})):
            with self.subTest(own, wants=wanted):
                old, _ = self.boot('hugepages=4', unit=own, wants=wanted)
                self.assertEqual({0: {2048: 2}, 1: pages}, old)
        with self.assertRaisesRegex(
                exception.InvalidInput, f'^{UNIT}: runs .* also on a host '
                'that was not booted for these pages'):
            self.boot('hugepages=4', unit=service, wants=wants)
        for was, becomes in (('node1', 'node7'), ('echo 9', 'echo x'),
                             ('/bin/sh', '/bin/true'), ("'", '"\'')):
            with self.subTest(becomes), self.assertRaisesRegex(
                    exception.InvalidInput, 'reserves no pages on this host|'
                    'which is not understood'):
                self.boot('hugepages=4', unit=unit.replace(was, becomes),
                          wants=wants)

    def test_an_empty_value_takes_back_a_list_of_systemd(self):
        for text, cpus in (
                ('CPUAffinity=0-3', {0, 1, 2, 3}),
                ('CPUAffinity=0 2,4', {0, 2, 4}),
                ('CPUAffinity=0\nCPUAffinity=4', {0, 4}),
                ('CPUAffinity=0\nCPUAffinity=\nCPUAffinity=4', {4}),
                ('CPUAffinity=0 \\\n 1', {0, 1}),
                ('# CPUAffinity=0', None),
                ('[Other]\nCPUAffinity=0', None)):
            found = self.read(affinity=f'[Manager]\n{text}\n')
            lists = {own.where: own.cpus for own in found.cpu_lists}
            self.assertEqual(cpus, lists[AFFINITY], text)
        with self.assertRaisesRegex(exception.InvalidInput, 'systemd ignores'):
            self.read(affinity='CPUAffinity=0\n')

    def test_rules_of_udev_apply_to_the_devices_that_they_match(self):
        first, second = '0000:41:00.0', '0000:61:00.0'
        one = f'SUBSYSTEM=="pci", KERNEL=="{first}", '
        both = f'SUBSYSTEM=="pci", KERNEL=="{first}|{second}", '
        every = 'SUBSYSTEM=="pci", KERNEL=="0000:*", '
        four, six = 'ATTR{sriov_numvfs}="4"', 'ATTR{sriov_numvfs}="6"'
        for rules, counts in (
                (one + four, {first: 4}),
                (both + four, {first: 4, second: 4}),
                (every + four, {first: 4, second: 4}),
                (f'{one}{four}\n{one}{six}', {first: 6}),
                (f'{one}\\\n{four}', {first: 4}),
                (f'ACTION!="remove", {one}{four}', {first: 4}),
                (f'ACTION=="remove", {one}{four}', {}),
                (f'# {one}{four}', {})):
            with self.subTest(rules):
                self.assertEqual(counts, self.read(
                    udev=rules).functions.counts)
