# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.deployment import formats
from hpcvirt.deployment import tree
from hpcvirt.deployment import written_files
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import plans

OWN = 'inventory/group_vars/hpcvirt_a.yml'


class WrittenFilesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The second host has less memory, and thus a group of its own.
        cls.plan = plans.plan(hosts.build(name='a', cores=4),
                              hosts.build(name='b', cores=4, mib=32768))

    def write(self, deployer):
        return formats.FORMATS[deployer](self.plan)

    def refuse(self, deployer, files, said):
        with self.assertRaisesRegex(exception.InvalidInput, said):
            written_files.sort_files(deployer, files, self.plan)

    def change(self, deployer, path, was, becomes):
        """Write the files, with another text in the one of a path."""
        found = []
        for file in self.write(deployer):
            text = file.text
            if file.path == path:
                text = text.replace(was, becomes)
                self.assertNotEqual(file.text, text)
            found.append(dataclasses.replace(file, text=text))
        return found

    def test_hosts_get_the_files_of_their_group(self):
        for deployer in formats.FORMATS:
            found = written_files.sort_files(
                deployer, self.write(deployer), self.plan).hosts
            self.assertEqual({'a', 'b'}, set(found))
            self.assertIn('cpu_dedicated_set', found['a'].conf.text)
            self.assertNotEqual(found['a'].key(), found['b'].key())
            self.assertEqual(deployer != 'edpm', bool(found['a'].files))

    def test_a_file_with_two_texts_is_refused(self):
        for deployer in formats.FORMATS:
            files = self.write(deployer)
            other = tree.File(files[0].path, files[0].text + 'more\n')
            self.refuse(deployer, [*files, other],
                        f'^{files[0].path}: would be written twice, and only '
                        "one text has the line 'more'$")
            written_files.sort_files(deployer, [*files, files[0]], self.plan)

    def test_a_file_of_a_host_with_two_texts_is_refused(self):
        files = self.change(
            'ansible', OWN, 'path: /etc/modprobe.d/hpcvirt.conf',
            'path: /etc/sysctl.d/90-hpcvirt.conf')
        self.refuse('ansible', files, f'^{OWN}: /etc/sysctl.d/90-hpcvirt.conf'
                    ': would be written twice')

    def test_a_file_is_either_written_or_removed(self):
        files = self.change(
            'ansible', OWN, 'hpcvirt_host_absent:',
            'hpcvirt_host_absent:\n  - /etc/modprobe.d/hpcvirt.conf')
        self.refuse('ansible', files, 'in hpcvirt_host_files and in '
                    'hpcvirt_host_absent')

    def test_a_host_is_in_one_group(self):
        path = 'inventory/hpcvirt.yml'
        files = self.change('kolla', path, 'b: {}', 'b: {}\n        a: {}')
        self.refuse('kolla', files, 'has the host a in hpcvirt_a and in '
                    'hpcvirt_b, whose variables differ')
        files = self.change('kolla', path, 'b: {}', 'c: {}')
        self.refuse('kolla', files, 'config/nova/c/nova.conf: is not written')
        files = self.change('ansible', path, 'b: {}', 'c: {}')
        self.refuse('ansible', files, f'{path}: does not have the host b')
        files = self.change('kayobe', f'kolla/{path}', 'b: {}', 'c: {}')
        self.refuse('kayobe', files, 'other groups of hosts than')
        files = self.change('kolla', path, 'children', 'others')
        self.refuse('kolla', files, 'has no groups of hosts')

    def test_a_missing_file_is_refused(self):
        for deployer, number in (('files', 0), ('kolla', 0), ('ansible', 1),
                                 ('edpm', 0)):
            files = list(self.write(deployer))
            lost = files.pop(number)
            self.refuse(deployer, files, f'{lost.path}: is not written')

    def test_texts_that_are_no_variables_are_refused(self):
        files = self.change('ansible', OWN, 'hpcvirt_host_files:', 'x:')
        self.refuse('ansible', files, 'does not have the files of its hosts')
        files = self.change('kolla', OWN, 'nova_cell_compute_', 'x')
        self.refuse('kolla', files, 'does not set nova_cell_compute_provider')
        files = self.change('edpm', 'hpcvirt_a.yaml', 'data:', 'x:')
        self.refuse('edpm', files, 'is not a node set with variables')
        files = self.change('ansible', OWN, 'hpcvirt_host_files:', '- x:')
        self.refuse('ansible', files, f'{OWN}: is not YAML')

    def test_the_files_of_one_host_need_no_folder(self):
        plan = plans.plan(hosts.build(cores=4))
        own = plans.host_files(hosts.build(cores=4), profiles.Profile())
        files = [tree.File(path, text) for path, text in own.items()]
        found = written_files.sort_files('files', files, plan)
        self.assertEqual('', found.hosts['host'].folder)
