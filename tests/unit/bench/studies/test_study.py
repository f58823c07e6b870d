# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import study


class TestShares(testtools.TestCase):
    def test_shares_of_the_study_s_host_give_the_study_s_guests(self):
        # S3 has 8 CPUs without and 16 with SMT, S4 has 32.
        for name, smt, cpus in (('S3', 'on', 16), ('S4', None, 32)):
            for case in study_catalogue.get(name).cases:
                guests = case.guests
                if (guests.partition is study.GuestSpan.PART
                        and case.host_settings.get('smt') == smt):
                    above, below = map(int, guests.share.split('/'))
                    self.assertEqual(guests.vcpus * below, cpus * above)
                else:
                    self.assertEqual('', guests.share)
