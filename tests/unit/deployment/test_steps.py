# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps
from hpcvirt.deployment import tree
from tests.builders import hosts
from tests.builders import plans


class StepsTest(unittest.TestCase):
    def test_what_is_no_longer_needed_is_removed(self):
        present = plans.host_files(hosts.build(vfs={1: 8}),
                                   devices=(hosts.VFS,))
        found = steps.compare(
            [tree.File(path, text) for path, text
             in plans.host_files(hosts.build(vfs={1: 8})).items()], present)
        removed = [step for step in found
                   if step.change is steps.FileStatus.REMOVED]
        self.assertEqual([host_files.VFS],
                         [step.file.path for step in removed])
        self.assertIn(f'--- a/{host_files.VFS}', list(removed[0].difference()))

    def test_files_of_others_are_neither_changed_nor_removed(self):
        found = steps.compare([tree.File('a', tree.MARK)], {
            'a': 'mine', host_files.VFS: 'mine'})
        self.assertEqual([steps.FileStatus.FOREIGN],
                         [step.change for step in found])

    def test_options_that_another_file_sets_are_named(self):
        own = plans.host_files(hosts.build())[host_files.NOVA_CONF]
        found = list(steps.conflicts(own, {
            'etc/nova/nova.conf': '[DEFAULT]\nreserved_host_cpus=2\n'
            'cpu_dedicated_set=1\n[compute]\n# cpu_shared_set = 0\n'
            'cpu_dedicated_set = 1\n'}))
        self.assertEqual(2, len(found))
        self.assertIn('[compute]cpu_dedicated_set too', found[0])
        self.assertIn('[DEFAULT]reserved_host_cpus, with which', found[1])
