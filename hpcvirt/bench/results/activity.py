# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


"""Which process measures a result at this moment.

A file in the directory of raw outputs is locked for as long as the process
lives, whatever ends it, and names the process.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
from collections.abc import Iterator

from hpcvirt import exception


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A process that measures.

    :ivar host: name of the machine that it runs on
    """

    pid: int
    host: str


@contextlib.contextmanager
def measuring(data: str, entry_id: str) -> Iterator[None]:
    """Measure a result, alone.

    :param data: directory of raw outputs
    :raises Unreachable: if another process does
    """
    path = _path(data, entry_id)
    try:
        stream = path.open('a+')
    except OSError as exc:
        raise exception.Unreachable(f'{path}: {exc.strerror}') from exc
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            other = process(data, entry_id)
            raise exception.Unreachable(
                f'result {entry_id} is being measured' + (
                    f' by process {other.pid} on {other.host}' if other
                    else '')) from exc
        try:
            stream.truncate(0)
            json.dump({'pid': os.getpid(), 'host': os.uname().nodename},
                      stream)
            stream.flush()
            yield
        finally:
            path.unlink(missing_ok=True)


def process(data: str, entry_id: str) -> Process | None:
    """Find the process that measures a result; None if there is none."""
    try:
        with _path(data, entry_id).open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found = json.load(stream)
                return Process(int(found['pid']), str(found['host']))
    except (OSError, ValueError, TypeError, KeyError):
        # There is no such file, or it is being written.
        return None
    return None


def _path(data: str, entry_id: str) -> pathlib.Path:
    return pathlib.Path(data, f'{entry_id}.lock')
