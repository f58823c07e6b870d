# SPDX-License-Identifier: Apache-2.0

import pathlib
import unittest

from hpcvirt import config_file
from hpcvirt.audit import fact
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading import nova
from tests.builders import audited
from tests.builders import sysfs_files


class IniTest(unittest.TestCase):
    """Files of options; tests/functional compares with oslo.config."""

    def test_options_comments_quotes_and_continuations(self):
        self.assertEqual({
            ('DEFAULT', 'a'): ('1', '2'), ('group', 'b'): ('x y',),
            ('group', 'c'): ('1\n2',), ('group', 'd'): ('',),
            ('group', 'e'): ('{"k": "v"}',), ('group', 'f'): ('p=q',),
        }, config_file.parse(
            '# comment\n[DEFAULT]\na = 1\n; other\na: 2\n\n[Group]\n'
            'b = "x y"\nc = 1\n  2\nd =\ne = {"k": "v"}\nf = p=q\n'))

    def test_what_oslo_config_refuses(self):
        for text in ('a = 1', '[g]\nword', '[g\na = 1', '[]\na = 1',
                     '[g]\n= 1', '[g]\n\n  continued', ' [g]'):
            self.assertRaises(config_file.Malformed, config_file.parse, text)

    def test_later_files_and_present_names_win(self):
        names = [('pci', 'device_spec'), ('DEFAULT', 'before')]
        files = [config_file.parse('[pci]\ndevice_spec = 2\n'
                                   '[DEFAULT]\nbefore = 1'),
                 config_file.parse('[pci]\ndevice_spec = 3')]
        self.assertEqual(('1', '2', '3'), config_file.merge(files, names))


TEXT = '[compute]\ncpu_dedicated_set = {}\n'
SET = ('compute', 'cpu_dedicated_set')


class NovaTest(unittest.TestCase):
    """The configuration of nova-compute, where deployments have it."""

    def read(self, **paths):
        root = pathlib.Path(sysfs_files.scratch(self), 'host')
        sysfs_files.lay_out({
            f'{audited.CPU}/online': '0', **sysfs_files.WHOLE, **paths},
            root)
        return nova.read(files_module.Files(root))

    def test_files_of_each_deployment(self):
        for name in ('etc/kolla/nova-compute/nova.conf',
                     'var/lib/openstack/nova/02-nova-host-specific.conf',
                     'etc/nova/nova-cpu.conf', 'etc/nova/nova.conf',
                     'etc/nova/nova.conf.d/01-cpus.conf',
                     ('var/lib/config-data/puppet-generated/nova_libvirt/etc/'
                      'nova/nova.conf')):
            facts = self.read(**{name: TEXT.format('2-9')})
            self.assertEqual((f'/{name}',), facts.files)
            self.assertEqual('2-9', facts.get(*SET))

    def test_a_container_does_not_read_the_files_of_the_host(self):
        facts = self.read(**{
            'etc/nova/nova.conf': TEXT.format('1'),
            'etc/kolla/nova-compute/nova.conf': TEXT.format('2')})
        self.assertEqual('2', facts.get(*SET))

    def test_a_later_file_has_the_last_word(self):
        facts = self.read(**{
            'etc/nova/nova.conf': TEXT.format('1'),
            'etc/nova/nova.conf.d/01.conf': TEXT.format('2'),
            'etc/nova/nova.conf.d/02.conf': TEXT.format('3'),
            'etc/nova/nova.conf.d/notes.txt': TEXT.format('4')})
        self.assertEqual('3', facts.get(*SET))
        self.assertEqual(('1', '2', '3'), facts.all(*SET))

    def test_the_command_line_says_which_files_are_read(self):
        files = {'etc/nova/nova.conf': TEXT.format('1'),
                 'etc/nova/nova.conf.d/01.conf': TEXT.format('2'),
                 'etc/own.conf': TEXT.format('3'),
                 'etc/own.d/01.conf': TEXT.format('4'),
                 'proc/7/comm': 'nova-compute'}
        nova_conf, first, own, last = [f'/{name}' for name in files][:4]
        for line, expected in (
                ('nova-compute', (nova_conf, first)),
                (('nova-compute --config-file /etc/nova/nova.conf '
                 '--config-file=/etc/own.conf'), (first, nova_conf, own)),
                (('nova-compute --config-file=/etc/own.conf --config-dir '
                 '/etc/own.d'), (own, last))):
            facts = self.read(**files, **{
                'proc/7/cmdline': line.replace(' ', '\0')})
            self.assertEqual(expected, facts.files)

    def test_a_reference_to_another_option_is_unknown(self):
        self.assertRaises(fact.NotKnown, self.read, **{
            'etc/nova/nova.conf': TEXT.format('$my_cpus')})

    def test_none_and_nothing_known_differ(self):
        self.assertIsNone(self.read())
        root = pathlib.Path(sysfs_files.scratch(self), 'bare')
        sysfs_files.lay_out({f'{audited.CPU}/online': '0'}, root)
        self.assertRaises(fact.NotKnown, nova.read, files_module.Files(root))

    def test_passwords_are_not_kept(self):
        facts = self.read(**{'etc/nova/nova.conf':
                             '[database]\nconnection = mysql://n:secret@db\n'
                             '[compute]\ncpu_dedicated_set = 1\n'})
        self.assertNotIn('secret', repr(facts))
