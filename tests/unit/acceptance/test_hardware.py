# SPDX-License-Identifier: Apache-2.0

"""What is found of the hardware of a host under load."""

import unittest

import fixtures

from hpcvirt import exception
from hpcvirt.acceptance import hardware
from hpcvirt.bench.execute import executor
from tests.builders import places

CPU = 'sys/devices/system/cpu'
NIC = 'sys/bus/pci/devices/0000:41:00.0'
PORT = 'sys/bus/pci/devices/0000:40:01.0'
ETHERNET = 'sys/class/net/ens1/device/net/ens1'
#: A host of two cores with two threads each.
HOST = {
    'proc/uptime': '1000.00 900.0',
    'proc/stat': 'cpu  0 0 0 0 0 0 0 0 0 0\n' + '\n'.join(
        f'cpu{cpu} 0 0 0 0 0 0 0 0 0 0' for cpu in range(4)),
    'proc/interrupts': ' MCE: 0 0 0 0   Machine check exceptions',
    f'{PORT}/class': '0x060400', f'{PORT}/secondary_bus_number': '65',
    f'{PORT}/max_link_speed': '16.0 GT/s PCIe', f'{PORT}/max_link_width': '16',
    f'{NIC}/class': '0x020000',
    f'{NIC}/current_link_speed': '16.0 GT/s PCIe',
    f'{NIC}/current_link_width': '16',
    f'{NIC}/max_link_speed': '16.0 GT/s PCIe', f'{NIC}/max_link_width': '16',
    f'{NIC}/aer_dev_correctable': 'RxErr 0\nBadTLP 0\nRollover 0\n'
                                  'TOTAL_ERR_COR 0',
    f'{NIC}/aer_dev_fatal': 'Undefined 0\nTOTAL_ERR_FATAL 0',
    f'{NIC}/aer_dev_nonfatal': 'Undefined 0\nTOTAL_ERR_NONFATAL 0',
    'sys/block/sda/device/ioerr_cnt': '0x1',
    f'{ETHERNET}/carrier_changes': '2', f'{ETHERNET}/speed': '100000',
    f'{ETHERNET}/statistics/rx_errors': '7',
    'sys/devices/system/edac/mc/mc0/ce_count': '3',
    'sys/devices/system/edac/mc/mc0/ue_count': '0',
    **{f'sys/devices/system/edac/mc/mc0/dimm{n}/size': '32768'
       for n in range(4)},
    **{f'{CPU}/cpu{cpu}/{name}': text for cpu in range(4)
       for name, text in (
           ('topology/thread_siblings_list', f'{cpu % 2},{cpu % 2 + 2}'),
           ('cpufreq/scaling_cur_freq', '2600000'),
           ('cpufreq/base_frequency', '2400000'),
           ('thermal_throttle/core_throttle_total_time_ms', '1000'),
           ('thermal_throttle/package_throttle_total_time_ms', '0'))}}


def busy(seconds, **changes):
    """Return what changes while all CPUs are busy for a time."""
    return {'proc/uptime': f'{1000 + seconds}.00 900.0',
            'proc/stat': '\n'.join(f'cpu{cpu} {100 * seconds} 0 0 0 0 0 0 0 0'
                                   for cpu in range(4)), **changes}


class Place:
    """A machine whose files are given."""

    name = 'ssh://n1'

    def __init__(self, files):
        self.files = dict(files)

    def run(self, *_call):
        return executor.Completed(0, places.print_files(self.files), b'')


