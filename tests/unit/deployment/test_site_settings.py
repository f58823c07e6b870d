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


#: The settings of Debian 12 and 13, Ubuntu 22.04 and 24.04 and RHEL 9, as
#: installed, as images for clouds and with packages for hypervisors.
STOCK = {
    GRUB: 'GRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\n'
          'GRUB_CMDLINE_LINUX="crashkernel=1G-4G:192M,4G-64G:256M,64G-:512M '
          'resume=/dev/mapper/rhel-swap rd.lvm.lv=rhel/root rhgb quiet"\n'
          '#GRUB_BADRAM="0x01234567,0xfefefefe"\n',
    'etc/default/grub.d/10_cloud.cfg':
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX console=tty0 '
        'console=ttyS0,115200 earlyprintk=ttyS0,115200 consoleblank=0"\n',
    'etc/default/grub.d/50-cloudimg-settings.cfg':
        'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0 '
        'nvme_core.io_timeout=4294967295"\n',
    'etc/default/grub.d/kdump-tools.cfg':
        'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT '
        'crashkernel=384M-:128M"\n',
    ENTRY: 'options root=UUID=1 ro net.ifnames=0 no_timer_check '
           'crashkernel=auto $tuned_params $kernelopts\n',
    'etc/kernel/cmdline': 'root=UUID=1 ro console=ttyS0,115200n8\n',
    'etc/tuned/bootcmdline': 'TUNED_BOOT_CMDLINE=\nTUNED_BOOT_INITRD_ADD=\n',
    'etc/tuned/tuned-main.conf': 'daemon = 1\nreapply_sysctl = 1\n',
    'etc/modprobe.d/kvm.conf': '#options kvm_intel nested=1\n',
    'etc/modprobe.d/qemu-system-x86.conf': 'options kvm_intel nested=1\n',
    'etc/sysctl.conf': '#net.ipv4.ip_forward=1\nnet.ipv4.ip_forward=1\n',
    'etc/sysctl.d/99-sysctl.conf': 'vm.swappiness=60\n',
    'etc/sysctl.d/99-cloudimg-ipv6.conf':
        'net.ipv6.conf.all.use_tempaddr = 0\n',
    'etc/sysctl.d/10-zeropage.conf': 'vm.mmap_min_addr = 65536\n',
    'usr/lib/sysctl.d/99-protect-links.conf': 'fs.protected_fifos = 1\n',
    'usr/lib/sysctl.d/60-libvirtd.conf': 'fs.aio-max-nr = 1048576\n',
    'etc/systemd/system.conf': '[Manager]\n#CPUAffinity=\n#NUMAPolicy=\n',
}


def make_state(profile=profiles.DEFAULT):
    plan = planner.plan([hosts.build()], profile)
    return kernel_settings.make_state(plan.hosts[0])


def find(site, former=None, **more):
    return site_settings.find_conflicts(make_state(**more), site, former)


