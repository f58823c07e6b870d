# SPDX-License-Identifier: Apache-2.0

"""Why requests and builds have failed, from the logs of a running Nova."""

import json
import logging
import os
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log as oslo_logging

from testing import machines
from testing import nova
from tests.builders import commands
from tests.functional import base


class LoggedNova(nova.EmbeddedNova):
    """A Nova that logs as its services do, into one file."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.log_file = os.path.join(self.folder, 'nova.log')
        self.history = os.path.join(self.folder, 'history')
        conf = cfg.ConfigOpts()
        oslo_logging.register_options(conf)
        conf([])
        handler = logging.FileHandler(self.log_file)
        handler.setFormatter(formatters.ContextFormatter(
            datefmt=conf.log_date_format, config=conf))
        for name in ('nova', 'hpcvirt'):
            logger = logging.getLogger(name)
            logger.addHandler(handler)
            self.addCleanup(logger.removeHandler, handler)
        self.addCleanup(handler.close)

    def explain(self, *words, status=1):
        with mock.patch.dict(os.environ, COLUMNS='200'):
            found, out, err = commands.run('explain', *words)
        self.assertEqual((status, ''), (found, err), out)
        return out

    def request_of(self, server):
        """Return the id of the request, as users see it."""
        actions = self.api.get_instance_actions(server['id'])
        return actions[-1]['request_id']


class RefusalHistoryTest(LoggedNova, base.HPCNova):

    def test_each_step_of_a_refusal_is_kept_and_counted(self):
        self.add_machines(*(machines.build(name, 2, 8, pages={2048: 2048})
                            for name in ('node1', 'node2')))
        self.boot_many(self.create_hpc_flavor(1, 5, 256), 4)
        cramped = self.create_hpc_flavor(1, 4, 256)
        for _ in range(3):
            refused = self.boot(cramped, status='ERROR')
        self.boot(self.create_flavor(1, 1 << 20, {}), status='ERROR')
        group = self.api.post_server_groups({
            'name': 'apart', 'policy': 'anti-affinity'})['id']
        single = self.create_hpc_flavor(1, 1, 64)
        for status in ('ACTIVE', 'ACTIVE', 'ERROR'):
            apart = self.boot(single, group=group, status=status)
        # What is read again is kept once.
        for _ in range(2):
            out = self.explain('--history', self.history, '--scheduler-log',
                               self.log_file, '--format', 'json')
        document = json.loads(out)
        self.assertEqual(5, document['refused_requests'])
        name = self.api.get_flavor(cramped)['name']
        self.assertEqual([
            (3, name, 'filter', 'free-pcpus'),
            (1, '-', 'filter', 'ServerGroupAntiAffinityFilter'),
            (1, '-', 'placement', 'placement')], sorted(
                [(kind['requests'], kind['flavor'], kind['step'],
                  kind['kind']) for kind in document['kinds']],
                key=lambda kind: (-kind[0], kind[1:])))
        for server, expected in (
                (refused, 'cell 0 has 3 of the 4 free PCPUs needed'),
                (apart, ': ServerGroupAntiAffinityFilter')):
            self.assertIn(expected, self.explain(
                '--history', self.history, '--request-id', server['id']))
        # Where Placement is in the same process, as here, the line has the id
        # of the request to Placement.
        unplaced = next(kind['last']['request_id'] for kind
                        in document['kinds'] if kind['step'] == 'placement')
        self.assertIn('Placement has no allocation candidates', self.explain(
            '--history', self.history, '--request-id', unplaced))
        # Nothing but the lines about refusals is kept.
        with open(self.history) as kept:
            self.assertEqual(1 + len(document['refusals']),
                             len(kept.readlines()))


class FailedBuildTest(LoggedNova):
    """Without a filter for topologies, the claim fails."""

    ENABLED_FILTERS = nova.USUAL_FILTERS

    def test_periodic_a_claim_that_fails_is_kept(self):
        self.add_machines(*(machines.build(name, 2, 8, pages={2048: 2048})
                            for name in ('node1', 'node2')))
        pinned = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}
        small = self.create_flavor(5, 256, pinned)
        for host in ('node1', 'node2'):
            self.boot_many(small, 2, host=host)
        server = self.boot(self.create_flavor(4, 256, pinned), status='ERROR')
        document = json.loads(self.explain(
            '--history', self.history, '--scheduler-log', self.log_file,
            '--request-id', server['id'], '--format', 'json'))
        found = [record for records in document['refusals']
                 for record in records]
        self.assertEqual({'node1', 'node2'},
                         {record['examples'] for record in found})
        for record in found:
            self.assertEqual(('build', self.request_of(server)), (
                record['step'], record['request_id']))
            self.assertRegex(record['reason'], '^Insufficient compute '
                             'resources: .*NUMA topology cannot fit')
        self.assertIn('failed at the step build on node', self.explain(
            '--history', self.history, '--request-id', server['id']))


class NovasOwnReasonTest(LoggedNova):
    """Nova's own filters say at DEBUG level why they leave no host."""

    def setUp(self):
        super().setUp()
        logger = logging.getLogger('nova')
        self.addCleanup(logger.setLevel, logger.level)
        logger.setLevel(logging.DEBUG)

    def test_the_reason_of_the_filter_is_told_and_kept(self):
        self.add_machines(machines.build('node1', 1, 8, pages={2048: 64}))
        server = self.boot(self.create_flavor(4, 256, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}),
            status='ERROR')
        for words in ((), ('--history', self.history)):
            found = json.loads(self.explain(
                *words, '--scheduler-log', self.log_file, '--request-id',
                server['id'], '--format', 'json'))
            (record,), = found['refusals']
            self.assertEqual('NUMATopologyFilter', record['kind'])
            self.assertIn('not enough free pages of the requested size',
                          record['reason'])
        # The history alone tells the same.
        self.assertIn('not enough free pages', self.explain(
            '--history', self.history, '--request-id', server['id']))
