# SPDX-License-Identifier: Apache-2.0

"""The audit reads the configuration of nova-compute as Nova does."""

import pathlib
import random
import tempfile
import unittest

from nova import conf as nova_conf
from oslo_config import cfg

from hpcvirt import config_file
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading import nova
from hpcvirt.audit.rules import nova as rules
from tests.builders import sysfs_files

GROUPS = ('DEFAULT', 'compute', 'COMPUTE', 'pci')
NAMES = ('one', 'many', 'before')


def options():
    """Options like those of Nova: one value, several, a former name."""
    conf = cfg.ConfigOpts()
    for group in ('DEFAULT', 'compute', 'pci'):
        conf.register_opts([
            cfg.StrOpt('one'),
            cfg.MultiStrOpt('many', deprecated_opts=[
                cfg.DeprecatedOpt('before', group='DEFAULT')])],
            None if group == 'DEFAULT' else group)
    return conf


def any_text(dice):
    """Draw a file; some are refused."""
    lines = ['[DEFAULT]'] if dice.random() < 0.95 else []
    lines += [any_line(dice) for _ in range(dice.randrange(12))]
    return '\n'.join(lines) + '\n'


def any_line(dice):
    name = dice.choice(NAMES)
    return dice.choice((
        f'[{dice.choice(GROUPS)}]', '', '# comment', '; comment',
        f'{name} = {dice.randrange(9)}', f'{name}: {dice.randrange(9)}',
        f'{name}={dice.choice(("a:b", "x=y", ""))}',
        f'{name} = {{"k": "v"}}', f'{name} = "quoted "', '  continued',
        f"{name} = 'it'", f'{name} = "half',
        *(['word', '[', '[]', '= 1'] if dice.random() < 0.05 else [])))


class ConfigurationTest(unittest.TestCase):
    def test_files_mean_what_they_mean_to_oslo_config(self):
        dice = random.Random(11)
        refused = 0
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ('a', 'b')]
            for _ in range(400):
                texts = [any_text(dice) for _ in paths]
                for path, text in zip(paths, texts, strict=True):
                    path.write_text(text)
                conf = options()
                try:
                    conf([], default_config_files=[str(p) for p in paths],
                         default_config_dirs=[])
                except cfg.ConfigFileParseError:
                    refused += 1
                    with self.assertRaises(config_file.Malformed):
                        for text in texts:
                            config_file.parse(text)
                    continue
                self.same(conf, list(map(config_file.parse, texts)), texts)
        self.assertIn(refused, range(10, 300))

    def same(self, conf, found, texts):
        for group in ('DEFAULT', 'compute', 'pci'):
            place = conf if group == 'DEFAULT' else conf[group]
            one = config_file.merge(found, [(group, 'one')])
            self.assertEqual(place.one, one[-1] if one else None, texts)
            many = config_file.merge(found, [(group, 'many'),
                                             ('DEFAULT', 'before')])
            self.assertEqual(sorted(place.many or []), sorted(many), texts)

    def test_options_are_those_of_nova(self):
        for (group, name), former in nova.OPTIONS.items():
            place = (nova_conf.CONF if group == 'DEFAULT'
                     else nova_conf.CONF._groups[group])
            if name == 'live_migration_parallel_connections' and (
                    name not in place._opts):
                continue  # Nova 32 has one connection.
            option = place._opts[name]['opt']
            self.assertEqual(former, tuple(
                (item.group or group, item.name)
                for item in option.deprecated_opts), name)

    def test_defaults_are_those_of_nova(self):
        conf = nova_conf.CONF
        self.assertEqual(rules.DEFAULT_RESERVE, str(
            conf._opts['reserved_host_memory_mb']['opt'].default))
        libvirt = conf._groups['libvirt']._opts
        for name, default in (
                ('live_migration_parallel_connections', 1),
                ('virt_type', 'kvm'), ('cpu_mode', None),
                ('cpu_power_management', False),
                ('cpu_power_management_strategy', 'cpu_state')):
            if name in libvirt:  # Nova 32 has one connection.
                self.assertEqual(default, libvirt[name]['opt'].default)
        pack = conf._groups['compute']._opts[
            'packing_host_numa_cells_allocation_strategy']['opt']
        self.assertIs(False, pack.default)

    def test_files_are_read_in_the_order_of_oslo_config(self):
        """A file that the command line names beats those of the folder."""
        with tempfile.TemporaryDirectory() as folder:
            sysfs_files.lay_out({
                **sysfs_files.WHOLE,
                'etc/nova/nova.conf': '[compute]\none = 1',
                'etc/nova/nova.conf.d/01.conf': '[compute]\none = 2',
                'sys/devices/system/cpu/online': '0'}, folder)
            etc = pathlib.Path(folder, 'etc/nova')
            for words in ([], [f'--config-file={etc}/nova.conf']):
                conf = options()
                conf(words, default_config_files=[f'{etc}/nova.conf'],
                     default_config_dirs=[f'{etc}/nova.conf.d'])
                line = '\0'.join(['nova-compute', *words]).replace(folder, '')
                sysfs_files.lay_out({'proc/9/comm': 'nova-compute',
                                     'proc/9/cmdline': line}, folder)
                names, _ = nova._names(
                    files_module.Files(pathlib.Path(folder)))
                found = config_file.merge([
                    config_file.parse(pathlib.Path(folder, name).read_text())
                    for name in names], [('compute', 'one')])
                self.assertEqual(conf.compute.one, found[-1], words)
