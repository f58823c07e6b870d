# SPDX-License-Identifier: Apache-2.0

"""The files of ``hpcvirt host watch``: recorded samples, and its state."""

import itertools
import json
import os
import pathlib
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import output_file
from hpcvirt import serialization
from hpcvirt.health import host_sample
from hpcvirt.health import signature

#: A host with 512 huge page pools has a shorter line.
_LONGEST = 1 << 18


def read(path: str) -> Iterator[host_sample.HostSample]:
    """Read recorded samples.

    A line that is not complete is left out: the recording was interrupted.

    :raises InvalidInput: naming the line that is no sample
    """
    name = input_file.name(path)
    for number, line in enumerate(input_file.lines(path, _LONGEST), 1):
        if not line.rstrip().endswith(b'}'):
            continue
        where = f'{name}, line {number}'
        yield host_sample.read(serialization.json_value(line, where), where)


def append(path: str, sample: host_sample.HostSample) -> None:
    """Add a sample to a recording.

    :raises InvalidInput: if it cannot be written
    """
    line = json.dumps(serialization.dump(sample),
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


def load(path: str) -> signature.HostHealth:
    """Read the state, a new one if there is no file yet.

    :raises InvalidInput: if it is of another form
    """
    if not os.path.lexists(path):
        return signature.HostHealth()
    plain = serialization.json_value(
        input_file.content(path, _LONGEST), path)
    serialization.require_version(plain, signature.SCHEMA_VERSION, path)
    return serialization.load(signature.HostHealth, plain, path)


def save(path: str, state: signature.HostHealth) -> None:
    """Write the state, so that a crash leaves the old one or the new one.

    :raises InvalidInput: if it cannot be written
    """
    target = pathlib.Path(os.path.realpath(path))
    text = json.dumps(serialization.dump(state)) + '\n'
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
