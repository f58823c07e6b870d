# SPDX-License-Identifier: Apache-2.0

"""Tests that fail while Nova is at work, and still end."""

import time
import unittest

from nova.compute import rpcapi

from hpcvirt import waiting
from testing import machines
from testing import nova
from tests.functional import lives


class EndsOfTestsTest(unittest.TestCase):
    def test_a_test_that_fails_before_the_target_is_asked_ends(self):
        self.assert_ends('preparing', pause_s=2)

    def test_a_test_that_fails_during_an_endless_migration_ends(self):
        self.assert_ends('running')

    def assert_ends(self, status, pause_s=0):
        """Run a test that fails during a live migration.

        :param status: the status of the migration then
        :param pause_s: how long the source waits before it asks the target
        """
        prepare = rpcapi.ComputeAPI.pre_live_migration

        def pause_and_prepare(*args, **kwargs):
            time.sleep(pause_s)
            return prepare(*args, **kwargs)

        class FailingTest(lives.LivesNova):
            def runTest(self):  # noqa: N802
                # What started last stops first: the target.
                self.add_machines(*(
                    machines.build(name, pages={2048: 1024})
                    for name in ('source', 'target')))
                server = self.boot(self.create_hpc_flavor(), host='source')
                self.move_domains()
                self.stub_out('nova.compute.rpcapi.ComputeAPI'
                              '.pre_live_migration', pause_and_prepare)
                # The job of the fake libvirt runs until a test ends it.
                self.stub_out('nova.tests.fixtures.libvirt.Domain'
                              '.migrateToURI3', lambda *_, **__: None)
                self.start_live_migration(server)
                waiting.poll(
                    self.migrations, lambda found: found
                    and found[0]['status'] == status,
                    nova.PATIENCE_S, nova.POLL_S)
                self.fail('this test fails')

        result = unittest.TestResult()
        FailingTest().run(result)
        self.assertEqual([], result.errors)
        ((_, text),) = result.failures
        self.assertIn('this test fails', text)