class FindConflictsTest(unittest.TestCase):
    """The planned host keeps the CPUs 0 and 16."""

    def assert_found(self, expected, path, text, after='', **more):
        found = find({path: text}, **more)
        self.assertEqual(expected, [item.found for item in found])
        self.assertEqual([after] if expected and after is not None else [], [
            step.file.text
            for step in site_settings.remove(found, {path: text})])

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
            for value in ('0,16', '0 16', ' 0, 16 '):
                self.assert_found([], path, f'{option}={value}\n')
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
        for text in ('options kvm-intel ept=0\n',
                     'options kvm_intel \\\nept=0\n'):
            self.assert_found([text.replace('\\\n', '').strip()],
                              'usr/lib/modprobe.d/kvm.conf', text,
                              f'# hpcvirt: {text}')

    def test_pages_that_the_site_reserves_otherwise_are_found(self):
        for path in ('etc/sysctl.conf', 'etc/sysctl.d/10-a.conf',
                     'usr/lib/sysctl.d/10-a.conf'):
            self.assert_found(
                ['vm.nr_hugepages = 512', 'vm/nr_hugepages_mempolicy=1'], path,
                'vm.nr_hugepages = 512\nvm.nr_overcommit_hugepages=1\n'
                'vm/nr_hugepages_mempolicy=1\n',
                '# hpcvirt: vm.nr_hugepages = 512\n'
                'vm.nr_overcommit_hugepages=1\n'
                '# hpcvirt: vm/nr_hugepages_mempolicy=1\n')
        plain = profiles.build({'page_size': '4K'}, 'plain')
        self.assert_found([], 'etc/sysctl.conf', 'vm.nr_hugepages=0\n',
                          profile=plain)
        pages = 'hugepages/hugepages-2048kB/nr_hugepages'
        lines = (f'w /sys/devices/system/node/node0/{pages} - - - - 9',
                 'w+! /sys/kernel/mm/ksm/run - - - - 1',
                 f'f /sys/kernel/mm/{pages} - - - - 1')
        self.assert_found(list(lines), 'etc/tmpfiles.d/a.conf',
                          '\n'.join((*lines, 'd /run/a',
                                     'w /sys/kernel/mm/ksm/run - - - - 2')),
                          '\n'.join((*(f'# hpcvirt: {line}' for line in lines),
                                     'd /run/a',
                                     'w /sys/kernel/mm/ksm/run - - - - 2')))

    def test_one_file_may_conflict_in_several_ways(self):
        site = {'etc/sysctl.conf': 'vm.swappiness=60\nvm.nr_hugepages=1\n'}
        found = find(site)
        self.assertEqual(2, len(found))
        (step,) = site_settings.remove(found, site)
        self.assertEqual('# hpcvirt: vm.swappiness=60\n'
                         '# hpcvirt: vm.nr_hugepages=1\n', step.file.text)
        self.assertEqual(('sysctl --system', 'reboot'), step.file.activate)

    def test_tuned_that_would_take_the_sysctls_back_is_found(self):
        path = 'etc/tuned/tuned-main.conf'
        self.assert_found(['reapply_sysctl = 0'], path, 'reapply_sysctl = 0\n',
                          '# hpcvirt: reapply_sysctl = 0\n')
        self.assert_found([], path, '#reapply_sysctl = 0\n'
                          'reapply_sysctl = 1\n')

    def test_what_distributions_ship_does_not_conflict(self):
        for former in (None, ()):
            for profile in profiles.BUILT_IN.values():
                self.assertEqual([], find(STOCK, former, profile=profile))

    def test_what_tuned_and_grubby_set_is_left_to_them(self):
        self.assert_found(['isolcpus=2'], 'etc/tuned/bootcmdline',
                          'TUNED_BOOT_CMDLINE="isolcpus=2"\n', None)
        for path in (ENTRY, GRUB, 'etc/kernel/cmdline'):
            self.assert_found(['hugepages=9'], path,
                              'options ro hugepages=9\n', None, former=())
        self.assert_found([], ENTRY, 'options hugepages=9\n')

    def test_entries_of_grubby_have_what_hpcvirt_gave_it(self):
        words = host_files.command_line(make_state())
        self.assertEqual(['isolcpus=9'], site_settings.former_parameters(
            '# Written by "hpcvirt host config".\n\n'
            'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=9"\n'))
        self.assertEqual([], find({
            ENTRY: f'options {words} isolcpus=9\n', GRUB: f'A="{words}"\n'},
            former=['isolcpus=9']))


class GrubbyTest(unittest.TestCase):
    def test_names_are_removed_once_before_parameters_are_added(self):
        self.assertEqual(
            "grubby --update-kernel=ALL '--remove-args=hugepages isolcpus' "
            "'--args=a=1 b=2'", site_settings.write_grubby('a=1 b=2', [
                'hugepages=1', 'b=2', 'isolcpus=2', 'hugepages=2']))
        self.assertEqual('grubby --update-kernel=ALL --args=a=1',
                         site_settings.write_grubby('a=1', []))
