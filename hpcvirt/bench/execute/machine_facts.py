# SPDX-License-Identifier: Apache-2.0

"""Read facts of a machine: what it prints as lines of a name and a value.

Most facts are files of the kernel, which one shell script prints; what they
mean is decided here and not on the machine. The script needs /proc, /sys, and
a shell with grep, sed and ls of GNU or busybox; it leaves out what the machine
does not have. Other facts come from scripts that print the same lines.
"""

import re
import shlex
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.execute import executor

#: An answer has a few MiB even for the largest machines.
MAX_BYTES = 16 << 20

#: Linux creates a new id at each boot.
BOOT_ID = 'proc/sys/kernel/random/boot_id'
HOSTNAME = 'proc/sys/kernel/hostname'
#: It names all CPUs that there may ever be, or those that were given.
STATUS = 'proc/self/status'
CPUS_ONLINE = 'sys/devices/system/cpu/online'
MEMORY = 'proc/meminfo'
SIBLINGS = 'sys/devices/system/cpu/cpu*/topology/thread_siblings_list'

#: Prints files. Its first argument has patterns of their names. Each further
#: one, ``FILE:EXPRESSION``, prints lines of a long file: those that match and
#: are before the first empty line, since /proc/cpuinfo says the same of each
#: CPU. After ``--`` come the names of programs and libraries; it prints their
#: inodes, sizes and times. A single grep reads all files, since starting a
#: program takes long in an emulated guest; it goes on where a file cannot be
#: read. Addresses of PCI devices have colons. The shell itself would read byte
#: by byte, and gets nothing of the lists of CPUs in sysfs.
READ = r"""
cd /
LC_ALL=C grep -s '' /dev/null $1 | LC_ALL=C sed -e '
s|^\([^:]*/[0-9a-f]\{4,\}:[0-9a-f]*:[0-9a-f]*\.[0-7]/[^:]*\):|\1=|
t
s/:/=/'
shift
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
  sed -n "/^\$/q;s|${1#*:}|${1%%:*}=&|p" "${1%%:*}" 2> /dev/null
  shift
done
[ "$#" -lt 2 ] || {
  shift
  ls -lLdin "$@" 2> /dev/null | sed 's/^/state=/'
}
:
"""


class MachineFacts:
    """What a machine has answered.

    :param values: the values of each name, in their order
    """

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def lines(self, name: str) -> tuple[str, ...]:
        """Return all values of a name; none if it is unknown."""
        return tuple(self._values.get(name, ()))

    def text(self, name: str) -> str:
        """Return a file without surrounding white space; empty if unknown."""
        return '\n'.join(self.lines(name)).strip()

    def line(self, name: str) -> str:
        """Return the first value with single spaces; empty if unknown."""
        return ' '.join(next(iter(self.lines(name)), '').split())

    def row(self, name: str, word: str) -> str:
        """Return what follows a word and a colon in a file."""
        for line in self.lines(name):
            first, colon, rest = line.partition(':')
            if colon and first.strip() == word:
                return ' '.join(rest.split())
        return ''

    def names(self, folder: str) -> list[str]:
        """List what is known to be in a folder."""
        return sorted({
            name.removeprefix(f'{folder}/').partition('/')[0]
            for name in self._values if name.startswith(f'{folder}/')})

    def find(self, pattern: str) -> Iterator[tuple[str, str]]:
        """Yield the files of a pattern, each with its first line."""
        expression = re.compile(
            re.escape(pattern).replace(r'\*', '[^/]*'))
        for name in self._values:
            if expression.fullmatch(name):
                yield name, self.line(name)


def read(place: executor.Executor, *patterns: str,
         states: Sequence[str] = (),
         timeout_s: float = executor.SHORT_S) -> MachineFacts:
    """Read files of a machine; see :data:`READ`.

    :param patterns: of names, or ``FILE:EXPRESSION``
    :param states: absolute names of files; the lines ``state`` of the answer
        change when one of them is replaced
    :raises Unreachable: if the machine does not answer
    """
    return ask(place, READ, *_sort(patterns),
               *(('--', *states) if states else ()), timeout_s=timeout_s)


def _sort(patterns: Sequence[str]) -> list[str]:
    """Return the first argument and the further ones."""
    usual = [pattern for pattern in patterns if ':' not in pattern]
    return [' '.join(usual), *(pattern for pattern in patterns
                               if ':' in pattern)]


def ask(place: executor.Executor, script: str, *arguments: str,
        timeout_s: float = executor.SHORT_S) -> MachineFacts:
    """Run a script that prints facts.

    :raises Unreachable: if the machine does not answer, or not with facts
    """
    done = place.run(['sh', '-c', script, 'sh', *arguments], b'', timeout_s)
    if done.status:
        said = done.stderr.decode('utf-8', 'replace').split('\n')
        raise exception.Unreachable(
            f'{place.name}: its facts cannot be read: '
            + (next(filter(None, map(str.strip, said)), '')
               or f'status {done.status}'))
    if len(done.stdout) > MAX_BYTES:
        raise exception.Unreachable(
            f'{place.name}: its facts are longer than {MAX_BYTES >> 20} MiB')
    return parse(done.stdout.decode('utf-8', 'replace'))


def parse(printed: str) -> MachineFacts:
    """Parse what was printed; lines of another form are ignored."""
    values: dict[str, list[str]] = {}
    for line in printed.split('\n'):
        name, equals, value = line.partition('=')
        if equals and name and not name.startswith(' '):
            values.setdefault(name, []).append(value)
    return MachineFacts(values)


def make_command(*patterns: str) -> str:
    """Make the command of a shell that prints files; see :data:`READ`."""
    return shlex.join(['sh', '-c', READ, 'sh', *_sort(patterns)])
