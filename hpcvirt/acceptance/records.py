# SPDX-License-Identifier: Apache-2.0

"""Store the records of acceptances in the directory of raw outputs.

Each acceptance is a file in ``acceptances``, which is replaced atomically
after each step. Nothing is ever deleted except the private key of an
acceptance that has ended.
"""

import pathlib
import re

from hpcvirt import exception
from hpcvirt import saved_document
from hpcvirt.acceptance import acceptance
from hpcvirt.bench.model import judgement
from hpcvirt.bench.results import location

_FOLDER = 'acceptances'
_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}')


class Records:
    """The acceptances in a directory of raw outputs.

    :raises InvalidInput: if the directory cannot be used
    """

    def __init__(self, data: str) -> None:
        location.make_directory(data)
        self._folder = pathlib.Path(data, _FOLDER)
        location.make_directory(str(self._folder))

    def path(self, found: acceptance.Acceptance) -> str:
        """Return the file of an acceptance."""
        began = re.sub('[^0-9T]', '', found.began_at.partition('+')[0])
        return str(self._folder / f'{found.host}.{began}.json')

    def key_file(self, host: str) -> str:
        """Return the file of the private key for the guests on a host."""
        return str(self._folder / f'{host}.key')

    def write(self, found: acceptance.Acceptance) -> None:
        """Write an acceptance.

        :raises InvalidInput: if that fails; the earlier file is kept
        """
        saved_document.save(self.path(found), found)

    def read(self) -> tuple[acceptance.Acceptance, ...]:
        """Read all acceptances, oldest first.

        :raises InvalidInput: if a file is not an acceptance
        """
        found = [saved_document.find(
            acceptance.Acceptance, acceptance.SCHEMA_VERSION, str(path))
            for path in self._folder.glob('*.json')]
        return tuple(sorted(filter(None, found),
                            key=lambda each: each.began_at))

    def unfinished(self, host: str,
                   request: str) -> acceptance.Acceptance | None:
        """Return the unfinished acceptance of a request; None without one."""
        return next((each for each in reversed(self.read())
                     if (each.host, each.request, each.ended_at)
                     == (host, request, '')), None)

    def repaired_at(self, host: str) -> str:
        """Return when the first acceptance after the last repair began.

        :returns: empty if the host was never repaired
        """
        of_host = [each for each in self.read() if each.host == host]
        last = next((each.repaired for each in reversed(of_host)
                     if each.repaired), None)
        return next((each.began_at for each in of_host
                     if each.repaired == last), '')

    def count_hosts(self) -> int:
        """Count the hosts that were accepted or refused."""
        return len({each.host for each in self.read()
                    if each.ended_at and each.parts})

    def refused(self) -> frozenset[str]:
        """Return the hosts whose last acceptance, or last gate, failed."""
        last: dict[tuple[str, bool], object] = {}
        for each in self.read():
            if each.gate is not None:
                last[each.host, False] = each.gate.result
            if each.ended_at and each.parts:
                last[each.host, True] = each.result
        return frozenset(host for (host, _), word in last.items()
                         if word is judgement.VerdictResult.FAIL)


def check_host(name: str) -> None:
    """Check that a host name can be part of a file name.

    :raises InvalidInput: if it cannot
    """
    if not _NAME.fullmatch(name):
        raise exception.InvalidInput(
            f'host {name[:64]}', 'is not the name of a compute host')
