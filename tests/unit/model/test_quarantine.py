# SPDX-License-Identifier: Apache-2.0

import unittest

import hypothesis
from hypothesis import strategies as st

from hpcvirt.model import quarantine

WORDS = st.text(min_size=1, max_size=60)
NAMES = st.from_regex(r'[a-z0-9.@-]{1,60}', fullmatch=True)


class QuarantineTest(unittest.TestCase):
    """The metadata by which an aggregate describes quarantine."""

    def read(self, hold, host='node7'):
        found, = quarantine.read_holds(host, [{
            quarantine.MARK: hold.holder,
            quarantine.key(host): quarantine.entry(hold)}])
        return found

    @hypothesis.given(NAMES, WORDS, NAMES)
    def test_what_is_written_is_read(self, host, reason, by):
        hold = quarantine.Hold('watch', reason, '2026-01-02T03:04:05Z', by)
        self.assertEqual(hold, self.read(hold, host))

    def test_a_long_reason_fits_into_a_value(self):
        hold = quarantine.Hold('watch', 'x' * 999, '2026', 'me')
        self.assertEqual(255, len(quarantine.entry(hold)))
        self.assertEqual('2026', self.read(hold).since)
        self.assertTrue(self.read(hold).reason.endswith('x...'))

    def test_the_reasons_of_other_hosts_and_aggregates_do_not_count(self):
        hold = quarantine.Hold('watch', 'why', '2026', 'me')
        metadata = {quarantine.MARK: 'watch',
                    quarantine.key('node70'): quarantine.entry(hold)}
        found, = quarantine.read_holds('node7', [{}, metadata])
        self.assertEqual('no reason is given', found.reason)
        self.assertEqual((), quarantine.read_holds('node70', [
            {quarantine.key('node70'): quarantine.entry(hold)}]))

    def test_what_a_person_writes_into_the_metadata_is_the_reason(self):
        found, = quarantine.read_holds('a', [{
            quarantine.MARK: 'operator', quarantine.key('a'): 'hands off'}])
        self.assertEqual('operator: hands off', found.sentence)

    def test_all_holders_are_named(self):
        self.assertEqual('operator since 2026 by me: a; watch: b',
                         quarantine.sentence([
                             quarantine.Hold('operator', 'a', '2026', 'me'),
                             quarantine.Hold('watch', 'b')]))
