# SPDX-License-Identifier: Apache-2.0

import json
import unittest

import yaml

from hpcvirt.topology import snapshot
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts


class InventoryTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def run_with(self, **classes):
        path = self.folder / 'fleet.yaml'
        path.write_text(json.dumps({'schema_version': 1, 'classes': {
            name: {'hosts': words} for name, words in classes.items()}}))
        return commands.run('fleet', 'show', path, '-f', 'inventory')

    def read(self, **classes):
        """Return the class of each host in the inventory."""
        ended = self.run_with(**classes)
        self.assertEqual((0, ''), (ended.status, ended.err))
        return {host: variables['hpcvirt_fleet_class']
                for host, variables in yaml.safe_load(ended.out)[
                    'hpcvirt_hosts']['hosts'].items()}

    def test_hosts_with_names_need_no_topology_yet(self):
        self.assertEqual(
            {'g-1': 'gpu', 'g-2': 'gpu', 'x.example.org': 'gpu',
             'n1': 'Rack-7'},
            self.read(gpu=['g=captures/g.tar*2', 'x.example.org=x.json'],
                      **{'Rack-7': ['n1=n1.json']}))

    def test_it_is_no_file_that_host_config_takes_back(self):
        path = self.folder / 'inventory.yml'
        path.write_text(self.run_with(gpu=['g1=g1.json']).out)
        ended = commands.run('host', 'config', '--remove', '--write',
                             self.folder, '--apply')
        self.assertEqual(0, ended.status, ended.err)
        self.assertTrue(path.exists(), ended.out)

    def test_other_hosts_have_the_names_of_their_topologies(self):
        (self.folder / 'rack').mkdir()
        for name in ('n1', 'n2'):
            (self.folder / f'rack/{name}.json').write_text(
                snapshot.dumps(hosts.build(name=f'{name}.example.org')))
        self.assertEqual(
            ['n1.example.org', 'n2.example.org', 'n3'],
            [*self.read(all=['rack/*.json', {
                'name': 'n3', 'topology': snapshot.make_json(
                    hosts.build(name='other'))}])])

    def test_what_cannot_be_in_an_inventory_is_refused(self):
        for classes, said in (
                ({'a': ['{{ x }}=n.json']}, '{{ x }}: cannot be the name of'),
                ({'a b': ['n=n.json']}, 'a b: cannot be the name of a folder'),
                ({'a': ['n=n.json'], 'b': ['n=m.json']}, 'name of two hosts'),
                ({'a': ['absent.json']}, 'absent.json: cannot be read')):
            with self.subTest(said):
                commands.check_refused(self, said, self.run_with(**classes))
