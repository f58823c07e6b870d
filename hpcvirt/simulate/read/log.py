# SPDX-License-Identifier: Apache-2.0

"""Read a log line by line, and bring its jobs into order."""

import operator
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import workload as workloads

#: The longest line in bytes; the extra specs of a flavor may be in one.
LONGEST = 1 << 16
#: The most jobs that are kept. The longest public log has 2,695,548.
MAX_JOBS = 2_000_000
#: The most lines of a log, comments and empty ones included.
MAX_LINES = 10_000_000
#: Times and durations in seconds must be less: 3000 years. Times in
#: milliseconds since 1970 are more.
MAX_SECONDS = 1e11
#: More CPUs than any computer has.
MAX_CPUS = 100_000_000
#: More memory in MiB than any computer has: 1 EiB.
MAX_MIB = 1 << 40

#: A job before it is known which one is the first: the fields of
#: :class:`hpcvirt.simulate.workload.WorkloadJob`, with the time of the
#: log's clock.
Entry = tuple[float, float, int, int, int, str, int, int]

_ARCHIVES = (
    (b'PK\x03\x04', 'ZIP'), (b'BZh', 'bzip2'), (b'\xfd7zXZ\x00', 'xz'),
    (b'\x28\xb5\x2f\xfd', 'zstd'))
_BYTE_ORDER_MARK = b'\xef\xbb\xbf'


class Log:
    """The lines of a file as text.

    :ivar path: as the user named it
    :ivar where: what messages call it
    :ivar first: the first line that is not empty, without space around it
    :ivar number: of the line that was read last
    :raises InvalidInput: if the file cannot be read, is empty, or is an
        archive
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.where = input_file.name(path)
        self.number = 0
        self._source = input_file.lines(path, LONGEST + 1, MAX_LINES)
        self._entries: list[Entry] = []
        self._added = 0
        self._empty = 0
        for line in self._source:
            self._head = line.removeprefix(_BYTE_ORDER_MARK)
            if self._head.strip():
                break
            self._empty += 1
        else:
            raise exception.InvalidInput(self.where, 'is empty')
        for magic, kind in _ARCHIVES:
            if self._head.startswith(magic):
                raise exception.InvalidInput(
                    self.where, f'is compressed by {kind}; expand it first')
        self.first = _text(self._head).strip()

    def __iter__(self) -> Iterator[str]:
        self.number = self._empty + 1
        yield self._checked(self._head)
        for line in self._source:
            self.number += 1
            yield self._checked(line)

    def fault(self, what: str) -> exception.InvalidInput:
        """Return the exception for the line that was read last."""
        return exception.InvalidInput(f'{self.where}: line {self.number}',
                                      what)

    def add(self, *entry: *Entry) -> None:
        """Add a job, in any order."""
        self._entries.append(entry)
        self._added += 1
        if len(self._entries) > MAX_JOBS * 5 // 4:
            self._sort()

    def workload(self, notes: Sequence[str] = (),
                 flavors: Mapping[str, flavor_model.Flavor] | None = None, *,
                 splits: bool = False) -> workloads.Workload:
        """Bring the jobs into the order of their time, the first at 0.

        :raises InvalidInput: if there is no job
        """
        if not self._entries:
            raise exception.InvalidInput(
                self.where, ' '.join(['has no job that ran.', *notes])
                .rstrip('.'))
        self._sort()
        if self._added > MAX_JOBS:
            used = (f'Only the first {MAX_JOBS:,} of {self._added:,} jobs '
                    'are used.')
            notes = (*notes, used)
        start = self._entries[0][0]
        return workloads.Workload(
            self.where,
            tuple(workloads.WorkloadJob(entry[0] - start, *entry[1:])
                  for entry in self._entries),
            flavors or {}, splits, tuple(notes))

    def _sort(self) -> None:
        self._entries.sort(key=operator.itemgetter(0))
        del self._entries[MAX_JOBS:]

    def _checked(self, line: bytes) -> str:
        if len(line) > LONGEST:
            raise self.fault(f'is longer than {LONGEST} bytes')
        return _text(line)


def _text(line: bytes) -> str:
    return line.decode('utf-8', 'replace')


def note_count(number: int, one: str, more: str, what: str) -> tuple[str, ...]:
    """Write a note on a number of jobs, or none if there is none.

    :param one: what one of them is called
    :param what: for example ``left out``
    """
    if not number:
        return ()
    subject, verb = (one, 'is') if number == 1 else (more, 'are')
    return (f'{number:,} {subject} {verb} {what}.',)
