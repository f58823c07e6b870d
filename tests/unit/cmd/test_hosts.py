# SPDX-License-Identifier: Apache-2.0

import argparse
import io
import json
import os
import random
import struct
import tarfile
import unittest
import zipfile

from hpcvirt import exception
from hpcvirt.cmd import hosts as host_arguments
from hpcvirt.topology import archive
from hpcvirt.topology import collection
from hpcvirt.topology import snapshot
from tests.builders import folders
from tests.builders import hosts


class HostsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.write('n1.json', name='n1')

    def write(self, path, content=None, **topology):
        path = self.folder / path
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if content is not None else snapshot.dumps(
            hosts.build(**topology)))
        return path

    def names(self, *words):
        return [name for entry in host_arguments.read_entries(
            words, folder=str(self.folder)) for name in entry.names]

    def archive(self, name, members):
        path = self.folder / name
        if name.endswith('.zip'):
            with zipfile.ZipFile(path, 'w') as archive:
                for member, data in members.items():
                    archive.writestr(member, data)
            return path
        with tarfile.open(path, 'w:gz' if name.endswith('z')
                          else 'w') as archive:
            for member, data in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return path

    def fleet(self, **document):
        return self.write('fleet.yaml', json.dumps(
            {'schema_version': 1, **document}))

    def test_a_word_has_a_name_and_a_count(self):
        self.assertEqual(['n1'], self.names('n1.json'))
        self.assertEqual(['a'], self.names('a=n1.json'))
        self.assertEqual(['a-1', 'a-2'], self.names('a=n1.json*2'))
        self.write('b=n1.json*3', name='odd')
        self.assertEqual(['odd'], self.names('b=n1.json*3'))

    def test_a_wrong_word_is_refused(self):
        for word, message in (
                ('=n1.json', 'the name before = is empty'),
                ('a=', 'a=: has no path'), ('n1.json*0', 'the count 0 is'),
                ('n1.json*1000000', 'the count 1000000 is not from 1 to'),
                (f'n1.json*000000001{"0" * 9}', 'is not from 1 to'),
                (f'n1.json*{"9" * 5000}', 'is not from 1 to'),
                ('n1.json*-2', 'matches no file'),
                ('n1.json*two', 'matches no file'),
                ('*3', 'has no path'), ('absent', 'cannot be read'),
                ('x*.json', 'matches no file')):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                self.names(word)

    def test_many_hosts_are_read_at_once(self):
        for name in ('b', 'a'):
            self.write(f'rack/{name}.json', name=name)
        self.write('rack/README', 'no topology')
        data = {f'deep/{name}.json': (
            self.folder / 'rack' / f'{name}.json').read_bytes()
            for name in 'ba'}
        self.archive('r.tar', {**data, 'notes.txt': b'x'})
        for name in ('r.tar.gz', 'r.zip'):
            self.archive(name, data)
        for word in ('rack', 'rack/', 'rack/*.json', 'r.tar', 'r.tar.gz',
                     'r.zip'):
            self.assertEqual(['a', 'b'], self.names(word), word)
        with self.assertRaisesRegex(exception.InvalidInput, 'has 2 hosts'):
            self.names('x=rack')
        self.assertEqual(['a-1', 'a-2', 'b-1', 'b-2'], self.names('rack*2'))

    def test_the_root_of_a_sysfs_is_one_host(self):
        for below in ('sys', 'devices/system'):
            root = self.folder / below.replace('/', '-')
            os.makedirs(root / below)
            (entry,) = host_arguments.read_entries([str(root)])
            self.assertIn('cpu', entry.fault)

    def test_an_archive_cannot_do_harm(self):
        data = (self.folder / 'n1.json').read_bytes()
        for name in ('a.tar', 'a.tar.gz', 'a.zip'):
            for member in ('../n.json', '/etc/n.json'):
                self.archive(name, {member: data})
                with self.assertRaisesRegex(exception.InvalidInput,
                                            'which is outside of it'):
                    self.names(name)
            self.archive(name, {'x.txt': data})
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'has no topology'):
                self.names(name)
            path = self.archive(name, {'n.json': data})
            whole = path.read_bytes()
            path.write_bytes(whole[:min(600, len(whole) // 2)])
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'cannot be read as an archive'):
                self.names(name)
            self.archive(name, {'n.json': data * 300})
            self.addCleanup(setattr, archive, 'MAX_BYTES',
                            archive.MAX_BYTES)
            archive.MAX_BYTES = 1000
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'the most that is read'):
                self.names(name)
            archive.MAX_BYTES = 1 << 29

    def test_a_damaged_archive_is_an_error_of_one_line(self):
        data = (self.folder / 'n1.json').read_bytes()
        for name in ('a.tar', 'a.tar.gz', 'a.zip'):
            path = self.archive(name, {'n.json': data, 'deep/m.json': data})
            whole = path.read_bytes()
            # Every byte that describes the files, then some others.
            dice = random.Random(name)
            places = [*range(len(whole) - 150, len(whole)), *(
                dice.randrange(len(whole)) for _ in range(200))]
            refused = 0
            for place in places:
                changed = bytearray(whole)
                changed[place] = dice.choice((0, 1, 0x2f, 0x7f, 0x80, 0xff))
                path.write_bytes(changed)
                try:
                    list(collection.read(str(path)))
                except exception.InvalidInput as exc:
                    refused += 1
                    self.assertNotIn('\n', str(exc))
            self.assertGreater(refused, 3, name)

    def test_a_file_without_a_name_does_no_harm(self):
        data = (self.folder / 'n1.json').read_bytes()
        path = self.archive('a.zip', {'x': data, 'n.json': data})
        whole = path.read_bytes()
        entry = whole.index(b'PK\1\2')
        size = struct.unpack('<L', whole[-10:-6])[0]
        path.write_bytes(
            whole[:entry + 28] + bytes(2) + whole[entry + 30:entry + 46]
            + whole[entry + 47:-10] + struct.pack('<L', size - 1)
            + whole[-6:])
        self.assertEqual(['n1'], self.names('a.zip'))

    def test_a_long_list_of_files_is_not_read(self):
        size = archive.MAX_LIST_BYTES + 46
        entry = b'PK\1\2' + bytes(42)
        with open(self.folder / 'long.zip', 'wb') as stream:
            stream.write(b'PK\3\4')
            stream.write(entry * (size // 46))
            stream.write(struct.pack('<4s4H2LH', b'PK\5\6', 0, 0, 1, 1,
                                     size // 46 * 46, 4, 0))
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'list of files of more than 16 MiB'):
            self.names('long.zip')

    def test_links_of_an_archive_are_not_followed(self):
        with tarfile.open(self.folder / 'l.tar', 'w') as archive:
            info = tarfile.TarInfo('n.json')
            info.type, info.linkname = tarfile.SYMTYPE, '/etc/passwd'
            archive.addfile(info)
        with self.assertRaisesRegex(exception.InvalidInput, 'no topology'):
            self.names('l.tar')

    def test_a_wrong_file_is_the_fault_of_its_host(self):
        self.write('rack/a.json', name='a')
        self.write('rack/b.json', '{')
        document = host_arguments.read_fleet(
            str(self.fleet(classes={'c': {'hosts': ['rack']}})))
        entries = document.classes['c'].hosts
        self.assertEqual([('a', True), ('b', False)], [
            (entry.name, entry.fault is None) for entry in entries])
        with self.assertRaisesRegex(exception.InvalidInput, 'b.json: is not'):
            document.list_topologies()

    def test_files_are_relative_to_the_fleet(self):
        self.write('profiles/p.yaml', 'smt: leave\n')
        self.write('flavors.json', json.dumps([{
            'name': 'f', 'vcpus': 1, 'ram': 64, 'properties': {}}]))
        path = self.fleet(flavor_files=['flavors.json'], classes={'c': {
            'hosts': ['n1.json'], 'profile': 'profiles/p.yaml'}},
            instances=[{'id': 'a', 'host': 'n1', 'flavor': 'f'}])
        document = host_arguments.read_fleet(str(path))
        self.assertEqual('leave', document.classes['c'].read_profile('').smt)
        self.assertEqual(['f'], [item.name for item in document.flavors])
        self.assertEqual(['f'], [item.flavor.name
                                 for item in document.instances])

    def test_an_error_of_a_fleet_says_where(self):
        self.write('p.yaml', 'smt: 3\n')
        for own, message in (
                ({'hosts': ['absent.json']},
                 r"fleet.yaml: classes\['c'\].hosts\[0\]: .*absent.json: ca"),
                ({'hosts': ['n1.json'], 'profile': 'p.yaml'},
                 'p.yaml: smt: must be'),
                ({'hosts': ['n1.json'], 'profile': 'dens'},
                 'dens: is neither .*did you mean dense'),
                ({'hosts': ['n1.json', 'n1.json']},
                 r"classes\['c'\]: 'n1' is the name of two hosts")):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                host_arguments.read_fleet(str(self.fleet(classes={'c': own})))

    def parse(self, *words):
        parser = argparse.ArgumentParser()
        host_arguments.add_hosts(parser)
        host_arguments.add_fleet(parser)
        host_arguments.add_division(parser)
        return host_arguments.read(parser.parse_args([*map(str, words)]))

    def test_hosts_are_named_in_one_way_at_a_time(self):
        n1 = self.folder / 'n1.json'
        fleet = self.fleet(classes={'c': {'hosts': [f'a={n1}']}})
        self.assertEqual(('hosts',), (*self.parse(n1).classes,))
        self.assertEqual(('c',), (*self.parse('--fleet', fleet).classes,))
        own = self.parse(n1, '--profile', 'dense').classes['hosts']
        self.assertEqual(0, own.read_profile('').shared_cores_per_cell)
        for words, message in (
                ((), r'hosts: are missing; give --fleet FILE, or \['),
                (('--fleet', fleet, n1), 'cannot be used with --fleet'),
                (('--fleet', fleet, '--profile', 'dense'), '--profile: cann'),
                ((n1, n1), "'n1' is the name of two hosts")):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                self.parse(*words)
