# SPDX-License-Identifier: Apache-2.0

"""Make the trials of ``hpcvirt tune run`` and ``hpcvirt tune check``."""

import argparse
import functools
import os
import re
import sys
from collections.abc import Sequence

from hpcvirt import printable
from hpcvirt.acceptance import records as acceptance_records
from hpcvirt.bench.run import sampler
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
from hpcvirt.tune import configurations
from hpcvirt.tune import records
from hpcvirt.tune import steps
from hpcvirt.tune import trial_measurement
from hpcvirt.tune import tuning


def carry_out(args: argparse.Namespace, document: documents.TuneDocument,
              compared: Sequence[configurations.Configuration],
              check_name: str = '') -> records.TuneRecord | None:
    """Print the steps, and with --apply take them.

    :param compared: the configurations that identify the record
    :param check_name: the beginning of the name of the record of a check
    :returns: the record at the end; None without --apply or with --restore
    """
    names = [host.name for host in document.hosts]
    for name in names:
        acceptance_records.check_host(name)
    kept, name = records.TuneRecords(args.data), document.experiment.name
    digest = records.make_digest(document.experiment, compared, names)
    if check_name:
        name = kept.find_unfinished(check_name, digest) or check_name + re.sub(
            '[^0-9T]', '', sampler.read_clock().partition('+')[0])
    # The figures depend on these options.
    options = {f'--{option}': str(value) for option in (
        'image', 'network', 'user', 'native')
        if (value := getattr(args, option)) is not None}
    found = kept.find(name, digest, options) or records.TuneRecord(
        name, digest, options)
    next_steps = functools.partial(steps.next_steps, document.space,
                                   document.budget)
    nova = cloud_arguments.connect(args)
    placements = placement.PlacementClient(session.placement(args.os_cloud))
    hosts = [tuned_host.find(nova, placements, host, args.image, args.network)
             for host in names]
    lines = [f'A run that was killed left {what}'
             for host in hosts for what in (*host.left(), *(
                 [f'other settings on {host.owner}']
                 if kept.read_settings(host.owner) is not None else []))]
    if not args.restore:
        for host in hosts:
            host.check_host(host.owner)
        lines += [f'Hold {", ".join(names)} in quarantine',
                  f'Continue after {len(found.trials)} trials:', *(
                      f'  {step.stage} on {names[step.host]}: '
                      + document.configurations.format_levels(step.levels)
                      for step in next_steps(found.trials))]
    lines.append('At the end, remove what was created, restore the settings '
                 f'of {", ".join(names)}, and release from quarantine')
    if not args.apply:
        lines.append('Nothing was changed; use --apply to do it.')
    if getattr(args, 'formatter', 'table') == 'table':
        sys.stdout.write(printable.lines(lines))
        sys.stdout.flush()
    if not args.apply:
        return None
    store = store_arguments.open_store(args)
    try:
        with command.interrupting_sigterm():
            ended = tuning.Tuning(
                experiment=document.experiment,
                folder=os.path.dirname(document.where), hosts=document.hosts,
                clients=hosts, planned=document.configurations,
                next_steps=next_steps,
                bench=trial_measurement.TrialMeasurement(
                    document.experiment, store),
                records=kept, data=args.data,
                connect=functools.partial(targets.find_server, args),
                connect_native=None if args.native is None else (
                    lambda host: targets.find_named(
                        args, args.native.replace('{host}', host))),
                show=lambda: progress.Terminal(args.data),
                not_started=benchmark_instances.InstancesNotStarted,
                say=output.complain, by=f'hpcvirt@{os.uname().nodename}',
            ).run(found, args.restore)
    finally:
        store.close()
    return None if args.restore else ended
