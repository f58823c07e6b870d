# SPDX-License-Identifier: Apache-2.0

import json
import os
import time
import unittest
from unittest import mock

from hpcvirt import serialization
from hpcvirt.acceptance import acceptance
from hpcvirt.bench.model import judgement
from hpcvirt.health import gate_keeper
from tests.builders import folders


class GateProcessTest(unittest.TestCase):
    """The gate in a process of its own."""

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.enterContext(mock.patch.dict(
            os.environ, XDG_DATA_HOME=str(self.folder)))

    def wait(self, run):
        for _ in range(300):
            answer = run.poll()
            if answer is not None:
                return answer
            time.sleep(0.2)
        raise self.failureException('the gate has not ended')

    def test_a_gate_that_cannot_be_taken_says_why(self):
        result, reason = self.wait(gate_keeper.GateProcess('n1', 'x://y'))
        self.assertEqual('nothing', result)
        self.assertIn('x://y', reason)

    def test_a_host_that_cannot_be_reached_is_not_decided(self):
        result, reason = self.wait(gate_keeper.GateProcess(
            'n1', 'ssh://root@127.0.0.1:1'))
        self.assertIn(result, ('nothing', 'INCONCLUSIVE'))
        self.assertTrue(reason)

    def test_the_settings_of_the_site_reach_it(self):
        with mock.patch.dict(os.environ, HPCVIRT_JOB_DIRECTORY='here'):
            run = gate_keeper.GateProcess('n1', 'ssh://root@127.0.0.1:1')
        _, reason = self.wait(run)
        self.assertIn("HPCVIRT_JOB_DIRECTORY: must be an absolute path, not "
                      "'here'", reason)

    def test_its_result_is_what_the_acceptance_writes(self):
        for result in judgement.VerdictResult:
            found = acceptance.Acceptance(
                host='n1', request='', began_at='', command='', native='',
                benchmarks=(), parts=(), result=result, reason='because')
            text = json.dumps(serialization.dump(found))
            program = (
                'import json, pathlib, sys; print("x" * 300000); '
                'document = pathlib.Path(sys.argv[3]); '
                'name = json.loads(document.read_text())["json_lines"]; '
                f'document.with_name(name).write_text({text!r})')
            with mock.patch.object(gate_keeper, '_PROGRAM', program):
                run = gate_keeper.GateProcess('n1', 'local')
            self.assertEqual((result.value, 'because'), self.wait(run))

    def test_a_gate_can_be_ended(self):
        run = gate_keeper.GateProcess('n1', 'ssh://root@127.0.0.1:1')
        run.close()
        self.assertTrue(run._child.has_ended())
