# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench study``: show published studies, and compare with them."""

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


class ShowStudy(command.Report):
    """List the published studies, or show one.

    With STUDY, print its document, its cases, and its figures with the ratios
    computed from them. The rows are the studies, or the figures of one.
    """

    fields = ('id', 'title', 'case', 'what', 'benchmark', 'metric', 'native',
              'guest', 'unit', 'ratio')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_study(parser, nargs='?')
        arguments.add_case(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Load the studies."""
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
        """Return a row for each study, or for each figure of one."""
        return document if isinstance(document, list) else document['rows']


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
