# SPDX-License-Identifier: Apache-2.0

import contextlib
import os
import pathlib
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import process_tree
from hpcvirt import waiting
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import host_keys
from hpcvirt.bench.execute import ssh
from tests.integration import program_tests
from tests.integration.bench import executor_tests
from tests.integration.bench import network
from tests.integration.bench import ssh_server

KNOWN = host_keys.HostKeys.KNOWN
ACCEPT_NEW = host_keys.HostKeys.ACCEPT_NEW

#: Leaves this process without closing a connection.
KILLED = """
import os, signal, sys
from hpcvirt.bench.execute import host_keys, ssh
place = ssh.SSHExecutor.from_url(
    sys.argv[1], host_keys.Trust(host_keys.HostKeys.ACCEPT_NEW))
place.run(['true'])
os.kill(os.getpid(), signal.SIGKILL)
"""


def new_trust():
    return host_keys.Trust(ACCEPT_NEW)


def list_masters(port):
    """List the programs that hold connections to a port."""
    found = []
    for entry in process_tree.read_table():
        path = pathlib.Path('/proc', str(entry.process.pid), 'cmdline')
        try:
            words = path.read_bytes().split(b'\0')
        except OSError:
            continue
        if b'-oControlMaster=yes' in words and str(port).encode() in words:
            found.append(entry.process.pid)
    return found


class Middle:
    """Stands between a command and the master, and loses the answer.

    It passes the request with its three descriptors. When the master says that
    the program was started, it waits for a file, and breaks the connection.

    :ivar passed: whether it has passed a request
    """

    def __init__(self, path, real, file):
        self.passed = False
        self._file = file
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._real = str(real)
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()

    def _relay(self):
        command, _ = self._socket.accept()
        with command, socket.socket(socket.AF_UNIX) as master:
            master.connect(self._real)
            sent = 0
            while True:
                for each in select.select([command, master], [], [])[0]:
                    data, descriptors, _, _ = socket.recv_fds(each, 65536, 4)
                    if each is command:
                        # A descriptor comes with a byte of its own.
                        end = len(data) - len(descriptors)
                        master.sendall(data[:end])
                        if descriptors:
                            socket.send_fds(master, [data[end:]], descriptors)
                        sent += len(descriptors)
                    elif sent < 3:
                        command.sendall(data)
                    else:
                        self.passed = True
                    for descriptor in descriptors:
                        os.close(descriptor)
                if self.passed:
                    waiting.poll(self._file.exists, bool, 10, 0.01)
                    return

    def close(self):
        self._thread.join()
        self._socket.close()


