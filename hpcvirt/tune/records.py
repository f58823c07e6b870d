# SPDX-License-Identifier: Apache-2.0

"""Read the records of experiments from the directory of raw outputs.

The record of an experiment is a file in ``tunes``, which is replaced
atomically after each trial. Beside it are two files for each host: the private
key of its guests, and its settings, null for those of today.
"""

import dataclasses
import hashlib
import json
import os

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.acceptance import records
from hpcvirt.tune import configurations
from hpcvirt.tune import model


@dataclasses.dataclass(frozen=True)
class TuneRecord:
    """What an experiment has measured so far.

    :ivar digest: digest of the document and the names of its hosts
    :ivar options: the options of the command that the figures depend on
    """

    name: str
    digest: str
    options: str = ''
    trials: tuple[model.Trial, ...] = ()
    schema_version: int = 1


def path(data: str, name: str, kind: str = 'json') -> str:
    """Return the file of an experiment, or of a host.

    :param data: directory of raw outputs
    :param kind: ``json`` for an experiment; ``key`` or ``settings`` for a host
    """
    return os.path.join(data, 'tunes', f'{name}.{kind}')


def find(data: str, wanted: TuneRecord) -> TuneRecord:
    """Read the record of an experiment.

    :param wanted: returned if there is none; empty options stand for any
    :raises InvalidInput: if it is damaged, or was begun with another document
        or other options
    """
    where = path(data, wanted.name)
    if not os.path.exists(where):
        return wanted
    found = records.read_record(TuneRecord, wanted.schema_version, where)
    if found.digest != wanted.digest:
        raise exception.InvalidInput(
            where, 'is the record of another document of the name '
            f'{wanted.name}; give the document another name')
    if wanted.options not in ('', found.options):
        raise exception.InvalidInput(where, f'was begun with {found.options}')
    return found


def make(document: configurations.TuneDocument, name: str,
         options: str = '') -> TuneRecord:
    """Make the record of an experiment that has no trial yet."""
    today = document.configurations[document.space.today]
    text = json.dumps(serialization.dump([
        document.space.experiment, today.content, today.flavor, today.guests,
        [host.name for host in document.hosts]]), sort_keys=True)
    return TuneRecord(name, hashlib.sha256(text.encode()).hexdigest(), options)
