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

"""The benchmarks of a case, and how they are run on other guests."""

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.studies import study

#: The kernel keeps this share of a guest's memory and does not report it.
KERNEL_SHARE = 0.1


def select(case: study.Case,
           stand_in: str | None) -> tuple[study.StudyBenchmark, ...]:
    """Return the benchmarks of a case.

    :param stand_in: a free benchmark that replaces those of the case that
        allow it
    :raises InvalidInput: if no benchmark of the case allows it
    """
    if stand_in is None:
        return case.benchmarks
    definition = catalogue.get(stand_in)
    allowed = sorted({name for benchmark in case.benchmarks
                      for name in benchmark.stand_ins})
    if definition.name not in allowed:
        raise exception.InvalidInput(
            f'--instead {stand_in}', f'does not stand in for a benchmark of '
            f'{case.id}; ' + (f'{", ".join(allowed)} may' if allowed
                              else 'nothing does'))
    selected: dict[tuple[str, str], study.StudyBenchmark] = {}
    for benchmark in case.benchmarks:
        chosen = (_replaced(benchmark, definition)
                  if definition.name in benchmark.stand_ins else benchmark)
        selected.setdefault((chosen.benchmark, chosen.variant), chosen)
    return tuple(selected.values())


def check_guest_count(case: study.Case, count: int) -> None:
    """Check that as many guests are measured as the case has.

    :param count: guests that were given
    :raises InvalidInput: if the case does not allow this number
    """
    guests = case.guests
    if guests.partition is study.Partition.SOCKET and (
            guests.instances > case.hosts):
        least, most = case.hosts, None
        wanted = f'{least} or more, one per socket'
    elif case.hosts > 1:
        least, most = 2, case.hosts
        wanted = '2' if most == 2 else f'2 to {most}, one per host'
    else:
        least = most = guests.instances
        wanted = str(most)
    if count < least or (most is not None and count > most):
        raise exception.InvalidInput(
            case.id, f'is a case of {wanted} guests, not of {count}; give '
            '--where once for each')


def parameters(case: study.Case, benchmark: study.StudyBenchmark,
               machine: sizing.Machine) -> dict[str, str]:
    """Return the parameters that the study fixes for these guests.

    Guests of the study's size use the parameters of the study. On other
    guests the sizes follow the rule of the definition, the ranks keep their
    share of the CPUs, and parameters that do not depend on the machine stay.

    :param machine: all guests together
    """
    guests = case.guests
    definition = catalogue.get(benchmark.benchmark)
    cpus = guests.instances * guests.vcpus
    memory_mib = guests.instances * (guests.memory_mib or 0)
    if machine.cpus == cpus and (
            machine.memory_mib >= memory_mib * (1 - KERNEL_SHARE)):
        return dict(benchmark.parameters)
    kept = {}
    for name, value in benchmark.parameters.items():
        if name == 'ranks':
            # A variant that does not span the guests runs in each by itself.
            if definition.variant(benchmark.variant).spans:
                kept[name] = str(max(1, int(value) * machine.cpus // cpus))
        elif definition.size[name].rule is sizing.Rule.FIXED:
            kept[name] = value
    return kept


def _replaced(benchmark: study.StudyBenchmark,
              definition: definitions.Definition) -> study.StudyBenchmark:
    variants = [variant.name for variant in definition.variants]
    return study.StudyBenchmark(
        definition.name,
        benchmark.variant if benchmark.variant in variants else variants[0],
        {name: value for name, value in benchmark.parameters.items()
         if name == 'ranks'})
