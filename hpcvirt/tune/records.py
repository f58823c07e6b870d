# SPDX-License-Identifier: Apache-2.0

"""Store the records of experiments in the directory of raw outputs.

The record of an experiment is a file in ``tunes``, which is replaced
atomically after each trial, and before and after each change of a host.
"""

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.acceptance import records
from hpcvirt.bench.results import location
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import trial

SCHEMA_VERSION = 1
_FOLDER = 'tunes'


@dataclasses.dataclass(frozen=True)
class TuneRecord:
    """What an experiment has measured so far.

    :ivar digest: digest of the document, see :func:`make_digest`
    :ivar options: option of the command -> its value, for all options that the
        figures depend on
    :ivar changed: host -> digest of the settings that it has instead of
        today's; empty while they are being changed
    :ivar ended_at: when the last trial ended, or the time limit was reached;
        empty before
    """

    name: str
    digest: str
    began_at: str
    options: Mapping[str, str]
    trials: tuple[trial.Trial, ...] = ()
    changed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ended_at: str = ''
    schema_version: int = SCHEMA_VERSION


class TuneRecords:
    """The records of experiments in a directory of raw outputs."""

    def __init__(self, data: str) -> None:
        self._folder = pathlib.Path(data, _FOLDER)

    def path(self, name: str) -> str:
        """Return the file of a record."""
        return str(self._folder / f'{name}.json')

    def key_file(self, host: str) -> str:
        """Return the file of the private key for the guests on a host."""
        return str(self._folder / f'{host}.key')

    def write(self, found: TuneRecord) -> None:
        """Write a record.

        :raises InvalidInput: if the directory cannot be used
        :raises Unreachable: if that fails; the earlier file is kept
        """
        location.make_directory(str(self._folder.parent))
        location.make_directory(str(self._folder))
        records.write_record(self.path(found.name), found)

    def find(self, name: str, digest: str) -> TuneRecord | None:
        """Read the record of an experiment.

        :returns: None if there is none
        :raises InvalidInput: if it is damaged, or is of another document
        """
        if not pathlib.Path(self.path(name)).exists():
            return None
        found = records.read_record(TuneRecord, SCHEMA_VERSION,
                                    self.path(name))
        if found.digest != digest:
            raise exception.InvalidInput(
                self.path(name), 'is the record of another document of the '
                f'name {name}; give the document another name')
        return found

    def find_unfinished(self, prefix: str, digest: str) -> TuneRecord | None:
        """Read the last unfinished record of a document.

        :param prefix: the beginning of the name
        """
        for path in sorted(self._folder.glob(f'{prefix}*.json'), reverse=True):
            found = records.read_record(TuneRecord, SCHEMA_VERSION, str(path))
            if (found.digest, found.ended_at) == (digest, ''):
                return found
        return None


def make_digest(experiment: experiments.Experiment,
                planned: Sequence[configurations.Configuration],
                hosts: Sequence[str]) -> str:
    """Return the digest of an experiment.

    :param planned: the configurations that are compared; today's suffices if
        the others follow from the document
    :param hosts: the names of the hosts
    """
    text = json.dumps(serialization.dump([
        experiment, [[each.content, each.flavor, each.guests]
                     for each in planned], hosts]), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
