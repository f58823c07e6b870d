# SPDX-License-Identifier: Apache-2.0

"""Store the records of experiments in the directory of raw outputs.

The record of an experiment is a file in ``tunes``, which is replaced
atomically after each trial. Beside it are the settings of each host that has
others than today's.
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
    :ivar ended_at: when the last trial ended, or the time limit was reached;
        empty before
    """

    name: str
    digest: str
    options: Mapping[str, str]
    trials: tuple[trial.Trial, ...] = ()
    ended_at: str = ''
    schema_version: int = SCHEMA_VERSION


@dataclasses.dataclass(frozen=True)
class HostState:
    """The settings of a host that are not today's.

    :ivar settings: their digest; empty while they are being changed
    """

    settings: str
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

    def find(self, name: str, digest: str,
             options: Mapping[str, str] | None = None) -> TuneRecord | None:
        """Read the record of an experiment.

        :param options: those of the command; None if it has none
        :returns: None if there is none
        :raises InvalidInput: if it is damaged, or was begun otherwise
        """
        path = self.path(name)
        if not pathlib.Path(path).exists():
            return None
        found = records.read_record(TuneRecord, SCHEMA_VERSION, path)
        if found.digest != digest:
            raise exception.InvalidInput(
                path, 'is the record of another document of the name '
                f'{name}; give the document another name')
        if options is not None and options != found.options:
            raise exception.InvalidInput(path, 'was begun with ' + ' '.join(
                f'{name} {value}' for name, value in found.options.items()))
        return found

    def read_settings(self, host: str) -> str | None:
        """Read the digest of the settings of a host.

        :returns: None if they are today's
        """
        path = self._settings(host)
        return records.read_record(
            HostState, SCHEMA_VERSION,
            str(path)).settings if path.exists() else None

    def write_settings(self, host: str, settings: str | None) -> None:
        """Write what :meth:`read_settings` reads."""
        if settings is None:
            self._settings(host).unlink(missing_ok=True)
        else:
            records.write_record(str(self._settings(host)),
                                 HostState(settings))

    def _settings(self, host: str) -> pathlib.Path:
        return self._folder / f'{host}.settings'


def make_digest(experiment: experiments.Experiment,
                planned: Sequence[configurations.Configuration],
                hosts: Sequence[str]) -> str:
    """Return the digest of an experiment.

    :param planned: today's configuration; the document changes it
    :param hosts: the names of the hosts
    """
    text = json.dumps(serialization.dump([
        experiment, [[each.content, each.flavor, each.guests]
                     for each in planned], hosts]), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
