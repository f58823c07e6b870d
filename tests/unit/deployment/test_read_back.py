# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import re
import unittest

from hpcvirt import exception
from hpcvirt.deployment import formats
from hpcvirt.deployment import read_back
from hpcvirt.deployment import written_files
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import planned_sets
from tests.builders import random_fleets
from tests.builders import wired


def a_fleet():
    """Plan a class with sets, one with VFs, and an isolated one."""
    planned = {
        's': planner.plan([wired.tree(name='sets')], dataclasses.replace(
            profiles.DENSE, devices=(planned_sets.GPUS,))),
        'v': planner.plan(
            [hosts.build(name=name, vfs={0: 8}) for name in ('v1', 'v2')],
            profiles.Profile(devices=(hosts.VFS,), name_prefix='v')),
        'p': planner.plan([hosts.build(name='plain')], profiles.Profile(
            name_prefix='p',
            extra_specs=(('trait:CUSTOM_P', 'required'),))),
        'o': planner.plan([hosts.build(name='other')], profiles.Profile(
            name_prefix='o'))}
    planned = {name: dataclasses.replace(plan, hosts=tuple(
        dataclasses.replace(host, fleet_class=name) for host in plan.hosts))
        for name, plan in planned.items()}
    return fleet_plan.merge_plans(fleet_plan.set_traits(
        fleet_plan.share_aliases(planned),
        {'s': frozenset(), 'v': frozenset(), 'p': frozenset({'CUSTOM_P'}),
         'o': frozenset()},
        {'p'}))


def a_host():
    """Plan a host with CPUs, pages and a trait of its own, and with VFs."""
    return planner.plan(
        [hosts.build(name='host', cores=8, threads=2, mib=(16384, 8192),
                     vfs={0: 8})],
        dataclasses.replace(
            profiles.DEFAULT, devices=(hosts.VFS,), moderate_interrupts=False,
            ring_entries=128, host_pages_per_cell=((2048, 64),),
            extra_specs=(('trait:CUSTOM_Q', 'required'),)))


