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

"""The files of ``hpcvirt host watch``: recorded frames, and its state."""

import itertools
import json
import os
import pathlib
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt import serialization
from hpcvirt.health import frame as frames
from hpcvirt.health import signature

#: A host with 512 huge page pools has a shorter line.
_LONGEST = 1 << 18


def read(path: str) -> Iterator[frames.Frame]:
    """Read recorded frames.

    A line that is not complete is left out: the recording was interrupted.

    :raises InvalidInput: naming the line that is no frame
    """
    name = input_file.name(path)
    for number, line in enumerate(input_file.lines(path, _LONGEST), 1):
        if not line.rstrip().endswith(b'}'):
            continue
        where = f'{name}, line {number}'
        yield frames.read(serialization.json_value(line, where), where)


def append(path: str, frame: frames.Frame) -> None:
    """Add a frame to a recording.

    :raises InvalidInput: if it cannot be written
    """
    line = json.dumps(serialization.to_plain(frame),
                      separators=(',', ':')) + '\n'
    try:
        with open(path, 'ab') as stream:
            if stream.tell() and not _ends_with_line(path):
                stream.write(b'\n')
            stream.write(line.encode())
    except OSError as exc:
        raise _unusable(path, exc) from exc


def _ends_with_line(path: str) -> bool:
    with open(path, 'rb') as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read() == b'\n'


def load(path: str) -> signature.State:
    """Read the state, a new one if there is no file yet.

    :raises InvalidInput: if it is of another form
    """
    if not os.path.lexists(path):
        return signature.State()
    plain = serialization.json_value(
        input_file.content(path, _LONGEST), path)
    serialization.require_version(plain, signature.SCHEMA_VERSION, path)
    return serialization.from_plain(signature.State, plain, path)


def save(path: str, state: signature.State) -> None:
    """Write the state, so that a crash leaves the old one or the new one.

    :raises InvalidInput: if it cannot be written
    """
    target = pathlib.Path(os.path.realpath(path))
    text = json.dumps(serialization.to_plain(state)) + '\n'
    try:
        output_file.replace(target, text.encode(), 0o644)
    except OSError as exc:
        raise _unusable(path, exc) from exc


def put_aside(path: str) -> str:
    """Rename a file that cannot be read, and return the new name.

    :raises InvalidInput: if that is not possible
    """
    for number in itertools.count():
        aside = f'{path}.unreadable{number or ""}'
        if not os.path.lexists(aside):
            break
    try:
        os.rename(path, aside)
    except OSError as exc:
        raise _unusable(path, exc) from exc
    return aside


def _unusable(path: str, exc: OSError) -> exception.InvalidInput:
    return exception.InvalidInput(
        path, f'cannot be written ({exc.strerror or exc})')
