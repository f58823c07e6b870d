# SPDX-License-Identifier: Apache-2.0

"""The options of nova-compute beside its CPUs."""

import dataclasses

from tests.builders import audited

POST_COPY = {('libvirt', 'live_migration_permit_post_copy'): ('true',)}


class LiveMigrationTest(audited.Case):
    def test_a_post_copy_fetches_pages_of_32_mib_at_once(self):
        pool = audited.GOOD.memory.huge_pages[0]
        for size_kib, total, expected in (
                (2048, 4, []), (32 * 1024, 4, []), (512 * 1024, 4, ['note']),
                (1048576, 4, ['note']), (1048576, 0, [])):
            pools = (dataclasses.replace(pool, size_kib=size_kib,
                                         total=total),)
            self.check('live-migration', expected,
                       memory={'huge_pages': pools}, nova=POST_COPY)
