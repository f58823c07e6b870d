# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt study``: show published studies, and compare with them."""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.bench.model import record
from hpcvirt.bench.report import study_text
from hpcvirt.bench.results import location
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import document
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.study import arguments


class ListStudies(command.Report):
    """List the published studies."""

    fields = ('id', 'title', 'source')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Load the studies."""
        del args
        studies = study_catalogue.studies()
        return command.CommandResult(
            [document.describe_study(each) for each in studies],
            lambda: study_text.listing(studies, output.width()))


class ShowStudy(command.Report):
    """Show a published study.

    Print its document, its cases, and its figures with the ratios computed
    from them. The rows are the figures.
    """

    rows = 'rows'
    fields = ('id', 'case', 'what', 'benchmark', 'metric', 'native', 'guest',
              'unit', 'ratio')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_study(parser)
        arguments.add_case(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Load the study."""
        study_ = arguments.find_study(args)
        return command.CommandResult(
            document.describe_study(study_),
            lambda: ''.join(study_text.describe(study_, output.width())))


class ScaleStudy(command.Report):
    """Scale the cases of a study to hosts.

    Print how the hosts of a site can run each case, or why they cannot. The
    exit status is 1 if they cannot run any case.
    """

    fields = ('case', 'hosts', 'per_host', 'launch', 'reason')

    def get_epilog(self) -> str:
        """Return the description of hosts."""
        from hpcvirt.cmd import hosts
        return hosts.EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_study(parser)
        arguments.add_hosts(parser)
        arguments.add_case(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Plan the cases."""
        from hpcvirt.acceptance import case_plan
        study_ = arguments.find_study(args)
        planner = arguments.planner(args)
        plans = [planner.plan(study_, case) for case in study_.cases]
        arguments.warn(plans)
        return command.CommandResult(
            [case_plan.document(each) for each in plans],
            lambda: case_plan.table(plans, output.width()),
            status=int(not any(isinstance(each, case_plan.CasePlan)
                               for each in plans)))


class CompareStudy(command.Report):
    """Compare the figures of a study with your results.

    The newest results of "hpcvirt bench run --study" count. Figures without a
    result are marked as not yet run.
    """

    fields = ('id', 'case', 'what', 'native', 'guest', 'unit', 'ratio',
              'results')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_study(parser)
        arguments.add_case(parser)
        store_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Compare published figures and results of the site."""
        comparisons = comparison.compare(arguments.find_study(args),
                                         _runs(args))
        return command.CommandResult(
            [document.describe_comparison(each) for each in comparisons],
            lambda: study_text.format_comparisons(comparisons,
                                                  output.width()))

    def make_rows(self, document: Any) -> Sequence[Mapping[str, Any]]:
        return [{**each['row'], 'results': each['results']}
                for each in document]


def _runs(args: argparse.Namespace) -> list[record.Run]:
    """Read every run of the store that the arguments name."""
    store = store_arguments.open_existing(args)
    if store is None:
        # Nothing was measured yet. Only a place that was given must exist.
        if args.store is None and args.data != location.default_directory():
            raise exception.InvalidInput(
                args.data, f'has no {location.DATABASE}; "hpcvirt bench run" '
                'creates it')
        return []
    try:
        return [run for _, result in store.results(store.entries())
                for run in result.runs]
    finally:
        store.close()
