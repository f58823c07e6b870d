# SPDX-License-Identifier: Apache-2.0

"""What the commands share that make trials: arguments, steps, clean-up."""

import argparse
import functools
import os
import sys

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.acceptance import records as acceptance_records
from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import placement
from hpcvirt.cloud import session
from hpcvirt.cloud import tuned_host
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import progress
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.bench import targets
from hpcvirt.cmd.tune import documents
from hpcvirt.tune import records
from hpcvirt.tune import steps
from hpcvirt.tune import trial_measurement
from hpcvirt.tune import tuning

#: The options that the figures depend on.
_OPTIONS = ('image', 'network', 'user', 'native')


def read_options(args: argparse.Namespace) -> dict[str, str]:
    """Return the options that are recorded with the trials."""
    return {f'--{name}': str(value) for name in _OPTIONS
            if (value := getattr(args, name)) is not None}


def check_options(found: records.TuneRecord,
                  options: dict[str, str]) -> None:
    """Check that a command continues trials with their options.

    :raises InvalidInput: if an option has another value
    """
    for name in dict.fromkeys([*found.options, *options]):
        before, now = found.options.get(name), options.get(name)
        if before != now:
            raise exception.InvalidInput(
                name, f'is {now or "missing"}, but the record {found.name} '
                f'was begun {f"with {before}" if before else "without it"}; '
                'repeat the command, or give the document another name')


def carry_out(args: argparse.Namespace, document: documents.TuneDocument,
              found: records.TuneRecord) -> records.TuneRecord | None:
    """Print the steps, and with --apply take them.

    :param found: the record so far
    :returns: the record at the end; None if no trials were to be made
    """
    describe = document.configurations.format_levels
    next_steps = functools.partial(steps.next_steps, document.space,
                                   document.budget)
    names = [host.name for host in document.hosts]
    for name in names:
        acceptance_records.check_host(name)
    kept = records.TuneRecords(args.data)
    kept.check_unchanged(found.name, names)
    nova = cloud_arguments.connect(args)
    placements = placement.PlacementClient(session.placement(args.os_cloud))
    hosts = [tuned_host.find(nova, placements, name, args.image, args.network)
             for name in names]
    lines = [f'A run that was killed left {what}'
             for host in hosts for what in host.left()]
    lines += [f'A run that was killed left other settings on {name}'
              for name in found.changed]
    if not args.restore:
        for host in hosts:
            host.check_host(host.owner)
        lines += [f'Hold {", ".join(names)} in quarantine',
                  f'{len(found.trials)} trials are recorded; the next are']
        lines += [f'  {step.stage}, block {step.block + 1}, on '
                  f'{names[step.host]}: {describe(step.levels)}'
                  for step in next_steps(found.trials)]
    lines.append('At the end, or if interrupted, delete what was created, '
                 f'bring today\'s settings to {", ".join(names)}, and release '
                 'from quarantine')
    if not args.apply:
        lines.append('Nothing was changed; use --apply to do it.')
    if getattr(args, 'formatter', 'table') == 'table':
        sys.stdout.write(printable.lines(lines))
        sys.stdout.flush()
    if not args.apply:
        return None
    store = store_arguments.open_store(args)
    try:
        run = tuning.Tuning(
            experiment=document.experiment,
            folder=os.path.dirname(document.where), hosts=document.hosts,
            clients=hosts, plan=document.configurations.plan, describe=describe,
            next_steps=next_steps, bench=trial_measurement.TrialMeasurement(
                document.experiment, store),
            records=kept, data=args.data,
            connect=lambda server_id, flavor, key_file: targets.find_server(
                args, server_id, flavor, key_file),
            connect_native=None if args.native is None else (
                lambda host: targets.find_named(
                    args, args.native.replace('{host}', host))),
            show=lambda: progress.Terminal(args.data),
            not_started=benchmark_instances.InstancesNotStarted,
            say=output.complain, by=f'hpcvirt@{os.uname().nodename}')
        with command.interrupting_sigterm():
            if not args.restore:
                return run.run(found)
            run.restore(found)
            return None
    finally:
        store.close()
