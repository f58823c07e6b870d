# SPDX-License-Identifier: Apache-2.0

"""List unfinished runs for ``bench report``, stop them for ``bench run``."""

import argparse
import os
import signal
import sys
import typing
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import saved_document
from hpcvirt import text_table
from hpcvirt import waiting
from hpcvirt.bench.run import schedule
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.bench import targets

if typing.TYPE_CHECKING:
    from hpcvirt.bench.model import record


#: How long the measuring process may take to end.
END_S = 20.0
PAUSE_S = 0.1


def describe(args: argparse.Namespace) -> command.CommandResult:
    """Describe the runs that are in progress or were interrupted.

    The command that began an interrupted run continues it; "hpcvirt bench run
    --stop" stops the jobs that it left on its targets.
    """
    found = list(_unfinished(args))
    return command.CommandResult(found, lambda: _draw(found))


def _draw(found: list[dict[str, typing.Any]]) -> str:
    if not found:
        return 'No run is in progress, and none was interrupted.\n'
    rows = [(each['id'], each['run'], each['state'], each['started_at'],
             f'{each["samples"]} of {each["planned_samples"]}',
             each['remaining'] or '-', ', '.join(each['targets']))
            for each in found]
    return text_table.draw(
        ('Result', 'Run', 'State', 'Since', 'Samples', 'Time', 'Targets'),
        rows, width=output.width())


def _unfinished(args: argparse.Namespace) -> Iterator[dict[str, typing.Any]]:
    """Describe the last run of each unfinished result."""
    store = store_arguments.open_existing(args)
    if store is None:
        return
    try:
        for entry, result in store.results(
                each for each in store.entries()
                if each.finished_at is None):
            process = store.find_process(entry.id)
            for last in result.runs[-1:]:
                missing = schedule.list_missing(last)
                yield {
                    'id': entry.id, 'finished': False, 'run': last.label,
                    'state': 'interrupted' if process is None else
                    f'process {process.pid} on {process.host}',
                    'started_at': last.started_at,
                    'samples': len(last.samples),
                    'planned_samples': len(last.samples) + len(missing),
                    'remaining_s': schedule.estimate_seconds(last),
                    'remaining': schedule.format_remaining(last),
                    'targets': last.targets,
                }
    finally:
        store.close()


def stop(args: argparse.Namespace) -> int:
    """Stop the unfinished run ``args.stop`` here and on its targets.

    The measuring process, if it runs on this machine, and all processes that
    the run started on its targets are ended. Finished samples are kept, even
    one that was not read yet.

    :returns: the exit status
    """
    begun = _read_unfinished(args)
    _end_process(args)
    places: dict[str, list[record.Run]] = {}
    for run in begun:
        for word in dict.fromkeys(run.targets):
            places.setdefault(word, []).append(run)
    failed = False
    for word, runs in places.items():
        try:
            line = _stop(args, word, runs)
        except exception.HpcvirtError as exc:
            failed = True
            output.complain(f'hpcvirt: not stopped: {exc}')
        else:
            sys.stdout.write(printable.lines([line]))
    samples = sum(len(run.samples) for run in begun)
    print(f'{samples} finished samples are kept; the command that began the '
          'run continues it.')
    return 2 if failed else 0


def _read_unfinished(args: argparse.Namespace) -> 'tuple[record.Run, ...]':
    """Read the runs of an unfinished result."""
    store = store_arguments.open_existing(args)
    try:
        for entry in store.entries() if store else ():
            if entry.id == args.stop:
                if entry.finished_at is not None:
                    raise exception.InvalidInput(
                        entry.id, 'is finished and has no running jobs')
                return store.result(entry.id).runs if store else ()
    finally:
        if store is not None:
            store.close()
    raise exception.InvalidInput(args.stop, 'the store has no such result')


def _end_process(args: argparse.Namespace) -> None:
    """End the measuring process, which would start its jobs again."""
    with extras.bench():
        from hpcvirt.bench.results import location
    lock = location.locate_lock(args.data, args.stop)
    process = saved_document.find_process(lock)
    if process is None:
        return
    if process.host != os.uname().nodename:
        raise exception.Unreachable(
            f'{args.stop} is measured by process {process.pid} on '
            f'{process.host}; stop it on that machine')
    # A kill loses nothing. A process that a shell started in the background
    # ignores SIGINT.
    os.kill(process.pid, signal.SIGTERM)
    left = waiting.poll(lambda: saved_document.find_process(lock),
                        lambda found: found is None, END_S, PAUSE_S)
    if left is not None:
        raise exception.Unreachable(
            f'process {process.pid}, which measures {args.stop}, does not '
            'end; kill it and repeat the command')
    print(f'process {process.pid}: ended')


def _stop(args: argparse.Namespace, word: str,
          runs: 'list[record.Run]') -> str:
    from hpcvirt.bench.execute import job
    target = targets.find(args, word)
    try:
        found = [job.stop_run(target.place, run.id, target.directory,
                              {sample.position for sample in run.samples})
                 for run in runs]
    finally:
        target.place.close()
    stopped = sum(each.stopped for each in found)
    ended = sum(each.ended for each in found)
    line = f'{target.place.name}: stopped {stopped or "nothing"}'
    if ended:
        line += f', kept {ended} that had ended'
    return line
