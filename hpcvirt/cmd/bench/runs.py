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

"""``hpcvirt bench runs``: what goes on, and what was interrupted."""

import argparse
import json
import sys
import typing
from collections.abc import Iterator

from hpcvirt import text_table
from hpcvirt.bench.run import remaining
from hpcvirt.bench.run import schedule
from hpcvirt.cmd import extras
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import store_arguments

_ABOUT = """\
List the runs that go on, and those that were interrupted. The command that
began a run continues it; "hpcvirt bench stop" ends what it left running.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'runs', help='list runs that go on or were interrupted',
        description=_ABOUT)
    store_arguments.add(parser)
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='table (the default) or json')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read and print."""
    found = list(_unfinished(args))
    if args.format == 'json':
        print(json.dumps(found, indent=2, allow_nan=False))
    elif not found:
        print('No run goes on, and none was interrupted.')
    else:
        rows = [(each['result'], each['run'], each['state'],
                 each['started_at'],
                 f'{each["samples"]} of {each["planned_samples"]}',
                 each['remaining'] or '-', ', '.join(each['targets']))
                for each in found]
        sys.stdout.write(text_table.draw(
            ('Result', 'Run', 'State', 'Since', 'Samples', 'Time', 'Targets'),
            rows, width=terminal.width()))
    return 0


def _unfinished(args: argparse.Namespace) -> Iterator[dict[str, typing.Any]]:
    """Describe the last run of each unfinished result."""
    store = store_arguments.open_existing(args)
    if store is None:
        return
    with extras.bench():
        from hpcvirt.bench.results import activity
    try:
        for entry in store.entries():
            if entry.finished_at is not None:
                continue
            process = activity.process(args.data, entry.id)
            for last in store.result(entry.id).runs[-1:]:
                missing = schedule.missing(last)
                yield {
                    'result': entry.id, 'run': last.label,
                    'state': 'interrupted' if process is None else
                             f'process {process.pid} on {process.host}',
                    'started_at': last.started_at,
                    'samples': len(last.samples),
                    'planned_samples': len(last.samples) + len(missing),
                    'remaining_s': remaining.seconds(last),
                    'remaining': remaining.told(last),
                    'targets': last.targets,
                }
    finally:
        store.close()