class SSHTestCase(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ssh_server.running())
        self.place = self.connect(self.server.url)

    def connect(self, url, trust=None):
        place = ssh.SSHExecutor.from_url(url, trust or new_trust())
        self.addCleanup(place.close)
        return place

    def url(self, port):
        """Return a URL that reaches the server through another port."""
        return self.server.url.replace(f':{self.server.port}?', f':{port}?')

    def make_scratch(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def wait_until_noticed(self, place):
        """Wait until the program that holds a connection has ended."""
        self.assertTrue(waiting.poll(
            place._connection.master.has_ended, bool, 10, 0.01))


class SSHExecutorTest(executor_tests.ExecutorTests, SSHTestCase):
    # Those that have left the process group run on.
    leavers = ''

    #: sshd says which variables a program gets: there is nothing to test.
    test_a_site_lets_a_variable_pass = None

    def test_a_program_that_was_killed_has_ended(self):
        self.assertEqual(128 + 9, self.place.run(
            ['sh', '-c', 'kill -KILL $$']).status)

    def test_a_status_of_ssh_itself_is_one_of_a_program(self):
        for status in (1, 126, 127, 254, 255):
            done = self.place.run(
                ['sh', '-c', f'echo out; echo err >&2; exit {status}'])
            self.assertEqual((status, b'out\n', b'err\n'),
                             (done.status, done.stdout, done.stderr))

    def test_a_missing_program_has_its_status(self):
        self.assertEqual(127, self.place.run(['/no/such']).status)

    def test_output_is_not_changed(self):
        data = b'no end of line'
        done = self.place.run(['sh', '-c', 'cat; printf err >&2'], data)
        self.assertEqual((data, b'err'), (done.stdout, done.stderr))

    def test_much_input_passes(self):
        data = os.urandom(2 ** 20) * 24
        self.assertEqual(data, self.place.run(['cat'], data).stdout)

    def test_input_that_is_not_read_holds_nobody(self):
        begin = time.monotonic()
        self.assertEqual(3, self.place.run(
            ['sh', '-c', 'exit 3'], b'x' * 2 ** 24).status)
        self.assertLess(time.monotonic() - begin, 10)

    def test_a_process_left_behind_is_not_waited_for(self):
        begin = time.monotonic()
        done = self.place.run(['sh', '-c', 'echo out; sleep 30 & exit 255'],
                              timeout_s=25)
        self.assertEqual((255, b'out\n'), (done.status, done.stdout))
        self.assertLess(time.monotonic() - begin, 10)

    def test_arguments_are_not_split(self):
        done = self.place.run(['printf', '%s|', 'a b', "c'd", '$HOME', '',
                               'two\nlines', '-o'])
        self.assertEqual(b"a b|c'd|$HOME||two\nlines|-o|", done.stdout)

    def test_what_a_login_prints_is_no_output(self):
        home = self.make_scratch()
        (home / '.bashrc').write_text('set -x; echo hello; echo you >&2\n')
        self.server.login['HOME'] = str(home)
        del self.server.login['SHLVL']
        self.server.write()
        done = self.place.run(['sh', '-c', 'echo out; echo err >&2'])
        self.assertEqual((b'out\n', b'err\n'), (done.stdout, done.stderr))

    def test_a_program_that_never_stops_to_print_times_out(self):
        self.assertRaisesRegex(
            exception.TimedOut, 'within 0.5 s', self.place.run,
            ['sh', '-c', 'while :; do echo x; done'], b'', 0.5)

    def test_commands_share_one_login(self):
        seen = {self.place.run(['sh', '-c', 'echo $SSH_CONNECTION']).stdout
                for _ in range(4)}
        self.assertEqual(1, len(seen))

    def test_the_language_of_the_caller_stays(self):
        with mock.patch.dict(os.environ, LC_ALL='C.UTF-8', LANG='C.UTF-8'):
            self.assertEqual(b'', self.place.run(
                ['sh', '-c', 'printf "%s" "$LC_ALL$LANG"']).stdout)

    def test_nothing_is_left_of_a_connection(self):
        folder = self.make_scratch()
        with mock.patch.object(tempfile, 'tempdir', str(folder)):
            self.place.run(['true'])
        self.assertEqual(1, len(list(folder.iterdir())))
        self.assertEqual(1, len(list_masters(self.server.port)))
        self.place.close()
        self.assertEqual([], list(folder.iterdir()))
        self.assertEqual([], list_masters(self.server.port))

    def test_a_long_name_of_the_temporary_folder_is_avoided(self):
        folder = self.make_scratch() / ('long' * 25)
        folder.mkdir()
        with mock.patch.object(tempfile, 'tempdir', str(folder)):
            self.assertEqual(0, self.place.run(['true']).status)
        self.assertEqual(1, len(list_masters(self.server.port)))

    def test_a_connection_ends_with_a_process_that_is_killed(self):
        # Its folder is left.
        done = subprocess.run(
            [sys.executable, '-c', KILLED, self.server.url], check=False,
            env={**os.environ, 'TMPDIR': str(self.make_scratch())})
        self.assertEqual(-signal.SIGKILL, done.returncode)
        self.assertEqual([], waiting.poll(
            lambda: list_masters(self.server.port), lambda left: not left, 10,
            0.05))


class LossTest(SSHTestCase):
    """Connections that break: no command runs twice, none is lost unseen."""

    def setUp(self):
        super().setUp()
        # Whoever knows this key and has the other one could log in.
        self.server.known.write_text(
            f'[127.0.0.1]:{self.server.port} {self.server.host_key}\n')
        self.place = self.connect(self.server.url, host_keys.Trust())
        self.scratch = self.make_scratch()
        self.place.run(['true'])

    def count(self, script):
        """Run a program that counts how often it runs."""
        return self.place.run(
            ['sh', '-c', f'echo x >> {self.scratch}/count; {script}'])

    def assert_count(self, number):
        path = self.scratch / 'count'
        self.assertEqual(number, len(path.read_text().split())
                         if path.exists() else 0)

    def cut_when(self, name):
        """Break the connection as soon as there is a file."""
        def cut():
            waiting.poll((self.scratch / name).exists, bool, 20, 0.01)
            self.server.cut()
        thread = threading.Thread(target=cut)
        thread.start()
        self.addCleanup(thread.join)

    def test_a_connection_that_broke_before_is_made_again(self):
        self.server.cut()
        self.wait_until_noticed(self.place)
        self.assertEqual(b'x\n', self.place.run(['echo', 'x']).stdout)

    def test_one_that_breaks_at_that_moment_runs_nothing_twice(self):
        for number in range(1, 9):
            self.server.cut()
            with contextlib.suppress(exception.ConnectionLost):
                self.count(f'echo {number} >> {self.scratch}/numbers')
        numbers = (self.scratch / 'numbers').read_text().split()
        self.assertEqual(len(set(numbers)), len(numbers))

    def test_a_command_does_not_log_in_by_itself(self):
        # The master ends, which a command does not see before it runs.
        master = self.place._connection.master
        os.kill(master.process.pid, signal.SIGKILL)
        self.wait_until_noticed(self.place)
        with mock.patch.object(master, 'has_ended', bool):
            self.assertRaises(exception.ConnectionLost, self.count, 'exit 0')
        self.assert_count(0)

    def test_a_master_that_ends_before_it_answers_runs_nothing_twice(self):
        path = pathlib.Path(self.place._connection.folder.name, 'master')
        path.rename(path.with_name('real'))
        middle = Middle(path, path.with_name('real'), self.scratch / 'count')
        self.addCleanup(middle.close)
        self.assertRaises(exception.ConnectionLost, self.count, 'sleep 1')
        self.assertTrue(middle.passed)
        self.assert_count(1)

    def test_one_that_breaks_while_a_program_runs_is_lost(self):
        self.cut_when('count')
        begin = time.monotonic()
        with self.assertRaises(exception.ConnectionLost) as caught:
            self.count('sleep 20; exit 255')
        self.assertLess(time.monotonic() - begin, 10)
        self.assertNotIn('\n', str(caught.exception))
        self.assert_count(1)

    def test_one_that_breaks_after_the_end_loses_no_status(self):
        self.cut_when('late')
        done = self.count(f'(sleep 0.5; : > {self.scratch}/late; sleep 20) & '
                          'echo out; exit 255')
        self.assertEqual((255, b'out\n'), (done.status, done.stdout))
        self.assert_count(1)

    def test_a_killed_master_is_a_lost_connection(self):
        for number in (1, 2):
            master, = list_masters(self.server.port)
            threading.Timer(0.5, os.kill, (master, signal.SIGKILL)).start()
            self.assertRaises(exception.ConnectionLost, self.count,
                              'sleep 20')
            self.assert_count(number)
            self.assertEqual(0, self.place.run(['true']).status)

    def test_a_master_that_was_killed_before_is_replaced(self):
        master, = list_masters(self.server.port)
        os.kill(master, signal.SIGKILL)
        self.wait_until_noticed(self.place)
        self.assertEqual(255, self.count('exit 255').status)
        self.assert_count(1)

    def test_a_killed_shell_on_the_machine_is_no_end(self):
        self.assertRaises(exception.ConnectionLost, self.count,
                          'kill -KILL $(ps -o ppid= -p $PPID)')
        self.assert_count(1)

    def test_only_the_program_of_a_lost_connection_runs_to_its_limit(self):
        scratch = self.make_scratch()
        threading.Timer(1, self.server.cut).start()
        with self.assertRaises(exception.ConnectionLost):
            self.place.run(['sh', '-c', program_tests.FAMILY.format(
                leavers=''), 'sh', str(scratch)], b'', 3)
        left = waiting.poll(lambda: program_tests.list_running(scratch),
                            lambda left: not left, 15, 0.05)
        self.assertEqual([], left)

    def test_a_repeated_command_runs_once_in_each_attempt(self):
        self.cut_when('count')
        with mock.patch.object(executor, 'PAUSE_S', 0.01):
            script = 'echo x >> "$1"; [ $(wc -l < "$1") = 2 ] || sleep 20'
            done = executor.RetryingExecutor(self.place).run(
                ['sh', '-c', script, 'sh', f'{self.scratch}/count'])
        self.assertEqual(0, done.status)
        self.assert_count(2)

    def test_a_server_that_no_longer_answers_is_lost(self):
        with network.running(self.server.port) as swallowing:
            place = self.connect(self.url(swallowing.port))
            self.assertEqual(0, place.run(['true']).status)
            swallowing.cut.set()
            with mock.patch.object(ssh, 'CONNECT_S', 0.3):
                self.assertRaises(exception.ConnectionLost, place.run,
                                  ['true'], b'', 0.5)
            place.close()

    def test_a_server_that_never_answers_is_lost(self):
        with network.running(self.server.port) as swallowing:
            swallowing.cut.set()
            place = self.connect(self.url(swallowing.port))
            with (mock.patch.object(ssh, 'LOGIN_S', 0.5),
                  self.assertRaises(exception.ConnectionLost)):
                place.run(['true'])

    def test_a_server_that_has_ended_is_reported_in_one_line(self):
        self.server.close()
        self.place.close()
        with self.assertRaisesRegex(exception.ConnectionLost,
                                    'Connection refused') as caught:
            self.place.run(['true'])
        self.assertNotIn('\n', str(caught.exception))

    def test_a_wrong_user_is_refused(self):
        place = self.connect(self.server.url.replace(
            f'{ssh_server.USER}@', 'other@'))
        self.assertRaisesRegex(exception.ConnectionLost, 'Permission denied',
                               place.run, ['true'])


class ConfigurationTest(SSHTestCase):
    """The configuration of ssh holds for what the URL does not say."""

    def configure(self, text):
        with self.server.configuration.open('a') as stream:
            stream.write(text)

    def configure_host(self, name, more=''):
        self.configure(
            f'Host {name}\nHostName 127.0.0.1\nPort {self.server.port}\n'
            f'User {ssh_server.USER}\nIdentityFile {self.server.folder}/id\n'
            + more)

    def test_a_host_of_the_configuration_is_reached(self):
        self.configure_host('Guest')
        self.assertEqual(
            0, self.connect('ssh://Guest').run(['true']).status)

    def test_a_jump_is_made(self):
        self.configure_host('jump', 'StrictHostKeyChecking accept-new\n')
        self.configure_host('inner', 'ProxyJump jump\n')
        place = self.connect('ssh://inner')
        jumps = pathlib.Path(self.server.known)
        for _ in range(2):
            self.assertEqual(0, place.run(['true']).status)
        # The key of the other machine is not the user's business.
        self.assertEqual(1, len(jumps.read_text().splitlines()))
        self.server.cut()
        self.wait_until_noticed(place)
        self.assertEqual(0, place.run(['true']).status)

    def test_settings_that_need_a_terminal_do_no_harm(self):
        self.configure_host(
            'guest', 'RequestTTY force\nRemoteCommand echo wrong\n'
            'ForwardAgent yes\nLogLevel QUIET\nPermitLocalCommand yes\n'
            'LocalForward 1 127.0.0.1:1\nExitOnForwardFailure yes\n'
            f'ControlMaster auto\nControlPath {self.server.folder}/own\n'
            'ControlPersist yes\n')
        place = self.connect('ssh://guest')
        done = place.run(['sh', '-c', 'tty; echo "$SSH_AUTH_SOCK"'])
        self.assertEqual(b'not a tty\n\n', done.stdout)
        place.close()
        self.assertEqual([], list_masters(self.server.port))
        self.assertFalse((self.server.folder / 'own').exists())

    def test_a_login_of_the_user_is_shared(self):
        path = self.server.folder / 'own'
        self.configure_host('guest', f'ControlPath {path}\n')
        self.server.known.write_text(
            f'[127.0.0.1]:{self.server.port} {self.server.host_key}\n')
        subprocess.run(['ssh', '-M', '-f', '-N', 'guest'], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.addCleanup(subprocess.run, ['ssh', '-O', 'exit', 'guest'],
                        check=False, stderr=subprocess.DEVNULL)
        # Nobody else can log in any more.
        (self.server.folder / 'id.pub').write_text('')
        place = self.connect('ssh://guest', host_keys.Trust())
        self.assertEqual(255, place.run(['sh', '-c', 'exit 255']).status)
        place.close()
        self.assertTrue(path.exists())

    def test_a_server_that_allows_no_shared_login_is_named(self):
        self.server.more = 'MaxSessions 1\n'
        self.server.write()
        self.assertRaisesRegex(exception.Unreachable, 'MaxSessions',
                               self.place.run, ['true'])

    def test_a_bad_configuration_is_not_tried_again(self):
        self.configure('Nonsense yes\n')
        with self.assertRaisesRegex(exception.Unreachable,
                                    'configuration') as caught:
            self.place.run(['true'])
        self.assertNotIsInstance(caught.exception, exception.ConnectionLost)

    def test_no_name_is_a_command_of_this_machine(self):
        scratch = self.make_scratch()
        self.configure(f'Host *\nProxyCommand echo %h %r > {scratch}/ran\n'
                       f'Match exec "echo %h %r > {scratch}/ran"\n')
        made = shlex.quote(f'{scratch}/made')
        for name in (f'-oProxyCommand=touch {made}', '-v', f'a;touch {made}',
                     f'$(touch {made})', '`id`', '%d', 'a b', "a'b"):
            for place in ({'host': name}, {'host': 'h', 'user': name}):
                with self.subTest(place):
                    self.assertRaises(exception.InvalidInput,
                                      ssh.SSHExecutor, **place)
        self.assertEqual([], list(scratch.iterdir()))


class HostKeyTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ssh_server.running())
        folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        self.other = {kind: ssh_server.make_key(folder / kind, kind)
                      for kind in ('ecdsa', 'ed25519')}

    def place(self, mode, announce=tuple):
        place = ssh.SSHExecutor.from_url(
            self.server.url, host_keys.Trust(mode, announce))
        self.addCleanup(place.close)
        return place

    def know(self, key, also=''):
        self.server.known.write_text(
            f'[127.0.0.1]:{self.server.port} {key}\n{also}')

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
        self.assert_refused(place, 'ssh-ed25519 SHA256:.* is not known')
        self.assertFalse(self.server.known.exists())

    def test_a_known_key_is_trusted(self):
        place = self.place(KNOWN)
        self.know(self.server.host_key, '# comment\nbroken\n\n')
        self.assert_runs(place)

    def test_another_key_than_the_known_one_is_refused(self):
        self.know(self.other['ed25519'])
        for mode in host_keys.HostKeys:
            self.assert_refused(self.place(mode),
                                'SHA256:.* differs from the known one in '
                                f'{self.server.known}:1')

    def test_a_key_of_another_kind_than_the_known_one_is_refused(self):
        self.know(self.other['ecdsa'])
        subprocess.run(['ssh-keygen', '-q', '-H', '-f', self.server.known],
                       check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for mode in host_keys.HostKeys:
            self.assert_refused(self.place(mode),
                                'ssh-ed25519 SHA256:.* differs from the known')

    def test_a_known_key_in_a_file_with_spaces_counts(self):
        self.know(self.other['ecdsa'])
        path = self.server.folder / 'known to me'
        self.server.known.rename(path)
        self.server.configuration.write_text(
            f'UserKnownHostsFile {self.server.folder}/none "{path}"\n')
        self.assert_refused(self.place(ACCEPT_NEW), f'in {path}:1$')

    def test_a_new_key_is_accepted_on_request_and_no_other_one_later(self):
        place = self.place(ACCEPT_NEW)
        self.assert_runs(place)
        self.assert_runs(place)
        for kind in ('ed25519', 'ecdsa'):
            self.server.show_new_key(kind)
            self.assert_refused(place, 'SHA256:.* differs from the known')
        self.assertFalse(self.server.known.exists())

    def test_a_broken_connection_gives_no_trust(self):
        place = self.place(ACCEPT_NEW)
        self.assert_runs(place)
        self.server.show_new_key('ecdsa')
        self.server.cut()
        self.assertTrue(waiting.poll(
            place._connection.master.has_ended, bool, 10, 0.01))
        with self.assertRaisesRegex(exception.Unreachable, 'differs'):
            place.run(['true'])

    def test_a_key_may_change_with_a_restart_that_was_asked_for(self):
        place = self.place(ACCEPT_NEW)
        self.assert_runs(place)
        self.server.show_new_key('ed25519')
        place.expect_restart()
        self.assert_runs(place)
        self.server.show_new_key('ecdsa')
        self.assert_refused(place, 'differs from the known')

    def test_a_restart_gives_no_trust_to_an_unknown_key(self):
        for mode in host_keys.HostKeys:
            place = self.place(mode)
            self.know(self.server.host_key)
            self.assert_runs(place)
            self.server.show_new_key('ed25519')
            place.expect_restart()
            self.assert_refused(place, 'differs from the known')

    def test_keys_of_the_console_alone_are_trusted(self):
        other = self.other['ed25519']
        announced = [other]
        for mode in host_keys.HostKeys:
            place = self.place(mode, lambda: announced)
            self.know(self.server.host_key)
            self.assert_refused(place, 'differs from the known')
            announced[:] = [self.other['ecdsa'], self.server.host_key]
            self.assert_runs(place)
            # A console that was emptied takes no trust away.
            announced.clear()
            self.know(other)
            self.assert_runs(place)
            announced[:] = [other]

    def test_a_restarted_guest_announces_its_new_keys(self):
        announced = [self.server.host_key]
        for mode in host_keys.HostKeys:
            place = self.place(mode, lambda: announced)
            self.assert_runs(place)
            self.server.show_new_key('ecdsa')
            place.close()
            place.expect_restart()
            announced[:] = [self.server.host_key]
            self.assert_runs(place)