ALL = tuple(formats.FORMATS)
#: Deployers that write files of the host itself.
HOST = ('files', 'kolla', 'kayobe', 'ansible')
NODE1 = '/sys/devices/system/node/node1'
#: Faults of the files of one host: the deployers that write it, what is
#: written, what the fault makes of it, and what is said of it.
FAULTS = (
    # The command line of the kernel.
    (ALL, 'hugepages=0:6720', 'hugepages=0:6721',
     'gives cell 0 6721 pages of 2 MiB .*newer, and the plan says 6720;'),
    (ALL, 'hugepages=0:6720,1:3392', 'hugepages=0:3392,1:6720',
     'gives cell 0 3392 pages of 2 MiB'),
    (ALL, 'hugepages=0:6720,1:3392', 'hugepages=0:6720',
     'gives cell 1 0 pages of 2 MiB on Linux 5.16'),
    (ALL, 'hugepages=0:6720,1:3392', 'hugepages=0:6720,2:3392',
     "and the kernel refuses '2:3392' on this host"),
    (ALL, 'hugepages=0:6720,1:3392', 'hugepages=10112',
     'gives cell 0 5056 pages of 2 MiB, and the plan says 6720'),
    (ALL, 'hugepages=0:6720,', 'hugepages=5 hugepages=0:6720,',
     'after another number of pages of 2 MiB, which the kernel ignores'),
    (ALL, ' hugepagesz=2M', ' hugepagesz=2', 'no size of pages'),
    (ALL, ' hugepagesz=2M', ' hugepagesz=1G',
     'gives cell 0 0 pages of 2 MiB on Linux 5.16 and newer'),
    (ALL, ' intel_iommu=on', '', 'gives the kernel no intel_iommu, and'),
    (ALL, ' intel_iommu', ' isolcpus=1-3 intel_iommu',
     'gives the kernel isolcpus=1-3, and the plan says none'),
    (ALL, ' intel_iommu', ' -- intel_iommu', 'no intel_iommu'),
    (ALL, ' irqaffinity=0,8,16,24', ' irqaffinity=0,8,16,25',
     'sets irqaffinity to 0,8,16,25, and those of the host itself'),
    (ALL, ' irqaffinity=0,8,16,24', '', 'does not set irqaffinity, and'),
    (HOST, ' nohz_full=1-7', ' nohz_full=0-7',
     'sets nohz_full to 0-7,9-15,17-23,25-31, and those of guests'),
    (HOST, 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ', 'GRUB_CMDLINE_LINUX="',
     'has .GRUB_CMDLINE_LINUX=".*, which is not understood'),
    (HOST[1:], 'hpcvirt_host_kernel_parameters: ', 'other: ',
     'does not set hpcvirt_host_kernel_parameters'),
    # The unit that reserves pages on older kernels.
    (HOST, f'3392 > {NODE1}', f'3393 > {NODE1}',
     'pages.service: gives cell 1 3393 pages of 2 MiB on Linux before 5.16'),
    (HOST, f'3392 > {NODE1}', '3392 > /sys/devices/system/node/node0',
     'gives cell 0 3392 pages of 2 MiB on Linux before 5.16'),
    (HOST, f'3392 > {NODE1}', '3392 > /sys/devices/system/node/node5',
     'which reserves no pages on this host'),
    (HOST, f'0 > {NODE1}/hugepages/hugepages-1048576kB',
     f'0 > {NODE1}/hugepages/hugepages-1048575kB', 'has no such pages'),
    (HOST, 'Wants=hpcvirt-pages', 'Wants=hpcvirt-page',
     'gives cell 0 0 pages of 2 MiB on Linux before 5.16'),
    (HOST, 'CommandLine=hugepages=0:6720', 'CommandLine=hugepages=0:672',
     'gives cell 0 0 pages of 2 MiB on Linux before 5.16'),
    (HOST, 'ConditionKernelCommandLine', 'ConditionOther',
     'has ConditionOther=hugepages=0:6720,.*, which is not understood'),
    (HOST, 'ConditionKernelCommandLine=', '# ',
     'also on a host that was not booted for these pages'),
    (HOST, 'KernelVersion=<5.16', 'KernelVersion=<5.6',
     'gives cell 0 0 pages of 2 MiB on Linux before 5.16'),
    # The CPUs of services and interrupts.
    (HOST, 'CPUAffinity=0,8,16,24', 'CPUAffinity=0,8',
     'sets CPUAffinity to 0,8, and those of the host itself'),
    (HOST, 'AllowedCPUs=0,8,16,24', '', 'does not set AllowedCPUs, and'),
    (HOST, '[Scope]', '[Slice]', 'init.scope.d.*: does not set AllowedCPUs'),
    (HOST, 'CPULIST=1-7', 'CPULIST=2-7',
     'sets IRQBALANCE_BANNED_CPULIST to 2-7,9-15,17-23,25-31, and those of'),
    (('kolla', 'kayobe'), "cpus'': ''0,8", "cpus'': ''0,9",
     'default_container_dimensions.cpuset_cpus to 0,9,16,24'),
    (('edpm',), 'isolated_cores: 1-7', 'isolated_cores: 2-7',
     'to 2-7,9-15,17-23,25-31, and those of guests'),
    (('edpm',), 'edpm_tuned_profile: cpu-partitioning',
     'edpm_tuned_profile: hpcvirt', 'does not set edpm_tuned_isolated_cores'),
    # Virtual functions.
    (HOST, 'sriov_numvfs}="8"', 'sriov_numvfs}="9"',
     'creates 9 virtual functions of 0000:41:00.0, which has at most 8'),
    (HOST, 'sriov_numvfs}="8"', 'sriov_numvfs}="7"',
     'creates 7 virtual functions of 0000:41:00.0, and the plan says 8'),
    (HOST, 'sriov_numvfs}="8"', 'sriov_numvfs}=="8"',
     'has .* ATTR{sriov_numvfs}=="8".*, which is not understood'),
    (HOST, 'sriov_numvfs}="8"', 'sriov_numvfs}=8', 'a rule that udev refuses'),
    (HOST, '"add|bind"', '"add"', 'only if its driver is bound at the right'),
    (HOST, "' sh 8", "' sh 6", 'but sets GUIDs of 6'),
    (HOST, 'KERNEL=="0000:41', 'KERNEL=="0000:42',
     'has a rule for 0000:42:00.0, which the host lacks'),
    (('edpm',), '0000:41:00.0 8.', '0000:41:00.0 16.',
     'creates 16 virtual functions of 0000:41:00.0, which has at most 8'),
    # Network devices.
    (HOST, 'rx 128', 'rx 256',
     'gives network devices -G rx=256, and the plan says 128'),
    (HOST, 'adaptive-rx off', 'adaptive-rx on',
     'gives network devices -C adaptive-rx=on, and the plan says off'),
    (HOST, '; ethtool -G $$INTERFACE rx 128 tx 128', '',
     'gives network devices no -G rx, and the plan says 128'),
    (HOST, '-G $$INTERFACE', '-G $name', 'runs .*, which is not understood'),
    (HOST, '"net", SUBSYSTEMS', '"nat", SUBSYSTEMS',
     'gives network devices no -C adaptive-rx'),
    (('edpm',), 'tx 128', 'tx 12', 'gives network devices -G tx=12, and the'),
    # Sysctls, modules and KSM.
    (('files', 'kolla', 'ansible'), 'vm.swappiness = 1', 'vm.swappiness = 10',
     'gives the kernel vm.swappiness=10, and the plan says 1'),
    (('files', 'kolla', 'ansible'), 'vm.swappiness = 1',
     'vm.nr_hugepages = 1', 'gives the kernel no vm.swappiness'),
    (('kayobe',), "vm.swappiness'': ''1", "vm.swappiness'': ''10",
     'gives the kernel vm.swappiness=10, and the plan says 1'),
    (('edpm',), 'value: 1', 'value: 10', 'gives the kernel vm.swappiness=10'),
    (HOST, 'kvm_intel ept=1', 'kvm_intel ept=0', 'modules kvm_intel.ept=0'),
    (HOST, 'ksm/run - - - - 2', 'ksm/run - - - - 1',
     'gives the kernel /sys/kernel/mm/ksm/run=1, and the plan says 2'),
    (HOST, 'force_latency=70', 'force_latency=700',
     'gives TuneD cpu.force_latency=700, and the plan says 70'),
    (HOST, 'include=virtual-host', '', 'gives TuneD no main.include'),
    (('edpm',), 'enable_ksm: false', 'enable_ksm: true', 'ksm/run=1'),
    # Nova and Placement.
    (ALL, 'reserved_huge_pages = node:1,size:2048,count:64', '',
     'does not give reserved_huge_pages as planned'),
    (ALL, 'node:1,size:2048,count:64', 'node:1,size:2048,count:65',
     'gives reserved_huge_pages = .*65.*, and the plan says .*64'),
    (ALL, 'node:1,size:2048,count:64', 'node:1,size:2048',
     'gives reserved_huge_pages = node:1,size:2048, which Nova refuses'),
    (ALL, 'reserved_host_memory_mb = 3619', 'reserved_host_memory_mb = 3610',
     'gives reserved_host_memory_mb = 3610, and the plan says 3619'),
    (ALL, '[compute]', 'initial_ram_allocation_ratio = 2\n[compute]',
     'gives ram_allocation_ratio = 2.0, and the plan says 1.0'),
    (ALL, '[compute]', 'cpu_allocation_ratio = 1\n[compute]',
     'gives cpu_allocation_ratio = 1.0, and the plan says 4.0'),
    (ALL, 'cpu_shared_set = 0,8,16,24', 'cpu_shared_set = 0,8,16',
     'gives cpu_shared_set = 0,8,16, and the plan says 0,8,16,24'),
    (ALL, 'device_spec = ', '# ', 'does not give device_spec as planned'),
    (ALL, 'device_spec = {', 'device_spec = [', 'which is no JSON object'),
    (ALL, '"type-VF"', '"type-PF"', 'does not give alias = '),
    (ALL, "schema_version: '1.0'", "schema_version: '1.1'",
     'has the schema_version 1.1, and the plan says 1.0'),
    (ALL, '- CUSTOM_Q', '- CUSTOM_Q\n{}- CUSTOM_R',
     'gives host the trait CUSTOM_R, which none of its flavors requires'),
    (ALL, '$COMPUTE_NODE', '$COMPUTE',
     'does not give host the trait CUSTOM_Q'),
)


