# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

import paramiko

from hpcvirt import exception
from hpcvirt.bench.execute import host_keys
from hpcvirt.bench.execute import ssh
from tests.integration import program_tests
from tests.integration.bench import executor_tests
from tests.integration.bench import network
from tests.integration.bench import ssh_server

KNOWN = host_keys.HostKeys.KNOWN
ACCEPT_NEW = host_keys.HostKeys.ACCEPT_NEW
KEY = paramiko.RSAKey.generate(2048)


def new_trust():
    return host_keys.Trust(ACCEPT_NEW)


class SSHExecutorTest(executor_tests.ExecutorTests, unittest.TestCase):
    # Those that have left the process group run on.
    leavers = ''

    def setUp(self):
        self.server = self.enterContext(ssh_server.running())
        self.place = ssh.SSHExecutor.from_url(self.server.url, new_trust())
        self.addCleanup(self.place.close)

    #: sshd says which variables a program gets: there is nothing to test.
    test_a_site_lets_a_variable_pass = None

    def test_a_program_ends_at_its_limit_without_the_connection(self):
        scratch = self.make_scratch()
        self.place.run(['true'])
        threading.Timer(1, self.server.cut).start()
        with self.assertRaises(exception.ConnectionLost):
            self.place.run(['sh', '-c', program_tests.FAMILY.format(
                leavers=''), 'sh', str(scratch)], b'', 3)
        self.wait_for_end(scratch)

    def test_a_program_that_was_killed_has_ended(self):
        self.assertEqual(128 + 9, self.place.run(
            ['sh', '-c', 'kill -KILL $$']).status)

    def test_what_comes_after_the_status_is_not_lost(self):
        self.server.status_first = True
        done = self.place.run(['sh', '-c', 'echo out; echo err >&2; exit 3'])
        self.assertEqual((3, b'out\n', b'err\n'),
                         (done.status, done.stdout, done.stderr))

    def test_a_process_left_behind_is_not_waited_for(self):
        self.server.status_first = True
        done = self.place.run(['sh', '-c', 'echo out; sleep 30 &'],
                              timeout_s=15)
        self.assertEqual((0, b'out\n'), (done.status, done.stdout))

    def test_arguments_are_not_split(self):
        done = self.place.run(['printf', '%s|', 'a b', "c'd", '$HOME'])
        self.assertEqual(b"a b|c'd|$HOME|", done.stdout)

    def test_a_program_that_never_stops_to_print_times_out(self):
        self.assertRaisesRegex(
            exception.TimedOut, 'within 0.5 s', self.place.run,
            ['sh', '-c', 'while :; do echo x; done'], b'', 0.5)

    def test_a_broken_connection_is_made_again(self):
        self.place.run(['true'])
        self.server.cut()
        self.assertEqual(b'x\n', self.place.run(['echo', 'x']).stdout)

    def test_a_connection_that_breaks_during_a_command_is_lost(self):
        self.place.run(['true'])
        threading.Timer(0.5, self.server.cut).start()
        self.assertRaises(exception.ConnectionLost, self.place.run,
                          ['sleep', '5'])

    def test_a_server_that_no_longer_answers_is_lost(self):
        with network.running(self.server.port) as swallowing:
            place = ssh.SSHExecutor.from_url(
                self.server.url.replace(f':{self.server.port}?',
                                        f':{swallowing.port}?'), new_trust())
            self.addCleanup(place.close)
            self.assertEqual(0, place.run(['true']).status)
            swallowing.cut.set()
            with mock.patch.object(ssh, 'CONNECT_S', 0.3):
                self.assertRaises(exception.ConnectionLost, place.run,
                                  ['true'], b'', 0.5)

    def test_a_server_that_has_ended_is_reported_in_one_line(self):
        self.server.close()
        self.place.close()
        with self.assertRaises(exception.ConnectionLost) as caught:
            self.place.run(['true'])
        self.assertNotIn('\n', str(caught.exception))

    def test_a_wrong_user_is_refused(self):
        url = self.server.url.replace('hpc@', 'other@')
        place = ssh.SSHExecutor.from_url(url, new_trust())
        self.addCleanup(place.close)
        self.assertRaises(exception.ConnectionLost, place.run, ['true'])


class HostKeyTest(unittest.TestCase):
    def setUp(self):
        self.home = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict(os.environ, HOME=self.home))
        self.server = self.enterContext(ssh_server.running())

    def place(self, mode, announce=tuple):
        place = ssh.SSHExecutor.from_url(
            self.server.url, host_keys.Trust(mode, announce))
        self.addCleanup(place.close)
        return place

    def know(self, key, also=''):
        path = pathlib.Path(self.home, '.ssh/known_hosts')
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'[127.0.0.1]:{self.server.port} {key.get_name()} '
                        f'{key.get_base64()}\n{also}')

    def assert_runs(self, place):
        place.close()
        self.assertEqual(0, place.run(['true']).status)

    def assert_refused(self, place, reason):
        place.close()
        with self.assertRaisesRegex(exception.Unreachable, reason) as caught:
            place.run(['true'])
        # It is not tried again, as after a lost connection.
        self.assertNotIsInstance(caught.exception, exception.ConnectionLost)
        self.assertNotIn('\n', str(caught.exception))

    def test_an_unknown_key_is_refused_by_default(self):
        place = ssh.SSHExecutor.from_url(self.server.url)
        self.addCleanup(place.close)
        self.assert_refused(place, 'ssh-rsa SHA256:.* is not known')

    def test_a_known_key_is_trusted(self):
        place = self.place(KNOWN)
        self.know(self.server.host_key, '# comment\nbroken\n\n')
        self.assert_runs(place)

    def test_another_key_than_the_known_one_is_refused_of_any_kind(self):
        for key in (KEY, paramiko.ECDSAKey.generate()):
            self.know(key)
            for mode in host_keys.HostKeys:
                self.assert_refused(self.place(mode), 'differs from the known')

    def test_an_unreadable_file_of_known_keys_is_named(self):
        self.know(KEY, 'host ssh-rsa A\n')
        self.assert_refused(self.place(KNOWN), 'known_hosts')

    def test_a_new_key_is_accepted_on_request_and_no_other_one_later(self):
        place = self.place(ACCEPT_NEW)
        self.assert_runs(place)
        self.assert_runs(place)
        self.server.host_key = KEY
        self.assert_refused(place, 'differs from the known')
        self.server.host_key = paramiko.ECDSAKey.generate()
        self.assert_refused(place, 'differs from the known')

    def test_a_key_may_change_with_a_restart_that_was_asked_for(self):
        place = self.place(ACCEPT_NEW)
        self.assert_runs(place)
        self.server.host_key = KEY
        place.expect_restart()
        self.assert_runs(place)
        self.server.host_key = paramiko.ECDSAKey.generate()
        self.assert_refused(place, 'differs from the known')

    def test_a_restart_gives_no_trust_to_an_unknown_key(self):
        place = self.place(KNOWN)
        self.know(self.server.host_key)
        self.assert_runs(place)
        self.server.host_key = KEY
        place.expect_restart()
        self.assert_refused(place, 'differs from the known')

    def test_keys_of_the_console_alone_are_trusted(self):
        announced = [KEY]
        for mode in host_keys.HostKeys:
            place = self.place(mode, lambda: announced)
            self.know(self.server.host_key)
            self.assert_refused(place, 'differs from the known')
            announced[:] = [self.server.host_key]
            self.assert_runs(place)
            # A console that was emptied takes no trust away.
            announced.clear()
            self.know(KEY)
            self.assert_runs(place)
            announced[:] = [KEY]
