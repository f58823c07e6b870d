# SPDX-License-Identifier: Apache-2.0

"""Stand in for the interpreter with which stestr lists tests and runs them.

    python -m tools.test_process -m stestr.subunit_runner.run ARGUMENTS...

To import Nova and all tests takes as long as dozens of them. The process that
lists the tests has imported them: it leaves a copy of itself behind, and each
worker is a copy of that one. The program that stestr has started for a worker
waits for the copy, which writes the results where the program would have.

tools/run_tests.py names the socket at which the first copy is reached, and
ends it. Where none is reached, the program runs the tests itself.
"""

import contextlib
import faulthandler
import gc
import os
import runpy
import socket
import sys
import threading
from collections.abc import Sequence

#: The variable with the path of the socket.
SOCKET = 'HPCVIRT_TEST_SOCKET'
#: How often the first copy looks whether the run has ended without it.
WATCH_S = 5.0

#: What it is before the tests are imported.
_Socket = socket.socket


def main(arguments: Sequence[str]) -> None:
    """List tests, or run them."""
    if '--list' in arguments:
        _run(arguments)
        sys.stdout.flush()
        _leave_copy()
        return
    has_ended = _ask_for_copy(arguments)
    if has_ended is None:
        os.execv(sys.executable,  # noqa: S606 - what stestr has asked for
                 [sys.executable, *arguments])
    sys.exit(not has_ended)


def _run(arguments: Sequence[str]) -> None:
    """Do what the interpreter would do with ``-m MODULE ARGUMENTS...``."""
    _, module, *rest = arguments
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name='__main__', alter_sys=True)


def _leave_copy() -> None:
    """Leave a copy of this process behind, unless no copy would work."""
    # Only the thread that makes a copy is in it.
    if threading.active_count() > 1:
        return
    # Copies would share the events for which eventlet waits.
    if socket.socket is not _Socket:
        return
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(os.environ[SOCKET])
    except OSError:  # the path may be too long
        return
    listener.listen()
    # See tests/limit.py: the thread of this timer would not be in a copy.
    faulthandler.cancel_dump_traceback_later()
    if os.fork():
        return
    # stestr reads until nobody can write.
    with open(os.devnull, 'r+b') as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    # What is never given up need not be looked through for garbage.
    gc.freeze()
    # A test of Nova makes many objects, few of which become garbage.
    gc.set_threshold(20_000)
    listener.settimeout(WATCH_S)
    connection = _serve(listener)
    if connection:
        _be_worker(connection)
    os._exit(0)


def _serve(listener: socket.socket) -> socket.socket | None:
    """Make copies until the run has ended.

    :returns: in a copy, the connection to the program that asked for it
    """
    leader = os.getsid(0)
    while True:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            try:
                os.kill(leader, 0)
            except ProcessLookupError:
                return None
            continue
        if not os.fork():
            listener.close()
            return connection
        connection.close()


def _be_worker(connection: socket.socket) -> None:
    """Run the tests of one worker, and say that they have ended."""
    connection.settimeout(None)
    request, streams, _, _ = socket.recv_fds(connection, 1 << 16, 1)
    os.dup2(streams[0], 1)
    os.close(streams[0])
    _run(request.decode().split('\0'))
    connection.sendall(b'.')
    # The process, which ends as any other does, closes the connection, for
    # which the program waits.
    connection.detach()
    sys.exit()


def _ask_for_copy(arguments: Sequence[str]) -> bool | None:
    """Let a copy run tests, and wait until its process has ended.

    :returns: whether the tests have ended; None if there is nothing to copy
    """
    with contextlib.closing(_Socket(socket.AF_UNIX)) as connection:
        try:
            connection.connect(os.environ[SOCKET])
        except (KeyError, OSError):
            return None
        socket.send_fds(connection, ['\0'.join(arguments).encode()], [1])
        said = b''
        while more := connection.recv(1):
            said += more
        # A copy that was killed has said nothing.
        return bool(said)


if __name__ == '__main__':
    main(sys.argv[1:])