#: Lines about pages, CPUs, devices, traits and the memory of the host.
COUNTED = re.compile(
    r'hugepages=|echo [1-9]|^ *(CPUAffinity=[0-9]|AllowedCPUs)|CPULIST|'
    'sriov_numvfs}=|(cpu_(dedicated|shared)_set|device_spec|alias) = |'
    'reserved_|isolated_cores|cpuset_cpus|- CUSTOM_|vm.swap|numa_balancing|'
    'ept=|npt=|ksm/run -|force_latency')


class ReadBackTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = a_fleet()
        cls.written = {name: write(cls.plan) for name, write
                       in formats.FORMATS.items()}

    def write(self, deployer, was='', becomes='', where=''):
        """Write the files with a fault in those whose path has a part."""
        return [dataclasses.replace(file, text=file.text.replace(
            was, becomes)) if was and where in file.path else file
            for file in self.written[deployer]]

    def test_what_is_written_is_what_is_planned(self):
        for deployer in formats.FORMATS:
            files = self.write(deployer)
            read_back.check(deployer, files, self.plan)
            found = written_files.sort_files(deployer, files, self.plan)
            self.assertEqual({'sets', 'v1', 'v2', 'plain', 'other'},
                             set(found.hosts))

    def test_a_difference_is_found_in_the_files_of_every_deployer(self):
        self.check_differences(3)

    def test_periodic_every_difference_is_found(self):
        self.check_differences(1)

    def check_differences(self, step):
        """Check every step-th of the differences of each deployer."""
        for number, deployer in enumerate(formats.FORMATS):
            for was, becomes, said in (
                    ('report_in_placement = true', '',
                     'gives report_in_placement = False, and the plan says'),
                    ('enable_isolated_aggregate_filtering = true', '',
                     'gives enable_isolated_aggregate_filtering = False, and'),
                    ('CUSTOM_P', 'CUSTOM_Q',
                     'does not give plain the trait CUSTOM_P, which'),
                    ('cpu_dedicated_set = 0-31', 'cpu_dedicated_set = 2-31',
                     'and the plan says'),
                    ('"name": "hpc-vf"', '"name": "other"',
                     'does not give alias = ."name": "hpc-vf"'),
                    ('pci_in_placement = true', '',
                     'gives pci_in_placement = False, and the plan says'),
                    ('disable_fallback_pcpu_query = true', '',
                     'gives disable_fallback_pcpu_query = False, and'),
                    ('device_spec = {"address": "0000:41:00.0"',
                     'device_spec = {"address": "0000:41:00.7"',
                     "gives device_spec = {'address': '0000:41:00.7'"))[
                         number % step::step]:
                with self.subTest(deployer, fault=was):
                    files = self.write(deployer, was, becomes)
                    is_changed = files != self.write(deployer)
                    self.assertTrue(is_changed)
                    with self.assertRaisesRegex(exception.InvalidInput, said):
                        read_back.check(deployer, files, self.plan)

    def test_services_that_disagree_are_refused(self):
        files = self.write('kolla', 'pci_in_placement = true', '',
                           'nova-conductor')
        with self.assertRaisesRegex(
                exception.InvalidInput, 'nova-scheduler, '
                'nova-super-conductor: would ask Placement for PCI devices, '
                'and nova-conductor would not'):
            read_back.check('kolla', files, self.plan)

    def test_options_that_nova_refuses_are_one_line(self):
        for becomes in ('reserved_host_memory_mb = many',
                        'reserved_host_memory_mb'):
            files = self.write('files', 'reserved_host_memory_mb = ',
                               f'{becomes}\n# ')
            with self.assertRaisesRegex(
                    exception.InvalidInput, '90-hpcvirt.conf: would get '
                    'options that Nova refuses: [^\n]*$'):
                read_back.check('files', files, self.plan)

    def test_every_kind_of_setting_is_read_from_the_files(self):
        """Each is read from the files of one deployer, by turns."""
        self.check_faults(lambda number, deployers: deployers[
            number % len(deployers)::len(deployers)])

    def test_periodic_it_is_read_from_the_files_of_every_deployer(self):
        self.check_faults(lambda _, deployers: deployers)

    def check_faults(self, choose):
        """Check each fault in the files of the deployers that are chosen."""
        plan = a_host()
        written = {name: write(plan) for name, write
                   in formats.FORMATS.items()}
        for number, (deployers, was, becomes, said) in enumerate(FAULTS):
            for deployer in choose(number, deployers):
                with self.subTest(deployer, fault=becomes):
                    self.check_fault(plan, deployer, written[deployer],
                                     (was, becomes), said)

    def check_fault(self, plan, deployer, files, fault, said):
        """Check that a fault is refused in a line that names the file."""
        was, becomes = fault
        found = []
        for file in files:
            # A line in YAML is as far to the right as the one before it.
            indent = re.search(f'(?m)^( *){re.escape(was)}', file.text)
            text = file.text.replace(was, becomes.replace(
                '{}', indent[1] if indent else '').replace(
                    '\n[', f'\n{indent[1] if indent else ""}['))
            found.append(dataclasses.replace(file, text=text))
        self.assertNotEqual(tuple(files), tuple(found))
        with self.assertRaisesRegex(exception.InvalidInput, said) as caught:
            read_back.check(deployer, found, plan)
        self.assertNotIn('\n', str(caught.exception))
        where = caught.exception.where
        self.assertTrue([file.path for file in files
                         if where.startswith(file.path)], where)

    def test_guests_with_all_cpus_leave_no_lists_of_cpus(self):
        for deployer, line in (
                ('files', 'nohz_full=1-3 transparent_hugepage'),
                ('edpm', 'irqaffinity=0 transparent_hugepage')):
            files = self.write(deployer, 'transparent_hugepage', line)
            with self.assertRaisesRegex(
                    exception.InvalidInput, 'sets [a-z_]+ to [0-9-]+, and the '
                    'plan says that services run everywhere'):
                read_back.check(deployer, files, self.plan)

    def test_placement_must_return_the_candidates_of_the_plan(self):
        for deployer in formats.FORMATS:
            for was, becomes, said in (
                    ('max_allocation_candidates = 1000',
                     'max_allocation_candidates = 100',
                     'placement.conf: gives max_allocation_candidates = 100'),
                    ('strategy = breadth-first', 'strategy = depth-first',
                     'placement.conf: gives .*strategy = depth-first, and'),
                    ('max_placement_results = 1000', '',
                     None),
                    ('max_placement_results = 1000',
                     'max_placement_results = 10',
                     'gives max_placement_results = 10, and')):
                with self.subTest(deployer, fault=becomes):
                    files = self.write(deployer, was, becomes)
                    if said is None:
                        # It is the default of Nova.
                        read_back.check(deployer, files, self.plan)
                        continue
                    with self.assertRaisesRegex(exception.InvalidInput, said):
                        read_back.check(deployer, files, self.plan)

    def check_fleets(self, seeds):
        """Check what is written for random fleets; count their hosts."""
        count = 0
        for seed in seeds:
            plan = random_fleets.plan(random_fleets.make_document(
                random.Random(seed)))
            for deployer, write in formats.FORMATS.items():
                with self.subTest(deployer, seed=seed):
                    read_back.check(deployer, write(plan), plan)
                    count += len(plan.hosts)
        return count

    def test_what_is_written_for_random_fleets_is_as_planned(self):
        self.assertGreater(self.check_fleets(range(3)), 30)

    def test_periodic_more_random_fleets(self):
        self.check_fleets(range(100, 200))
        planned = 0
        for seed in range(150):
            dice = random.Random(seed)
            try:
                plan = planner.plan([hosts.any_host(dice)],
                                    hosts.any_profile(dice))
            except exception.InvalidInput:
                continue
            planned += 1
            for deployer, write in formats.FORMATS.items():
                with self.subTest(deployer, seed=seed):
                    read_back.check(deployer, write(plan), plan)
        self.assertGreater(planned, 50)

    def test_periodic_every_digit_and_line_counts(self):
        plan = a_host()
        count = 0
        for deployer, write in formats.FORMATS.items():
            files = write(plan)
            for number, file in enumerate(files):
                for text in self.list_faults(file.text):
                    count += 1
                    found = [*files[:number], dataclasses.replace(
                        file, text=text), *files[number + 1:]]
                    with self.assertRaises(exception.InvalidInput, msg=text):
                        read_back.check(deployer, found, plan)
        self.assertGreater(count, 500)

    def list_faults(self, text):
        """Change each digit, and leave out each line, that counts."""
        lines = text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if (not COUNTED.search(line) or 'pattern' in line
                    or line.lstrip().startswith('#')):
                continue
            before, after = lines[:number], lines[number + 1:]
            yield ''.join((*before, *after))
            for match in re.finditer('[0-9]', line):
                digit = str((int(match[0]) + 1) % 10)
                changed = line[:match.start()] + digit + line[match.end():]
                yield ''.join((*before, changed, *after))
