# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench study``: show published studies, and compare with them."""

import argparse
import typing
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.model import record
from hpcvirt.bench.report import study_text
from hpcvirt.bench.results import location
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import document
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.study import arguments

if typing.TYPE_CHECKING:
    from hpcvirt.acceptance import case_plan


class ShowStudy(command.Report):
    """List the published studies, show one, or plan it for your hosts.

    With STUDY, print its document, its cases, and its figures with the ratios
    computed from them. With hosts as well, print how the first of them, or the
    first of each class of a fleet, can run each case, or why not. The rows are
    the studies, the figures of one, or its cases.
    """

    fields: tuple[str, ...] = (
        'id', 'title', 'case', 'what', 'benchmark', 'metric', 'native',
        'guest', 'unit', 'ratio')

    def get_epilog(self) -> str:
        # The import takes long, and "study compare" does not need it.
        from hpcvirt.cmd import hosts
        return f'{hosts.EPILOG}Status 1: the hosts can run no case.\n'

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_study(parser, nargs='?')
        arguments.add_hosts(parser)
        arguments.add_case(parser)

    def choose(self, args: argparse.Namespace) -> None:
        """Let the rows be cases if hosts are given."""
        if _has_hosts(args):
            self.fields = ('case', 'hosts', 'per_host', 'launch', 'refused',
                           'class')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Load the studies, or plan one."""
        if _has_hosts(args):
            if args.study is None:
                raise exception.InvalidInput('--fleet', 'needs STUDY')
            return _plan_cases(arguments.find_study(args),
                               arguments.make_planners(args))
        if args.study is not None:
            study_ = arguments.find_study(args)
            return command.CommandResult(
                document.describe_study(study_),
                lambda: ''.join(study_text.describe(study_, output.width())))
        if args.case is not None:
            raise exception.InvalidInput('--case', 'needs STUDY')
        studies = study_catalogue.studies()
        return command.CommandResult(
            [document.describe_study(each) for each in studies],
            lambda: study_text.listing(studies, output.width()))

    def make_rows(self, document: Any) -> Sequence[Mapping[str, Any]]:
        """Return a row for each study or case, or for each figure of one."""
        return document if isinstance(document, list) else document['rows']


def _has_hosts(args: argparse.Namespace) -> bool:
    return bool(args.path) or args.fleet is not None


def _plan_cases(study_: study.Study,
                planners: 'Mapping[str, case_plan.CasePlanner]',
                ) -> command.CommandResult:
    """Describe how the hosts of each class can run each case of a study."""
    # This loads all that plans a host.
    from hpcvirt.acceptance import case_plan
    documents: list[dict[str, Any]] = []
    tables = []
    every: list[case_plan.CasePlan | scaling.CaseRefusal] = []
    for name, planner in planners.items():
        plans = planner.plan_all(study_)
        every += plans
        for each in plans:
            own = {'class': name} if name else {}
            documents.append({**own, **case_plan.document(each)})
        heading = f'{printable.one_line(name)}:\n' if name else ''
        tables.append(heading + case_plan.table(plans, output.width()))
    arguments.warn(every)
    possible = [each for each in every
                if isinstance(each, case_plan.CasePlan)]
    return command.CommandResult(documents, lambda: '\n'.join(tables),
                                 status=int(not possible))


class CompareStudy(command.Report):
    """Compare the figures of a study with your results.

    The newest results of "hpcvirt bench run" with a study document count.
    Figures without a result are marked as not yet run.
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
        is_default = args.data == location.default_directory()
        if store_arguments.find_url() is None and not is_default:
            raise exception.InvalidInput(
                args.data, f'has no {location.DATABASE}; "hpcvirt bench run" '
                'creates it')
        return []
    try:
        runs: list[record.Run] = []
        for _, result in store.results(store.entries()):
            runs += result.runs
        return runs
    finally:
        store.close()
