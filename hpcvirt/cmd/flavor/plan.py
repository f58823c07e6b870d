# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt flavor plan``: plan flavors for hosts, and their settings."""

import argparse

from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import planning
from hpcvirt.cmd import terminal
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import table


class PlanFlavors(command.Report):
    """Plan flavors for hosts.

    Divide hosts into guests that tile them, and print the flavors, the number
    of instances of each that every host takes, and the settings that the hosts
    need. Neither the hosts nor the cloud are changed. The format shell prints
    openstack commands to paste.
    """

    epilog = planning.EPILOG
    rows = 'flavors'
    fields = ('name', 'vcpus', 'ram_mib', 'disk_gib', 'extra_specs',
              'per_host')
    more_formats = ('shell',)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        planning.add_arguments(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Plan the hosts."""
        classes = planning.plan_classes(args)
        plan = plans.merge_plans(classes)
        others = planning.plan_others(classes, args)
        if args.columns or args.sort_columns or args.formatter in (
                'csv', 'value'):
            # The other formats have the warnings.
            hosts.warn(plan.warnings)
        return command.CommandResult(
            plan_document.dump(plan, others),
            lambda: table.table(plan, others, terminal.width()),
            others={'shell': lambda: ''.join(
                f'{line}\n' for line in (
                    *(f'# {other.message}' for other in others),
                    *table.commands(plan)))})
