# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.deployment import host_files
from hpcvirt.deployment import site_settings
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts

GRUB = 'etc/default/grub'
ENTRY = 'boot/loader/entries/a.conf'


def make_state(profile=profiles.DEFAULT):
    plan = planner.plan([hosts.build()], profile)
    return kernel_settings.make_state(plan.hosts[0])


def find(present, grubby=False, **more):
    return list(site_settings.find_conflicts(
        make_state(**more), present, grubby))


class FindConflictsTest(unittest.TestCase):
    """The planned host keeps the CPUs 0 and 16."""

    def assert_found(self, expected, path, text, after='', **more):
        found = find({path: text}, **more)
        self.assertEqual(expected, [item.found for item in found])
        for item in found:
            self.assertEqual(after, item.replaced and item.replaced.text)

    def test_parameters_of_the_kernel_are_found_one_by_one(self):
        self.assert_found(
            ['hugepages=200', 'hugepagesz=1G', 'isolcpus=managed_irq,2-7',
             'nohz_full=2-7', 'transparent_hugepage=never'], GRUB,
            '# hugepages=1\nGRUB_CMDLINE_LINUX_DEFAULT="quiet hugepages=200 '
            'hugepagesz=1G"\nGRUB_CMDLINE_LINUX="isolcpus=managed_irq,2-7 '
            'nohz_full=2-7 transparent_hugepage=never tuned.non_isolcpus=1"\n',
            '# \nGRUB_CMDLINE_LINUX_DEFAULT="quiet  "\nGRUB_CMDLINE_LINUX="  '
            ' tuned.non_isolcpus=1"\n')

    def test_parameters_of_the_plan_itself_do_not_conflict(self):
        wanted = [word for word in host_files.command_line(
            make_state()).split() if not word.startswith(('huge', 'default'))]
        self.assertEqual(4, len(wanted))
        self.assert_found([], GRUB, f'A="{" ".join(wanted)}"')
        self.assert_found(['nohz_full=1-15,17-31', 'rcu_nocbs=1-15,17-31',
                           'irqaffinity=0,16'], GRUB,
                          f"x='{' '.join(wanted[:3])}'", "x='  '",
                          profile=profiles.BUILT_IN['dense'])

    def test_pages_conflict_even_if_they_are_those_of_the_plan(self):
        # The kernel ignores the pages after a second hugepagesz.
        words = host_files.command_line(make_state()).split()
        self.assertEqual(3, len(find({GRUB: ' '.join(words)})))

    def test_files_of_sysctl_that_sort_later_are_found(self):
        for path in ('etc/sysctl.d/99-site.conf', 'etc/sysctl.conf'):
            self.assert_found(
                ['vm.swappiness = 60', '-kernel/numa_balancing=1'], path,
                '#vm.swappiness=5\nvm.swappiness = 60\nvm.dirty_ratio=1\n'
                '-kernel/numa_balancing=1\n',
                '#vm.swappiness=5\n# hpcvirt: vm.swappiness = 60\n'
                'vm.dirty_ratio=1\n# hpcvirt: -kernel/numa_balancing=1\n')
        text = 'vm.swappiness = 60\n'
        for path in ('etc/sysctl.d/10-site.conf', 'etc/sysctl.d/99-site',
                     'etc/sysctl.d/99-sysctl.conf'):
            self.assert_found([], path, text)
        self.assert_found([], 'etc/sysctl.conf', 'vm.swappiness=1\n')

    def test_lists_of_cpus_of_systemd_are_found(self):
        for path, option in (
                ('etc/systemd/system.conf', 'CPUAffinity'),
                ('etc/systemd/system.conf.d/10-a.conf', 'CPUAffinity'),
                ('etc/systemd/system/system.slice.d/a.conf', 'AllowedCPUs')):
            for value in ('2-3', '0,16 2', ''):
                self.assert_found([f'{option}={value}'], path,
                                  f'[Manager]\n{option}={value}\nA=1\n',
                                  f'[Manager]\n# hpcvirt: {option}={value}\n'
                                  'A=1\n')
            self.assert_found([], path, f'#{option}=1\n{option}=0,16\n')

    def test_nested_paging_is_not_switched_off_later(self):
        text = 'options kvm_intel nested=1 ept=0\n'
        self.assert_found([text.strip()], 'etc/modprobe.d/kvm.conf', text,
                          f'# hpcvirt: {text}')
        self.assert_found([], 'etc/modprobe.d/a.conf', text)

    def test_what_tuned_and_grubby_set_is_left_to_them(self):
        self.assert_found(['isolcpus=2'], 'etc/tuned/bootcmdline',
                          'TUNED_BOOT_CMDLINE="isolcpus=2"\n', None)
        for path in (ENTRY, GRUB, 'etc/kernel/cmdline'):
            self.assert_found(['hugepages=9'], path,
                              'options ro hugepages=9\n', None, grubby=True)
        self.assert_found([], ENTRY, 'options hugepages=9\n')

    def test_entries_of_grubby_have_what_hpcvirt_gave_it(self):
        state = make_state()
        words = host_files.command_line(state)
        former = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=9"\n'
        self.assertEqual([], find({
            ENTRY: f'options {words} isolcpus=9\n', GRUB: f'A="{words}"\n',
            host_files.COMMAND_LINE: f'# Written by "hpcvirt host config".\n\n'
            f'{former}'}, grubby=True))


class GrubbyTest(unittest.TestCase):
    def test_names_are_removed_once_before_parameters_are_added(self):
        self.assertEqual(
            ('grubby', '--update-kernel=ALL',
             '--remove-args=hugepages isolcpus', '--args=a=1 b=2'),
            site_settings.write_grubby('a=1 b=2', [
                'hugepages=1', 'isolcpus=2', 'hugepages=2']))
        self.assertEqual(('grubby', '--update-kernel=ALL', '--args=a=1'),
                         site_settings.write_grubby('a=1', []))
