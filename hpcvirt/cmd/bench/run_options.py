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

"""What ``hpcvirt bench run`` is asked for: benchmarks, or a study's case."""

import argparse
import dataclasses

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import record
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study


@dataclasses.dataclass(frozen=True)
class Asked:
    """One benchmark to run.

    :ivar study_id: the study's, None if it belongs to none
    :ivar use: the case's own words for the benchmark
    """

    benchmark: definition.Definition
    variant: str | None
    study_id: str | None = None
    case: study.Case | None = None
    use: study.Use | None = None

    @property
    def launch(self) -> record.Launch | None:
        """State of the guest that the case is about."""
        if self.case is None or not self.case.launch:
            return None
        return record.Launch(self.case.launch)

    def fixed(self, machine: sizing.Machine) -> dict[str, str]:
        """Sizes and ranks that the case fixes for these guests."""
        if self.case is None or self.use is None:
            return {}
        return scaling.parameters(self.case, self.use, machine)


def read(args: argparse.Namespace) -> list[Asked]:
    """Read the names, or the case.

    :raises InvalidInput: for both or neither, for what is not known, and for
        another number of guests than the case has
    """
    if args.study is None:
        if args.instead:
            raise exception.InvalidInput('--instead', 'needs --study')
        if not args.benchmarks:
            raise exception.InvalidInput(
                'NAME', 'is missing: name benchmarks, or give --study')
        return [Asked(*catalogue.find(name)) for name in args.benchmarks]
    if args.benchmarks:
        raise exception.InvalidInput(
            '--study', 'names the benchmarks itself; leave out '
            f'{", ".join(args.benchmarks)}')
    name, slash, case_name = args.study.partition('/')
    if not slash:
        raise exception.InvalidInput(
            f'--study {args.study}', 'is not ID/CASE')
    made = study_catalogue.get(name)
    case = made.case(case_name)
    scaling.check_count(case, len(args.where))
    return [Asked(catalogue.get(use.benchmark), use.variant, made.id, case,
                  use) for use in scaling.uses(case, args.instead)]
