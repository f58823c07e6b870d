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

"""The commands ``openstack hpc ...``, each of which is one of ``hpcvirt``.

The arguments are those of ``hpcvirt``, and so are the functions that answer:
what they print as a JSON document becomes the rows of a table of
OpenStackClient. No command needs authentication before it asks
a cloud.
"""

import argparse
import contextlib
import functools
import io
import json
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from osc_lib.cli import format_columns
from osc_lib.command import command

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd.flavor import apply
from hpcvirt.cmd.flavor import lint
from hpcvirt.cmd.flavor import plan
from hpcvirt.cmd.fleet import capacity
from hpcvirt.cmd.fleet import explain
from hpcvirt.cmd.fleet import make_room

#: Options with which a command writes something else than rows.
_OWN_OUTPUT = ('html', 'serve')


#: Options that OpenStackClient would take for its own, wherever they stand:
#: --log is short for its --log-file, to which it writes.
_RENAMED = {'--log': '--hpc-log'}


class _Adapted:
    """A parser whose options do not collide with those of OpenStackClient.

    --format is left out: OpenStackClient has one, with more formats.
    """

    def __init__(self, parser: Any) -> None:
        vars(self)['_parser'] = parser

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._parser, name, value)

    def add_argument(self, *names: str, **more: Any) -> None:
        """Add an argument."""
        if '--format' in names:
            return
        for name in set(names) & _RENAMED.keys():
            more.setdefault('dest', name.removeprefix('--'))
        self._parser.add_argument(
            *(_RENAMED.get(name, name) for name in names), **more)

    def add_argument_group(self, *words: str, **more: Any) -> '_Adapted':
        """Add a group of arguments."""
        return _Adapted(self._parser.add_argument_group(*words, **more))


class _Answer(command.Lister):
    """The answer of a command of hpcvirt.

    :cvar arguments: adds the arguments
    :cvar rows: the key of the rows in the document
    :cvar fields: the keys of each row, which are the columns
    """

    auth_required = False
    arguments: Callable[[Any], None]
    rows: str
    fields: tuple[str, ...]

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        self.arguments(_Adapted(parser))
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Answer, with the exit status of hpcvirt."""
        if any(getattr(parsed_args, name, None) for name in _OWN_OUTPUT):
            parsed_args.format = 'table'
            return self._status_of(functools.partial(
                parsed_args.run, parsed_args))
        return self._status_of(functools.partial(super().run, parsed_args))

    def take_action(self, parsed_args: argparse.Namespace,
                    ) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """Return the columns and rows."""
        parsed_args.format = 'json'
        parsed_args.connect = self._connect
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            self._status = parsed_args.run(parsed_args)
        document = json.loads(written.getvalue())
        if parsed_args.formatter == 'table':
            self._notes = printable.lines(self.notes(document))
        return tuple(map(_heading, self.fields)), (
            tuple(_cell(row.get(field)) for field in self.fields)
            for row in document[self.rows])

    def notes(self, document: Mapping[str, Any]) -> Iterator[str]:
        """Say what is not in the rows."""
        del document
        yield from ()

    def _connect(self) -> Any:
        """Return a client of the cloud that OpenStackClient has chosen."""
        manager = self.app.client_manager
        manager.setup_auth()
        return manager.hpc

    def _status_of(self, answer: Callable[[], int]) -> int:
        self._status, self._notes = 0, ''
        try:
            status = answer() or self._status
            self.app.stdout.flush()
            self.app.stderr.write(self._notes)
            return status
        except exception.HpcvirtError as exc:
            self.app.stderr.write(printable.lines([str(exc)]))
            return 2


class Explain(_Answer):
    """Say why an instance fits on no host."""

    arguments = staticmethod(explain.add)
    rows = 'hosts'
    fields = ('name', 'fits', 'step', 'code', 'reason', 'cells')

    def notes(self, document: Mapping[str, Any]) -> Iterator[str]:
        for item in document['nearest']:
            yield f'It fits with this change: {item["change"]}'


class Capacity(_Answer):
    """Count what a fleet still takes."""

    arguments = staticmethod(capacity.add)
    rows = 'flavors'
    fields = ('name', 'total', 'by_sums', 'lost', 'per_host')


class MakeRoom(_Answer):
    """Find the fewest moves that make room."""

    arguments = staticmethod(make_room.add)
    rows = 'moves'
    fields = ('id', 'from', 'to', 'cells', 'kind', 'done', 'failure')

    def notes(self, document: Mapping[str, Any]) -> Iterator[str]:
        if not document['fits']:
            yield 'No such moves make room'
        for place in document.get('places', ()):
            yield f'Then it fits on {place["host"]}'
        for kept in document.get('standing', ()):
            hosts = ', '.join(place['host'] for place in kept['places'])
            yield (f'{kept["flavor"]}, {kept["count"]} of them: '
                   + (f'then on {hosts}' if kept['fits'] else
                      'no such moves make room'))


class FlavorPlan(_Answer):
    """Plan flavors for hosts."""

    arguments = staticmethod(plan.add_arguments)
    rows = 'flavors'
    fields = ('name', 'vcpus', 'ram_mib', 'disk_gib', 'extra_specs')


class FlavorApply(_Answer):
    """Create the planned flavors in a cloud."""

    arguments = staticmethod(apply.add_arguments)
    rows = 'steps'
    fields = ('name', 'action', 'differences', 'done', 'error')


class FlavorLint(_Answer):
    """Check existing flavors."""

    arguments = staticmethod(lint.add_arguments)
    rows = 'findings'
    fields = ('severity', 'flavor', 'key', 'code', 'message', 'advice')


class _List(format_columns.ListColumn):
    """A list, also of numbers, in one line for people."""

    def human_readable(self) -> str:
        return ', '.join(map(str, self._value))


def _heading(field: str) -> str:
    return field.replace('_', ' ').title()


def _cell(value: Any) -> Any:
    """Let formatters for people write lists and mappings in one line."""
    if isinstance(value, list):
        return _List(value)
    if isinstance(value, dict):
        return format_columns.DictColumn(value)
    return value
