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

"""``hpcvirt bench stop``: end a run and what it left at its targets."""

import argparse
import os
import signal
import sys
import typing

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import waiting
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.bench import targets

if typing.TYPE_CHECKING:
    from hpcvirt.bench.model import record

_ABOUT = """\
End a run: the process that measures, if it runs on this machine, and all that
the run started at its targets, the processes of mpirun included. Finished
samples are kept, also one that has ended and was not read yet. The command
that began the run continues it.
"""

#: How long the process may take to end.
END_S = 20.0
PAUSE_S = 0.1


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('stop', help='end a run, also at its targets',
                              description=_ABOUT)
    parser.add_argument('result', metavar='RESULT',
                        help='as in "hpcvirt bench runs"')
    targets.add_options(parser)
    store_arguments.add(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """End the process, then what runs at each target."""
    begun = _begun(args)
    _end_process(args)
    places = {word: [run.id for run in begun if word in run.targets]
              for run in begun for word in run.targets}
    failed = False
    for word, run_ids in places.items():
        try:
            line = _stop(args, word, run_ids)
        except exception.HpcvirtError as exc:
            failed = True
            output.complain(f'hpcvirt: not stopped: {exc}')
        else:
            sys.stdout.write(printable.lines([line]))
    samples = sum(len(run.samples) for run in begun)
    print(f'{samples} finished samples are kept; the command that began the '
          'run continues it.')
    return 2 if failed else 0


def _begun(args: argparse.Namespace) -> 'tuple[record.Run, ...]':
    """Read the runs of an unfinished result."""
    store = store_arguments.open_existing(args)
    try:
        for entry in store.entries() if store else ():
            if entry.id == args.result:
                if entry.finished_at is not None:
                    raise exception.InvalidInput(
                        entry.id, 'is finished, and nothing of it runs')
                return store.result(entry.id).runs if store else ()
    finally:
        if store is not None:
            store.close()
    raise exception.InvalidInput(args.result, 'the store has no such result')


def _end_process(args: argparse.Namespace) -> None:
    """End the process that measures; it would start its jobs again."""
    with extras.bench():
        from hpcvirt.bench.results import activity
    process = activity.process(args.data, args.result)
    if process is None:
        return
    if process.host != os.uname().nodename:
        raise exception.Unreachable(
            f'{args.result} is measured by process {process.pid} on '
            f'{process.host}: stop it there')
    # Nothing is lost if it is killed; SIGINT may be ignored, as it is by what
    # a shell started in the background.
    os.kill(process.pid, signal.SIGTERM)
    left = waiting.until(lambda: activity.process(args.data, args.result),
                         lambda found: found is None, END_S, PAUSE_S)
    if left is not None:
        raise exception.Unreachable(
            f'process {process.pid}, which measures {args.result}, does not '
            'end')
    print(f'process {process.pid}: ended')


def _stop(args: argparse.Namespace, word: str, run_ids: list[str]) -> str:
    from hpcvirt.bench.run import stopping
    target = targets.find(word, args.os_cloud, args.host_key)
    try:
        found = [stopping.stop(target.place, run_id, target.directory)
                 for run_id in run_ids]
    finally:
        target.place.close()
    stopped = sum(each.stopped for each in found)
    ended = sum(each.ended for each in found)
    line = f'{target.place.name}: stopped {stopped or "nothing"}'
    if ended:
        line += f', kept {ended} that had ended'
    return line
