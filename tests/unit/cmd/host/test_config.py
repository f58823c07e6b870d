# SPDX-License-Identifier: Apache-2.0

import json
import re
import shutil
import unittest
from unittest import mock

from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

NOVA = 'etc/nova/nova.conf.d/90-hpcvirt.conf'
SITE = {
    'etc/default/grub':
        'GRUB_CMDLINE_LINUX="quiet hugepages=200 isolcpus=2-7"\n',
    'etc/systemd/system.conf.d/99-site.conf': '[Manager]\nCPUAffinity=2-3\n',
    'etc/sysctl.d/99-site.conf': 'vm.swappiness=60\n',
}


class ConfigTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        self.root = self.folder / 'root'
        self.is_host('host')

    def is_host(self, name, cpus=None):
        """Make the root that of a host."""
        for path, text in (('proc/sys/kernel/hostname', name),
                           ('sys/devices/system/cpu/online', cpus)):
            place = self.root / path
            if text is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(f'{text}\n')

    def run_command(self, *words):
        return commands.run('host', 'config', *words)

    def fails(self, message, *words):
        before = self.tree()
        self.assertRegex(
            commands.check_refused(self, '', self.run_command(*words)),
            f'^hpcvirt: .*{message}.*\n$')
        self.assertEqual(before, self.tree())

    def tree(self):
        return {str(path): path.read_bytes()
                for path in self.folder.rglob('*') if path.is_file()}

    def host(self, name='host', **more):
        path = self.folder / f'{name}.json'
        return hosts.as_json(hosts.build(name=name, **more), path)

    def apply(self, *words):
        return self.run_command(*words, '--root', self.root, '--apply')

    def test_without_apply_files_are_only_printed(self):
        path = self.host()
        before = self.tree()
        status, out, err = self.run_command(path, '--root', self.root)
        self.assertEqual(0, status)
        self.assertRegex(err, '^Warning: no-parts: host: .*\n$')
        self.assertIn(f'==> {NOVA} (new)\n', out)
        self.assertIn('cpu_dedicated_set = 1-15,17-31\n', out)
        self.assertEqual(before, self.tree())

    def test_nothing_is_written_if_nova_would_read_another_plan(self):
        path = self.host()

        def write_fewer(planned, plan):
            return [line.replace('1-15,17-31', '2-15,17-31')
                    for line in lines(planned, plan)]

        lines = nova_conf.compute
        for more in ((), ('--apply', '--root', self.root),
                     ('--write', self.folder / 'new')):
            with mock.patch.object(nova_conf, 'compute', write_fewer):
                self.fails(f'{NOVA}: gives cpu_dedicated_set = 2-15,17-31, '
                           'and the plan says 1-15,17-31; nothing is written',
                           path, *more)

    def test_nothing_is_written_if_the_host_would_boot_with_other_pages(self):
        path = self.host()
        self.apply(path)
        line = host_files.command_line

        def write_more(state):
            return line(state).replace('hugepages=0:', 'hugepages=0:1')

        with mock.patch.object(host_files, 'command_line', write_more):
            self.fails(f'{host_files.COMMAND_LINE}: gives cell 0 1[0-9]+ '
                       'pages of 2 MiB on Linux 5.16 and newer, and the plan '
                       'says [0-9]+; nothing is written',
                       path, '--apply', '--root', self.root)
            self.fails('group_vars/hpcvirt_host.yml: .*gives cell 0 1[0-9]+ '
                       'pages of 2 MiB', path, '--deployer', 'kolla',
                       '--write', self.folder / 'new')

    def test_the_second_apply_changes_nothing(self):
        path = self.host()
        self.assertIn('tuned-adm profile hpcvirt', self.apply(path)[1])
        before = self.tree()
        status, out, _ = self.apply(path)
        self.assertEqual(0, status)
        self.assertIn('nothing to change\n', out)
        self.assertEqual(before, self.tree())

    def test_a_copy_of_what_is_replaced_or_removed_is_kept(self):
        path = self.host()
        self.apply(path)
        before = (self.root / NOVA).read_text()
        status, out, _ = self.run_command(path, '--profile', 'dense',
                                          '--root', self.root)
        for line in ('-cpu_dedicated_set = 1-15,17-31',
                     '+cpu_dedicated_set = 0-31'):
            self.assertIn(line, out.splitlines())
        status, out, _ = self.apply(path, '--profile', 'dense')
        self.assertEqual(0, status)
        (kept,) = (self.root / 'var/lib/hpcvirt/backups').iterdir()
        self.assertIn(str(kept), out)
        self.assertEqual(before, (kept / NOVA).read_text())
        affinity = 'etc/systemd/system.conf.d/90-hpcvirt.conf'
        self.assertTrue((kept / affinity).exists())
        self.assertFalse((self.root / affinity).exists())

    def test_everything_that_was_written_is_removed_again(self):
        for path, text in SITE.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        path = self.host(vfs={0: 2})
        before = self.tree()
        self.assertEqual(0, self.apply(path, '--replace')[0])
        written = self.tree()
        remove = ('--remove', '--root', self.root)
        status, out, _ = self.run_command(*remove)
        self.assertEqual((0, written), (status, self.tree()))
        self.assertIn(f'==> {NOVA} (removed)', out)
        self.assertIn('Nothing was changed; use --apply', out)
        for line in ('update-grub', 'restart nova-compute', 'reboot',
                     'tuned-adm profile virtual-host'):
            self.assertIn(f'  {line}\n', out)
        status, out, _ = self.run_command(*remove, '--apply')
        self.assertEqual(0, status)
        backups = str(self.root / 'var/lib/hpcvirt/backups')
        left = {place: content for place, content in self.tree().items()
                if not place.startswith(backups)}
        # What --replace took from the files of the site is in the backups.
        self.assertEqual({*before}, {*left})
        self.assertIn('No file that hpcvirt wrote', self.run_command(
            *remove, '--apply')[1])

    def test_files_of_the_site_are_not_removed(self):
        self.apply(self.host())
        (self.root / NOVA).write_text('[DEFAULT]\n')
        self.run_command('--remove', '--root', self.root, '--apply')
        self.assertEqual('[DEFAULT]\n', (self.root / NOVA).read_text())
        self.fails('is not for --remove', self.host(), '--remove')

    def test_the_folder_of_a_tool_keeps_what_the_site_has_added(self):
        folder = self.folder / 'kolla'
        words = ('--deployer', 'kolla', '--write', folder)
        self.assertEqual(0, self.run_command(self.host(), *words)[0])
        own = min(folder.rglob('nova.conf'))
        own.write_text(own.read_text() + '[DEFAULT]\ndebug = true\n')
        (folder / 'globals.yml').write_text('a: b\n')
        status, _, _ = self.run_command('--remove', '--write', folder,
                                        '--apply')
        self.assertEqual(0, status)
        left = {place.relative_to(folder): place.read_text()
                for place in folder.rglob('*') if place.is_file()
                and 'hpcvirt-backups' not in place.parts}
        self.assertEqual({
            own.relative_to(folder): '[DEFAULT]\ndebug = true\n',
            (folder / 'globals.yml').relative_to(folder): 'a: b\n'}, left)

    def test_a_file_of_somebody_else_is_not_replaced(self):
        place = self.root / NOVA
        place.parent.mkdir(parents=True)
        place.write_text('[DEFAULT]\n')
        self.fails('90-hpcvirt.conf: was not written by hpcvirt',
                   self.host(), '--root', self.root, '--apply')

    def test_nothing_is_written_through_links(self):
        elsewhere = self.folder / 'elsewhere'
        elsewhere.mkdir()
        (self.root / 'etc').symlink_to(elsewhere)
        self.fails('leads out of', self.host(), '--root', self.root, '--apply')
        (self.root / 'etc').unlink()
        self.apply(self.host())
        (self.root / NOVA).rename(elsewhere / 'own')
        (self.root / NOVA).symlink_to(elsewhere / 'own')
        self.fails('is a symbolic link', self.host(), '--root', self.root,
                   '--profile', 'dense', '--apply')

    def test_a_folder_or_file_in_the_way_is_an_error(self):
        (self.root / NOVA).mkdir(parents=True)
        self.fails('is a directory', self.host(), '--root', self.root)
        (self.root / NOVA).rmdir()
        (self.root / 'etc/default').write_text('')
        self.fails('etc/default: is not a folder', self.host(), '--root',
                   self.root, '--apply')
        self.fails('is not a folder', self.host(), '--root',
                   self.folder / 'nowhere')

    def test_options_of_another_file_of_nova_are_named(self):
        conf = self.root / 'etc/nova/nova.conf'
        conf.parent.mkdir(parents=True)
        conf.write_text('[compute]\ncpu_dedicated_set = 2\n')
        _, _, err = self.run_command(self.host(), '--root', self.root)
        self.assertIn('Warning: etc/nova/nova.conf sets '
                      '[compute]cpu_dedicated_set too', err)

    def test_a_file_of_nova_that_cannot_be_read_may_set_the_same(self):
        # As nova.conf looks without root: there, and not to be read.
        (self.root / 'etc/nova/nova.conf').mkdir(parents=True)
        status, _, err = self.run_command(self.host(), '--root', self.root)
        self.assertEqual(0, status)
        self.assertIn('Warning: etc/nova/nova.conf cannot be read', err)

    def write_site(self):
        """Write settings of the site; return what they conflict in."""
        for path, text in SITE.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return ['etc/default/grub sets hugepages=200, which',
                'etc/default/grub sets isolcpus=2-7, which',
                'etc/systemd/system.conf.d/99-site.conf sets CPUAffinity=2-3,',
                'etc/sysctl.d/99-site.conf sets vm.swappiness=60, and']

    def test_settings_of_the_site_are_named_and_the_host_left_alone(self):
        wanted = self.write_site()
        before = self.tree()
        for words, status in (([], 0), (['--apply'], 2)):
            found, out, err = self.run_command(
                self.host(), '--root', self.root, *words)
            self.assertEqual(status, found)
            lines = [line for line in out.splitlines()
                     if line.startswith('Conflict: ')]
            self.assertEqual(4, len(lines), out)
            for line in wanted:
                self.assertIn(f'Conflict: {line} ', out)
        self.assertEqual(f'hpcvirt: {self.root}: has 4 settings that conflict,'
                         ' and is left alone; remove them, or give '
                         '--replace\n', err)
        before[str(self.folder / 'host.json')] = (
            self.folder / 'host.json').read_bytes()
        self.assertEqual(before, self.tree())

    def test_settings_of_the_site_are_replaced_as_told(self):
        self.write_site()
        status, out, _ = self.apply(self.host(), '--replace')
        self.assertEqual(0, status)
        self.assertIn('  update-grub\n', out)
        (kept,) = (self.root / 'var/lib/hpcvirt/backups').iterdir()
        for path, text in SITE.items():
            self.assertEqual(text, (kept / path).read_text())
        self.assertEqual('GRUB_CMDLINE_LINUX="quiet  "\n', (
            self.root / 'etc/default/grub').read_text())
        self.assertIn('nothing to change', self.apply(self.host())[1])

    def test_grubby_removes_what_the_site_or_a_former_plan_set(self):
        self.apply(self.host())
        for path, text in (('usr/sbin/grubby', ''), (
                'boot/loader/entries/a.conf', 'options ro isolcpus=2\n')):
            (self.root / path).parent.mkdir(parents=True)
            (self.root / path).write_text(text)
        path = self.root / 'etc/default/grub.d/90-hpcvirt.cfg'
        path.write_text(path.read_text().replace('nohz_full', 'a.b=1 c'))
        self.assertEqual(2, self.apply(self.host())[0])
        status, out, _ = self.apply(self.host(), '--replace')
        self.assertEqual(0, status)
        self.assertIn("  grubby --update-kernel=ALL '--remove-args=a.b c "
                      "isolcpus' '--args=default_hugepagesz=", out)
        self.assertNotIn('update-grub', out.partition('effective:')[2])

    def test_a_root_is_for_one_host(self):
        self.fails('--root: is for one host', self.host(), '--root',
                   self.root, '--deployer', 'kolla')

    def test_several_hosts_are_written_below_their_names(self):
        paths = [self.host('a'), self.host('b', cores=8)]
        target = self.folder / 'tree'
        self.assertEqual(0, self.run_command(*paths, '--write', target)[0])
        self.assertIn('1-15,17-31', (target / 'a' / NOVA).read_text())
        self.assertIn('1-7,9-15', (target / 'b' / NOVA).read_text())
        self.assertIn('nothing to change',
                      self.run_command(*paths, '--write', target)[1])

    def test_a_written_file_that_differs_needs_apply(self):
        target = self.folder / 'tree'
        words = (self.host(), '--write', target)
        self.run_command(*words)
        self.fails('is there and differs', *words, '--profile', 'dense')
        status, out, _ = self.run_command(*words, '--profile', 'dense',
                                          '--apply')
        self.assertEqual(0, status)
        self.assertIn('Copies of the former files', out)

    def test_apply_is_for_one_host(self):
        self.fails('--apply: changes one host', self.host('a'),
                   self.host('b'), '--apply')

    def test_names_that_are_no_folder_are_refused(self):
        for name in ('..', 'a/b', '-x', 'a b', 'é', 'a\n'):
            path = self.folder / 'x.json'
            self.fails('', hosts.as_json(hosts.build(name=name), path),
                       '--write', self.folder / 'tree')

    def test_files_are_readable_by_their_readers(self):
        self.apply(self.host())
        self.assertEqual(0o644, (self.root / NOVA).stat().st_mode & 0o777)

    def test_a_stranger_is_left_alone(self):
        self.is_host('deploy')
        self.fails('is the root of the host deploy, not of host', self.host(),
                   '--root', self.root, '--apply')
        self.is_host('host.example.org', '0-3')
        self.fails('has the CPUs 0-3, but host has 0-31', self.host(),
                   '--root', self.root, '--apply')
        self.is_host('host.example.org', '0-31')
        self.assertEqual(0, self.apply(self.host())[0])

    def test_a_host_that_no_flavor_fits_gets_no_configuration(self):
        paths = [self.host('a'), self.host('bare', mib=256)]
        for words in (('--write', self.folder / 'tree'), ()):
            self.fails('bare: gets no configuration', *paths, *words)

    def fleet(self, **more):
        path = self.folder / 'fleet.yaml'
        self.host('a')
        self.host('b', vfs={0: 8})
        self.host('c', gpus={0: 1, 1: 1})
        path.write_text(json.dumps({'schema_version': 1, 'classes': {
            'cpu': {'hosts': ['a.json'], 'profile': {'pack_cells': True}},
            'net': {'hosts': ['b.json'], 'name_prefix': 'net', 'profile': {
                'pack_cells': True, 'devices': [
                    {'vendor_id': '15b3', 'product_id': '101e'}]}},
            'gpu': {'hosts': ['c.json'], 'name_prefix': 'gpu', 'profile': {
                'pack_cells': True, 'devices': [
                    {'kind': 'whole', 'alias': 'gpu', 'vendor_id': '10de',
                     'product_id': '20b0'}], **more}}}}))
        return '--fleet', path

    def test_one_run_writes_all_classes_of_a_fleet(self):
        target = self.folder / 'kolla'
        self.assertEqual(0, self.run_command(
            *self.fleet(), '--deployer', 'kolla', '--write', target)[0])
        text = (target / 'config/nova/nova-scheduler.conf').read_text()
        for part in ('"name": "hpc-vf"', '"name": "gpu"',
                     'packing_host_numa_cells_allocation_strategy = true'):
            self.assertIn(part, text)
        inventory = (target / 'inventory/hpcvirt.yml').read_text()
        for name in ('a', 'b', 'c'):
            self.assertIn(f' {name}: {{}}', inventory)
            self.assertTrue(
                (target / f'config/nova/{name}/nova.conf').exists())

    def test_the_filter_of_the_site_outlives_every_run(self):
        target = self.folder / 'kolla'
        words = '--deployer', 'kolla', '--write', target, '--apply'
        place = target / 'config/nova/nova-scheduler.conf'
        filters = '[filter_scheduler]\nenabled_filters = A,B\n'
        for before in (False, True):
            if before:
                place.parent.mkdir(parents=True)
                place.write_text(filters)
            self.run_command(*self.fleet(), *words)
            if not before:
                place.write_text(place.read_text() + filters)
            for alias in ('h200', 'h100'):
                fleet = self.fleet(devices=[{
                    'kind': 'whole', 'alias': alias, 'vendor_id': '10de',
                    'product_id': '20b0'}])
                self.assertEqual(0, self.run_command(*fleet, *words)[0])
                text = place.read_text()
                self.assertIn(f'"name": "{alias}"', text)
                self.assertTrue(text.endswith(f'sections.\n{filters}'), text)
                self.assertIn('nothing to change',
                              self.run_command(*fleet, *words)[1])
            shutil.rmtree(target)

    def test_what_a_deployment_tool_may_take_instead_is_named(self):
        target = self.folder / 'kolla'
        words = (*self.fleet(), '--deployer', 'kolla', '--write', target)
        own = 'default_container_dimensions: {cpuset_cpus: "0-31"}\n'
        for path, text in (
                ('globals.yml', own),
                ('config/nova.conf', '[pci]\nalias = {"name": "x"}\n'),
                ('inventory/group_vars/compute/a.yml', own),
                ('inventory/host_vars/a', own),
                ('config/nova/a/nova.conf',
                 '[compute]\na=5\ncpu_dedicated_set=2\n')):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(text)
        self.fails('--replace: is for', *words, '--apply', '--replace')
        status, _, err = self.run_command(*words, '--apply')
        self.assertEqual((0, 5), (status, len(re.findall(
            '^Warning: .* too[; ]', err, re.MULTILINE))), err)
        for path, name in (
                ('globals.yml', 'default_container_dimensions'),
                ('inventory/group_vars/compute/a.yml',
                 'default_container_dimensions'),
                ('inventory/host_vars/a', 'default_container_dimensions'),
                ('config/nova/a/nova.conf', '[compute]cpu_dedicated_set'),
                ('config/nova.conf', '[pci]alias')):
            self.assertIn(f'Warning: {path} sets {name} too', err)
        self.assertEqual(own, (target / 'globals.yml').read_text())
        self.assertTrue((target / 'config/nova/a/nova.conf').read_text(
            ).endswith('\n[compute]\na=5\ncpu_dedicated_set=2\n'))
        self.assertIn('nothing to change', self.run_command(*words)[1])

    def test_node_sets_in_the_folder_are_read(self):
        target = self.folder / 'edpm'
        target.mkdir()
        (target / 'site.yaml').write_text(
            'kind: OpenStackDataPlaneNodeSet\nspec:\n  nodeTemplate:\n'
            '    ansible:\n      ansibleVars:\n'
            '        edpm_kernel_args: console=ttyS0 isolcpus=2-9\n'
            '---\nkind: ConfigMap\ndata:\n  25-nova-extra.conf: |\n'
            '    [compute]\n    cpu_dedicated_set = 2-9\n')
        words = (self.host(), '--deployer', 'edpm', '--write', target)
        status, _, err = self.run_command(*words)
        self.assertEqual(0, status)
        for found in ('edpm_kernel_args too (console=ttyS0 isolcpus=2-9)',
                      '[compute]cpu_dedicated_set too'):
            self.assertRegex(err, f'Warning: site.yaml.* sets '
                             f'{re.escape(found)}')
        self.assertIn('nothing to change', self.run_command(*words)[1])

    def test_another_run_does_not_drop_the_hosts_of_the_first(self):
        target = self.folder / 'kolla'
        words = '--deployer', 'kolla', '--write', target, '--apply'
        self.run_command(*self.fleet(), *words)
        self.fails('inventory/hpcvirt.yml: has hosts that this run does not '
                   'write: b, c;', self.folder / 'a.json', *words)

    def test_a_single_host_needs_options_on_controllers(self):
        for more, said in (({}, False), ({'vfs': {0: 8, 1: 8}}, True)):
            profile = self.folder / 'profile.json'
            profile.write_text(json.dumps({'devices': [
                {'vendor_id': '15b3', 'product_id': '101e'}]} if more else {}))
            words = self.host(**more), '--profile', profile
            status, _, err = self.run_command(*words, '--root', self.root)
            self.assertEqual((0, said), (
                status, 'Warning: nova-api, nova-scheduler and' in err), err)
            target = self.folder / f'written-{said}'
            self.run_command(*words, '--write', target)
            self.assertEqual(said, (target / 'controllers').exists())

    def test_traits_that_no_file_gives_are_said(self):
        for trait, said in (('CUSTOM_HPCVIRT_AUDITED', True),
                            ('CUSTOM_HPC', False)):
            path = self.folder / 'fleet.json'
            self.host('a')
            path.write_text(json.dumps({'schema_version': 1, 'classes': {
                'cpu': {'hosts': ['a.json'], 'traits': [trait]}}}))
            status, _, err = self.run_command('--fleet', path)
            self.assertEqual((0, said), (
                status, f'Warning: flavors require {trait}, which these '
                'files do not give to hosts' in err), err)

    def test_classes_that_nova_cannot_have_together_are_refused(self):
        self.fails('class gpu: has pack_cells: false, unlike class cpu',
                   *self.fleet(pack_cells=False))
