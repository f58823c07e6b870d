# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench run --study``: the benchmarks of a case."""

import argparse
import dataclasses
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import record
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study as studies


@dataclasses.dataclass(frozen=True)
class StudyCase:
    """A case of a study, with the benchmarks to run for it."""

    study: studies.Study
    case: studies.Case
    benchmarks: tuple[studies.StudyBenchmark, ...]

    @property
    def definitions(self) -> list[definitions.Definition]:
        return [catalogue.get(each.benchmark) for each in self.benchmarks]

    def requests(self, guests: sizing.Machine,
                 settings: Sequence[requests.Setting],
                 ) -> tuple[requests.RunRequest, ...]:
        """Request the benchmarks with the sizes and ranks of the case.

        :param guests: size of all guests together
        :param settings: settings of the user, which override those of the case
        """
        return tuple(
            requests.RunRequest(
                definition, definition.variant(benchmark.variant),
                {**scaling.scale_parameters(self.case, benchmark, guests),
                 **requests.settings_of(definition, settings)},
                record.Launch(self.case.launch or record.Launch.WARM),
                self.study.id, self.case.id)
            for definition, benchmark in zip(
                self.definitions, self.benchmarks, strict=True))


def read(args: argparse.Namespace) -> StudyCase | None:
    """Return the case of --study; None if benchmarks are named instead.

    :raises InvalidInput: for both or neither, an unknown case, or a number of
        guests that the case does not allow
    """
    if args.study is None:
        if args.instead:
            raise exception.InvalidInput('--instead', 'needs --study')
        if not args.benchmarks:
            raise exception.InvalidInput(
                'NAME', 'is missing; name benchmarks, or give --study')
        return None
    if args.benchmarks:
        raise exception.InvalidInput(
            '--study', 'selects the benchmarks; omit '
            f'{", ".join(args.benchmarks)}')
    name, slash, case_name = args.study.partition('/')
    if not slash:
        raise exception.InvalidInput(
            f'--study {args.study}', 'is not ID/CASE')
    study = study_catalogue.get(name)
    case = study.case(case_name)
    scaling.check_guest_count(case, len(args.where))
    return StudyCase(study, case,
                     scaling.select_benchmarks(case, args.instead))
