# SPDX-License-Identifier: Apache-2.0

"""What is captured is what is read: the reads of all facts are traced."""

import contextlib
import fnmatch
import pathlib
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.audit import collector
from hpcvirt.audit.reading import files
from hpcvirt.audit.reading import host
from hpcvirt.topology import capture
from hpcvirt.topology import sysfs
from hpcvirt.topology import sysfs_tree
from hpcvirt.topology import tool_output
from tests.builders import audited
from tests.builders import sysfs_files

#: What makes readers look at other files, because these are missing.
MISSING = ('/cpulist', '/core_cpus_list', '/core_cpus_list /thread_siblings',
           '/shared_cpu_list', audited.NODE, audited.NOVA, 'sys/class/misc',
           'etc/default')
MORE = {
    'etc/nova/nova.conf': '',
    'proc/2/task/3/status': 'Cpus_allowed_list:\t0',
    'sys/class/infiniband/mlx5_0/fw_ver': '16.35.2000',
    'sys/class/nvme/nvme0/firmware_rev': 'A1',
    'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '0',
    'sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages': '0',
}


def trees():
    good = audited.tree() | MORE
    yield good
    yield good | {'proc/cpuinfo': 'CPU implementer\t: 0x41'}
    yield good | {f'{audited.CPU}/cpufreq/policy0/scaling_driver':
                  'acpi-cpufreq'}
    for gone in MISSING:
        yield {name: text for name, text in good.items()
               if not any(part in name for part in gone.split())}
    for name in ('intel-2s-tuned', 'amd-2s'):
        yield sysfs_files.emulated(name) | sysfs_files.WHOLE
    yield sysfs_files.captured('emulated-intel-2x2x2') | sysfs_files.WHOLE


class CollectorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The target of a link is in uevent, too.
        cls.files, cls.folders = set(), set()
        case = cls('test_what_is_read_is_captured')
        for number, tree in enumerate(trees()):
            root = pathlib.Path(sysfs_files.scratch(case), str(number))
            sysfs_files.lay_out(tree, root)
            with contextlib.ExitStack() as stack:
                for kind, method, names in (
                        (sysfs_tree.SysfsTree, 'text', cls.files),
                        (sysfs_tree.SysfsTree, 'beginning', cls.files),
                        (files.Files, 'has', cls.files),
                        (files.Files, 'names', cls.folders)):
                    stack.enter_context(trace(kind, method, names))
                audited.values(host.read(root))
            with (trace(sysfs_tree.SysfsTree, 'names', cls.folders),
                  contextlib.suppress(exception.InvalidInput)):
                sysfs.read(root)
        case.doCleanups()
        cls.script = collector.make_script()
        table = cls.script.partition("<<'END'\n")[2].partition('\nEND')[0]
        tools = cls.script.partition("<<'TOOLS'\n")[2].partition('\nTOOLS')[0]
        cls.taken = [
            *(line.split()[1] for line in table.splitlines()),
            *(f'{tool_output.FOLDER}/{line.split()[0]}'
              for line in tools.splitlines())]

    def test_what_is_read_is_captured(self):
        taken = capture.CaptureList('\n'.join(self.taken))
        for names, is_folder in ((self.files, False), (self.folders, True)):
            self.assertGreater(len(names), 10)
            self.assertEqual([], sorted(
                name for name in names - {capture.LIST, 'proc/9/cmdline'}
                if taken.find_gap(name, is_folder)))

    def test_what_nothing_reads_is_not_captured(self):
        for pattern in collector.COPIED:
            self.assertTrue(any(
                name.count('/') == pattern.count('/')
                and fnmatch.fnmatchcase(name, pattern)
                for name in self.files), pattern)

    def test_the_script_has_all_that_is_put_into_it(self):
        self.assertNotRegex(self.script, '@[A-Z]+@')
        self.assertIn(' cpu_dedicated_set ', self.script)
        self.assertIn(' pci_passthrough_whitelist ', self.script)


def trace(kind, method, names):
    """Note the names that a method is called with."""
    original = getattr(kind, method)

    def note(self, name, *rest, **more):
        names.add(name)
        return original(self, name, *rest, **more)

    return mock.patch.object(kind, method, note)
