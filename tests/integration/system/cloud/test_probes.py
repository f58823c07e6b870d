# SPDX-License-Identifier: Apache-2.0

import socket

from tests.system.cloud import errors
from tests.system.cloud import probes
from tests.system.cloud import processes
from tests.unit.system.cloud import cloud_case


class ProbesTest(cloud_case.CloudCase):
    def setUp(self):
        super().setUp()
        self.running = processes.Processes(self.settings)
        self.addCleanup(lambda: self.running.stop(self.running.names(), 0.1))

    def wait(self, script, answers, limit_s=30):
        self.running.start('one', ['sh', '-c', script])
        results = iter(answers)
        probes.wait_for_service(self.running, 'one',
                                lambda: next(results, False), limit_s)

    def test_wait_ends_when_the_service_answers(self):
        self.wait('exec sleep 60', [False, True])

    def test_service_that_ends_is_an_error_with_its_log(self):
        self.assertRaisesRegex(errors.ServiceError, '(?s)one ended.*reason',
                               self.wait, 'echo reason', [])

    def test_service_that_does_not_answer_is_an_error(self):
        self.assertRaisesRegex(errors.ServiceError, 'did not answer within',
                               self.wait, 'exec sleep 60', [], limit_s=0.1)

    def test_port_is_open_while_a_program_listens(self):
        with socket.create_server(('127.0.0.1', 0)) as listener:
            port = listener.getsockname()[1]
            self.assertTrue(probes.port_open(port))
        self.assertFalse(probes.port_open(port))
