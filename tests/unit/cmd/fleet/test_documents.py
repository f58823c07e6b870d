# SPDX-License-Identifier: Apache-2.0

import json
import unittest

import yaml

from hpcvirt.topology import snapshot
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

FLAVOR = {'name': 'x', 'vcpus': 2, 'ram_mib': 1024, 'disk_gib': 0,
          'extra_specs': {}}


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


class SummaryTest(unittest.TestCase):
    """``hpcvirt fleet show`` of one host of 16 CPUs, with its instances."""

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        (self.folder / 'h.json').write_text(snapshot.dumps(hosts.build(
            cells=2, cores=4, mib=8192, name='h')))

    def show(self, *instances, profile='default', **others):
        path = self.folder / 'fleet.json'
        path.write_text(json.dumps({'schema_version': 1, 'classes': {'c': {
            'hosts': ['h.json'], 'profile': profile}}, 'instances': [
                {'id': f'i{number}', 'host': 'h', 'flavor': FLAVOR, **each}
                for number, each in enumerate(instances)], **others}))
        return commands.run('fleet', 'show', path, '-f', 'json')

    def test_an_instance_that_cannot_be_there_breaks_its_host(self):
        pinned = {**FLAVOR, 'extra_specs': {'hw:cpu_policy': 'dedicated'}}
        for change, said in (
                ({'cells': [{'id': 2}]},
                 'i0 is on cell 2, which the host does not have'),
                ({'cpus': [96, 97]},
                 ('i0 has 0 dedicated CPUs of cell 0, where its guest cell '
                  'has 2 dedicated vCPUs')),
                ({'cells': [{'id': 0, 'pages': {'1G': 1}}]},
                 ('i0 has 1 pages of 1048576 KiB on cell 0, where 0 of 0 are '
                  'left'))):
            found = commands.read_document(self, self.show({
                'flavor': pinned, 'cells': [{'id': 0}], 'cpus': [2, 3],
                **change}))
            (broken,) = found['broken']
            self.assertEqual(
                {'name': 'h', 'reason':
                 f'{self.folder}/fleet.json: instances[0]: {said}'}, broken)
            self.assertEqual(1, found['classes'][0]['broken'])
            self.assertEqual(1, found['instances'])

    def test_instances_without_a_host_are_refused(self):
        for instance in ({}, {'flavor': 'planned'}):
            commands.check_refused(
                self, "instances[0].host: 'i0' is on 'n7', which is not a "
                'host of the document', self.show({**instance, 'host': 'n7'}))

    def test_more_than_the_host_gives_is_a_warning(self):
        large = {**FLAVOR, 'vcpus': 64}
        ended = self.show({}, {'flavor': large})
        self.assertEqual(
            'Warning: instances-exceed: h: the instances have more than is '
            'given to them, and nothing of it counts as free; on h, i1 of '
            f'{self.folder}/fleet.json: instances[1] has 64 vCPUs, and the '
            'host has 2 in all.\n', ended.err)
        found = commands.read_document(self, ended)
        self.assertEqual([], found['broken'])

    def test_what_agrees_with_its_host_is_silent(self):
        self.assertEqual('', self.show({}).err)
        self.assertEqual('', self.show().err)

    def test_a_profile_is_named_as_the_document_names_it(self):
        (self.folder / 'own.yaml').write_text('base: dense\n')
        for profile, name in (('dense', 'dense'), ('own.yaml', 'own.yaml'),
                              ({'base': 'dense'}, 'dense, changed')):
            (own,) = commands.read_document(
                self, self.show(profile=profile))['classes']
            self.assertEqual(name, own['profile'])
