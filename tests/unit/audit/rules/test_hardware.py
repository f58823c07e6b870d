# SPDX-License-Identifier: Apache-2.0

"""The rules about hardware."""

from hpcvirt.audit import audit
from hpcvirt.audit.reading.hardware import MemoryController
from hpcvirt.audit.rules import hardware
from hpcvirt.topology import hardware_state
from tests.builders import audited

DAY_S = 24 * 60 * 60
GUEST = audited.Case().but(cpu={'is_guest': True})


class HardwareTest(audited.Case):
    def test_a_limit_far_below_the_highest_frequency(self):
        for percent, no_turbo, expected in (
                (100, False, 0), (90, False, 0), (89, False, 1),
                (60, None, 1), (60, True, 0)):
            self.check('frequency-limit', expected, cpu={
                'no_turbo': no_turbo}, hardware={'limits': {
                    percent: frozenset({0, 1})}})

    def test_a_cpu_that_was_throttled(self):
        for seconds, expected in ((0, []), (86, []), (87, ['warning'])):
            state = {'throttled': seconds, 'uptime_s': DAY_S}
            self.check('throttling', expected, hardware=state)
            self.check('throttling', [], GUEST, hardware=state)

    def test_only_processors_of_intel_count_their_throttling(self):
        for vendor, expected in (('GenuineIntel', [audit.UNKNOWN]),
                                 ('AuthenticAMD', []), (None, [])):
            self.assertEqual(expected, self.codes(self.but(
                cpu={'vendor': vendor}, hardware={'throttled': None})))

    def controllers(self, *channels, corrected=0, uncorrected=0):
        """Make the facts of controllers: channel -> MiB of each."""
        return {'controllers': tuple(
            MemoryController(
                f'mc{number}', corrected, uncorrected, {
                    key if isinstance(key, tuple) else ('DDR5', key): mib
                    for key, mib in found.items()})
            for number, found in enumerate(channels))}

    def test_errors_of_memory(self):
        most = hardware.MAX_CORRECTED_A_DAY
        for corrected, uncorrected, uptime_s, expected in (
                (0, 0, 60, []), (1, 0, 60, ['note']), (most, 0, 60, ['note']),
                (most + 1, 0, 60, ['warning']),
                (most * 3, 0, 3 * DAY_S, ['note']),
                (most * 3 + 1, 0, 3 * DAY_S, ['warning']),
                (0, 1, 60, ['error']), (1, 1, 60, ['error', 'note'])):
            self.check('memory-errors', expected, hardware={
                'uptime_s': uptime_s, **self.controllers(
                    {}, corrected=corrected, uncorrected=uncorrected)})

    def test_nobody_counts_errors(self):
        self.check('memory-errors', ['note'], hardware={'controllers': ()})
        self.check('memory-errors', [], GUEST, hardware={'controllers': ()})

    def test_channels_that_are_not_filled_alike(self):
        two = {'0': 8, '1': 8}
        hbm = {('HBM2', '0'): 16, ('HBM2', '1'): 16}
        for channels, expected in (
                ([two, two], 0), ([two, {'0': 8, '1': 4}], 1),
                ([two, {'0': 8}], 1), ([{'0': 8}, {'1': 8}], 0), ([{}], 0),
                ([two, two, hbm, hbm], 0), ([two | hbm, two | hbm], 0),
                ([two | {('Non-volatile-RAM', '0'): 128}, two], 0)):
            self.check('memory-channels', expected,
                       hardware=self.controllers(*channels))

    def link(self, lanes=16, speed=16.0, card=(16.0, 16), slot=(16.0, 16),
             kind='02'):
        return {'links': (hardware_state.PcieLink(
            '0000:41:00.0', kind, (speed, lanes), card, slot),)}

    def test_links_are_as_wide_and_fast_as_card_and_slot(self):
        for fields, expected in (
                ({}, []), ({'lanes': 8}, ['warning']),
                ({'speed': 8.0}, ['warning']),
                ({'speed': 8.0, 'slot': (8.0, 16)}, []),
                ({'speed': 8.0, 'card': (8.0, 16)}, []),
                ({'lanes': 8, 'slot': (16.0, 8)}, ['note']),
                ({'lanes': 8, 'card': (16.0, 8)}, []),
                ({'lanes': 4, 'slot': (16.0, 8)}, ['warning'])):
            self.check('pcie-link', expected, hardware=self.link(**fields))
            self.check('pcie-link', [], GUEST, hardware=self.link(**fields))

    def test_a_gpu_slows_its_link_down_while_it_is_idle(self):
        for fields, expected in (
                ({'speed': 2.5}, 0), ({'speed': 2.5, 'lanes': 1}, 0),
                ({'speed': 8.0}, 0), ({'lanes': 8}, 1)):
            for kind in ('03', '12'):
                self.check('pcie-link', expected,
                           hardware=self.link(kind=kind, **fields))
