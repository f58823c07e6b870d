# SPDX-License-Identifier: Apache-2.0

"""Tests that fail while Nova is at work, and still end."""

import threading
import time
import unittest

import fixtures
import testtools
from nova.compute import rpcapi

from hpcvirt import waiting
from testing import machines
from testing import nova
from tests.functional import lives


class EndsOfTestsTest(testtools.TestCase):
    def test_periodic_a_test_that_fails_before_the_target_is_asked_ends(self):
        prepare = rpcapi.ComputeAPI.pre_live_migration
        failing = threading.Event()

        def pause_and_prepare(*args, **kwargs):
            failing.wait(nova.PATIENCE_S)
            # Hosts that do not wait for migrations stop meanwhile.
            time.sleep(3)
            return prepare(*args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch(
            'nova.compute.rpcapi.ComputeAPI.pre_live_migration',
            pause_and_prepare))
        self.assert_ends('preparing', failing.set)

    def test_periodic_a_test_that_fails_during_an_endless_migration_ends(self):
        self.assert_ends('running')

    def test_no_service_ends_the_executors_of_the_next_test(self):
        if not nova.ENDS_EXECUTORS:
            return
        ended = []
        self.useFixture(fixtures.MonkeyPatch(
            'nova.thread_pool_factory.FACTORY.shutdown_all',
            lambda: ended.append(None)))
        self.useFixture(fixtures.MonkeyPatch(
            'nova.manager.Manager._wait_for_in_progress_tasks',
            lambda *_: time.sleep(0.3)))

        class PassingTest(nova.EmbeddedNova):
            def runTest(self):  # noqa: N802
                self.add_machines(machines.build('host'))

        result = unittest.TestResult()
        PassingTest().run(result)
        self.assertEqual([], [*result.errors, *result.failures])
        time.sleep(0.6)
        self.assertEqual([], ended)

    def assert_ends(self, status, tell=lambda: None):
        """Run a test that fails during a live migration.

        :param status: the status of the migration then
        :param tell: called when the test fails
        """
        class FailingTest(lives.LivesNova):
            def runTest(self):  # noqa: N802
                # What started last stops first: the target.
                self.add_machines(*(
                    machines.build(name, pages={2048: 1024})
                    for name in ('source', 'target')))
                server = self.boot(self.create_hpc_flavor(), host='source')
                self.move_domains()
                # The job of the fake libvirt runs until a test ends it.
                self.stub_out('nova.tests.fixtures.libvirt.Domain'
                              '.migrateToURI3', lambda *_, **__: None)
                self.start_live_migration(server)
                waiting.poll(
                    self.migrations, lambda found: found
                    and found[0]['status'] == status,
                    nova.PATIENCE_S, nova.POLL_S)
                tell()
                self.fail('this test fails')

        result = unittest.TestResult()
        FailingTest().run(result)
        self.assertEqual([], result.errors)
        ((_, text),) = result.failures
        self.assertIn('this test fails', text)
