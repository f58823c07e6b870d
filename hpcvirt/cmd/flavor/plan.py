# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt flavor plan``: plan flavors for hosts, and their settings."""

import argparse

from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.cmd import planning
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import table


class PlanFlavors(command.Report):
    """Plan flavors for hosts.

    Divide hosts into guests that fill them without gaps. Print the flavors of
    these guests, how many instances of each flavor fit on each host, and what
    they leave unused. With -f json or yaml, also print the settings that each
    host needs. With -f shell, print openstack commands that create the
    flavors. The command changes neither the hosts nor the cloud.
    """

    epilog = hosts.EPILOG
    rows = 'flavors'
    fields = ('name', 'vcpus', 'ram_mib', 'disk_gib', 'extra_specs',
              'per_host')
    more_formats = ('shell',)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        planning.add_arguments(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Plan the hosts."""
        classes = planning.plan_classes(args)
        plan = fleet_plan.merge_plans(classes)
        others = planning.plan_others(classes, args)
        if args.columns or args.sort_columns or args.formatter in (
                'csv', 'value'):
            # The other formats include the warnings.
            hosts.warn(plan.warnings)
        return command.CommandResult(
            plan_document.dump(plan, others),
            lambda: table.table(plan, others, output.width()),
            others={'shell': lambda: ''.join(
                f'{line}\n' for line in (
                    *(f'# {other.message}' for other in others),
                    *table.commands(plan)))})