class HardwareTest(unittest.TestCase):
    def setUp(self):
        self.place = Place(HOST)
        self.watch = hardware.HardwareWatch(self.place)

    def look(self, seconds, **changes):
        self.place.files.update(busy(seconds))
        self.place.files.update(changes)
        self.watch.look()

    def faults(self):
        return {check.name: check.found for check in self.watch.check()
                if check.passed is False}

    def test_a_sound_host_has_no_fault(self):
        for seconds in (30, 60, 90):
            self.look(seconds)
        self.assertEqual({}, self.faults())
        self.assertEqual([], [check.name for check in self.watch.check()
                              if check.passed is None])

    def test_what_is_not_reported_is_unknown(self):
        place = Place({'proc/uptime': '5.00 1.0'})
        watch = hardware.HardwareWatch(place)
        place.files['proc/uptime'] = '65.00 1.0'
        watch.look()
        checks = list(watch.check())
        self.assertEqual({'reboots'}, {
            check.name for check in checks if check.passed is not None})
        self.assertEqual({'not reported'}, {
            check.found for check in checks if check.passed is None})
        self.assertEqual(frozenset(), watch.find_cores())
        self.assertEqual({}, watch.describe())

    def test_counters_that_grow_are_faults(self):
        edac = 'sys/devices/system/edac/mc/mc0'
        for name, text, said in (
                ('proc/interrupts', ' MCE: 0 0 1 0   Machine',
                 'machine checks'),
                (f'{NIC}/aer_dev_fatal', 'TOTAL_ERR_FATAL 1',
                 'uncorrected PCIe errors'),
                (f'{NIC}/aer_dev_correctable', 'RxErr 0\nTOTAL_ERR_COR 12',
                 'corrected PCIe errors and replays'),
                ('sys/block/sda/device/ioerr_cnt', '0x1f', 'disk errors'),
                (f'{ETHERNET}/carrier_changes', '4',
                 'losses of a network link'),
                (f'{ETHERNET}/statistics/rx_errors', '17', 'network errors'),
                (f'{edac}/ce_count', '13', 'corrected memory errors'),
                (f'{edac}/ue_count', '1', 'uncorrected memory errors'),
                (f'{CPU}/cpu1/thermal_throttle/core_throttle_total_time_ms',
                 '41000', 'milliseconds of throttling')):
            with self.subTest(name):
                self.setUp()
                self.look(300, **{name: text})
                self.assertEqual([said], list(self.faults()))

    def test_single_errors_and_those_before_mean_nothing(self):
        self.look(300, **{
            f'{NIC}/aer_dev_correctable': 'TOTAL_ERR_COR 9',
            f'{ETHERNET}/statistics/rx_errors': '16',
            'sys/devices/system/edac/mc/mc0/ce_count': '12'})
        self.assertEqual({}, self.faults())

    def test_a_narrow_link_is_a_fault(self):
        self.look(60, **{f'{NIC}/current_link_width': '8'})
        self.assertEqual({'PCIe links': '0000:41:00.0: 50% below what both '
                          'of its ends support'}, self.faults())

    def test_a_cpu_that_is_slow_while_busy_is_a_fault(self):
        clock = f'{CPU}/cpu3/cpufreq/scaling_cur_freq'
        for seconds in (30, 60, 90):
            self.look(seconds, **{clock: '1200000'})
        self.assertEqual({'clock': 'cpu3: 50% below its nominal frequency'},
                         self.faults())

    def test_a_cpu_that_is_slow_for_a_moment_is_none(self):
        clock = f'{CPU}/cpu3/cpufreq/scaling_cur_freq'
        for seconds, khz in ((30, '1200000'), (60, '2500000'),
                             (90, '2500000')):
            self.look(seconds, **{clock: khz})
        self.assertEqual({}, self.faults())

    def test_a_host_that_reboots_is_a_fault(self):
        self.look(60)
        self.place.files['proc/uptime'] = '12.00 1.0'
        self.watch.look()
        self.assertIn('reboots', self.faults())

    def test_many_faults_are_counted(self):
        self.look(300, **{
            f'{CPU}/cpu{cpu}/thermal_throttle/{part}_throttle_total_time_ms':
            '90000' for cpu in range(4) for part in ('core', 'package')})
        self.assertTrue(self.faults()['milliseconds of throttling'].startswith(
            '8 faults ('))

    def test_the_first_threads_are_the_cores(self):
        self.assertEqual({0, 1}, self.watch.find_cores())

    def test_the_parts_of_a_machine_are_counted(self):
        self.assertEqual({
            'memory modules in MiB': '4 x 32768',
            'network links in Mb/s': '1 x 100000',
            'PCIe links': '1 x class 02 16 GT/s x16'}, self.watch.describe())

    def test_what_the_firmware_says_is_read(self):
        place = Place({
            'proc/uptime': '5.00 1.0',
            'sys/class/dmi/id/sys_vendor': 'Dell Inc.',
            'sys/class/dmi/id/bios_version': '2.19.1',
            'proc/cpuinfo': 'model name\t: AMD EPYC 7763',
            'proc/sys/kernel/osrelease': '6.1.0'})
        self.assertEqual({
            'vendor': 'Dell Inc.', 'firmware': '2.19.1',
            'CPU': 'AMD EPYC 7763', 'kernel': '6.1.0'},
            hardware.HardwareWatch(place).describe())

    def test_looks_are_some_time_apart(self):
        self.place.files.update(busy(60))
        self.watch.glance()
        self.assertIn('clock', [check.name for check in self.watch.check()
                                if check.passed is None])

    def test_a_machine_too_busy_to_answer_is_looked_at_later(self):
        self.place.files.clear()
        with fixtures.MonkeyPatch('hpcvirt.acceptance.hardware.LOOK_S', 0.0):
            self.watch.glance()
        self.assertRaises(exception.Unreachable, self.watch.look)
        self.place.files.update(HOST)
        self.look(60)
        self.assertEqual({}, self.faults())

    def test_a_machine_without_an_uptime_is_none(self):
        self.assertRaises(exception.Unreachable, hardware.HardwareWatch,
                          Place({}))
