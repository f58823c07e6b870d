# SPDX-License-Identifier: Apache-2.0

"""Run a case of a study in instances of a Nova, by its document.

This machine stands in for the guests: what is started in one runs here.
"""

import json

from hpcvirt.cloud import case_instances
from hpcvirt.cloud import session
from testing import machines
from tests.builders import commands
from tests.builders import folders
from tests.functional import measured_guests

HOST = 'node1'
SCRIPT = """\
#!/bin/sh
echo "HS06: 100.$(pwd | cksum | cut -c 1-3)"
"""


class StudyRunTest(measured_guests.MeasuringTestCase):
    def setUp(self):
        super().setUp()
        # As the plan of the case asks for.
        machine = machines.build(HOST, cells=1, cores=2, small_mib=1536,
                                 pages={2048: 3328})
        self.add_machines(machine)
        self.use_as_cloud()
        self.scratch = folders.make(self)
        self.data = self.scratch / 'data'
        script = self.scratch / 'hs06.sh'
        script.write_text(SCRIPT)
        script.chmod(0o755)
        self.write_fleet(self.scratch, machine)
        self.document = {
            'kind': 'study', 'schema_version': 1, 'study': 'S4',
            'case': '1x32-tuned', 'fleet': 'fleet.yaml',
            'host_class': 'small', 'image': 'bench', 'networks': ['net'],
            'user': 'bench', 'native': 'local', 'pairs': 2, 'warm_ups': 0,
            'verdict': False, 'settings': {'script': str(script)}}
        self.answer_for_others()
        self.reach_guests()

    def run_(self, *words, **keys):
        self.restore_ports()
        path = self.scratch / 'study.yaml'
        path.write_text(json.dumps({**self.document, **keys}))
        return commands.run('bench', 'run', path, '--data', self.data, *words)

    def test_a_case_is_measured_in_instances_which_are_removed(self):
        status, out, err = self.run_()
        self.assertEqual(0, status, err)
        self.assertIn(f'Start 1 instance of it on {HOST}', out)
        self.assertEqual([], self.api.get_servers())
        self.assertFalse(self.data.exists())
        # Two pairs decide nothing.
        plan = commands.read_document(
            self, self.run_('--apply', '-f', 'json'), status=1)
        (run,) = plan['runs']
        self.assertEqual(
            ([HOST], 1, 'S4', '1x32-tuned', 'hs06', 2, 0),
            (plan['hosts'], plan['per_host'], run['study'], run['case'],
             run['benchmark'], run['planned_pairs'], run['planned_warm_ups']))
        self.assertEqual(['guest', 'native'], sorted(
            {sample['side'] for sample in run['samples']}))
        for sample in run['samples']:
            self.assertTrue(sample['outcome']['valid'], sample['outcome'])
        for url in self.urls:
            self.assertTrue(url.startswith('ssh://bench@'), url)
        self.assertEqual([], self.api.get_servers())
        self.assertEqual((), case_instances.find(
            session.compute(), 's4-1x32-tuned', None, [HOST], 'bench',
            ['net'], '', '').left())

    def test_a_host_that_is_in_use_is_refused(self):
        self.boot(self.create_hpc_flavor(pcpus=1), host=HOST)
        status, _, err = self.run_('--apply')
        self.assertEqual(2, status)
        self.assertIn('has 1 instance of others', err)
        self.assertEqual(1, len(self.api.get_servers()))
