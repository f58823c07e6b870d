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

"""Measure guests with the benchmarks that the options name.

Tempest supplies the places, :mod:`hpcvirt.bench` all the rest. It needs the
libraries of ``hpcvirt[bench]``; nothing else in this room does.
"""

import dataclasses
import importlib.metadata
import shlex
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from oslo_log import log

from hpcvirt import exception
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.execute import confinement
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import machine_probe
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.execute import ssh
from hpcvirt.bench.model import record
from hpcvirt.bench.report import text
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import schedule
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import outcome

LOG = log.getLogger(__name__)

NATIVE = '[hpcvirt]native'
SETTINGS = '[hpcvirt]benchmark_settings'

#: Runs of an MPI benchmark over guests. Nothing is compared: two show whether
#: the figures are the network's or chance.
MPI_SAMPLES = 2
#: A rank that waits lets others have the CPU: on a guest of one CPU they
#: would not end otherwise.
YIELD = ('--mca', 'mpi_yield_when_idle', '1')


@dataclasses.dataclass(frozen=True)
class Asked:
    """A benchmark as the options want it.

    :ivar variant: None for the first of the definition
    :ivar settings: sizes, ranks, threads, paths
    """

    made: definition.Definition
    variant: str | None
    settings: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Guest:
    """A guest that is measured.

    :ivar host: its compute host
    :ivar nodes: what the API says of its cells and pins
    """

    place: executor.Executor
    label: str
    server_id: str
    flavor: str
    host: str
    nodes: tuple[contract.Node, ...]

    @property
    def host_cpus(self) -> frozenset[int]:
        return contract.host_cpus(self.nodes)

    @property
    def seat(self) -> sampler.Seat:
        pages = {node.page_kib or 0 for node in self.nodes} or {0}
        return sampler.Seat(
            self.place, confinement.directory(), self.label,
            facts=confinement.instance_facts(self.server_id, self.flavor,
                                             min(pages), self.host_cpus))


def asked(names: Iterable[str], settings: Iterable[str],
          limit_s: int | None) -> tuple[Asked, ...]:
    """Read the options that name benchmarks.

    :param names: ``NAME`` or ``NAME/VARIANT``
    :param settings: ``NAME:KEY=VALUE``; those of other benchmarks are left
        alone
    :param limit_s: seconds for one run, None for the definition's
    :raises InvalidInput: for an unknown benchmark, or no setting
    """
    given: dict[str, dict[str, str]] = {}
    for setting in settings:
        name, colon, pair = setting.partition(':')
        key, equals, value = pair.partition('=')
        if not (colon and equals and key and value):
            raise exception.InvalidInput(f'{SETTINGS} {setting}',
                                         'not NAME:KEY=VALUE')
        given.setdefault(catalogue.get(name).name, {})[key] = value
    found = []
    for name in names:
        made, variant = catalogue.find(name)
        if limit_s is not None:
            made = dataclasses.replace(made, time_limit_s=limit_s)
        found.append(Asked(made, variant, given.get(made.name, {})))
    return tuple(found)


def native(text: str, host: str,
           planned: Iterable[str]) -> executor.Executor:
    """Find the machine for native runs.

    :param text: the option
    :param host: the guest's compute host
    :param planned: all hosts that guests may start on
    :raises InvalidInput: if it is no place, or not the guest's host for sure
    """
    if '{host}' not in text and len(set(planned)) > 1:
        raise exception.InvalidInput(
            f'{NATIVE} {text}', 'is one place, but guests start on '
            f'{", ".join(sorted(set(planned)))}; name it by {{host}}')
    if text == 'local':
        return local.LocalExecutor()
    return ssh.SSHExecutor.from_url(text.replace('{host}', host))


def compared(guest: Guest, native_place: executor.Executor,
             benchmarks: Sequence[Asked],
             pairs: int) -> tuple[runner.Planned, ...]:
    """Plan to compare a guest with its own host CPUs.

    :raises InvalidInput: for a setting that a benchmark has not
    :raises Unreachable: if a place does not answer
    """
    seat = sampler.Seat(
        native_place, confinement.directory(), guest.label,
        confinement.confinement(native_place, guest.host_cpus), guest.host_cpus)
    size = machine_probe.observe(guest.place)
    plan = []
    for one in benchmarks:
        task = run_spec.make(one.made, one.variant, size, one.settings)
        plan.append(runner.Planned(
            {record.Arm.NATIVE: (sampler.Part(task, seat),),
             record.Arm.GUEST: (sampler.Part(task, guest.seat),)},
            pairs=pairs, warm_ups=1, purpose=record.Purpose.COMPARE,
            host=guest.host, shape=guest.flavor))
    return tuple(plan)


def spanning(guests: Sequence[Guest], addresses: Sequence[str],
             benchmark: Asked) -> tuple[runner.Planned, ...]:
    """Plan one MPI run over several guests, a rank in each.

    :param addresses: by which the first guest reaches the others
    :raises InvalidInput: for a benchmark that knows of no other machine
    :raises Unreachable: if a guest does not answer
    """
    made = benchmark.made
    variant = made.variant(benchmark.variant)
    if not variant.spans:
        raise exception.InvalidInput(
            made.name, 'runs on one machine; [hpcvirt]mpi_benchmark has to '
            'span several')
    first, *others = guests
    names = [mpi_hosts.own_name(first.place), *addresses]
    hosts = mpi_hosts.hosts(names, [1] * len(names), variant.environment)
    size = mpi_hosts.whole([machine_probe.observe(guest.place) for guest in guests])
    task = run_spec.make(made, benchmark.variant, size, {
        'ranks': str(len(guests)), **benchmark.settings}, (*hosts, *YIELD))
    part = sampler.Part(task, first.seat,
                        tuple(guest.seat for guest in others))
    places = dict.fromkeys(guest.host for guest in guests)
    return (runner.Planned(
        {record.Arm.GUEST: (part,)}, pairs=MPI_SAMPLES, warm_ups=0,
        purpose=record.Purpose.UNPAIRED, host=', '.join(places),
        shape=f'{len(guests)} guests of {first.flavor}'),)


def run(plan: tuple[runner.Planned, ...], url: str | None,
        data: str) -> tuple[str, record.Result]:
    """Measure, keep everything, judge.

    :param url: the database of results, None for a file in ``data``
    :param data: the directory of raw outputs
    :returns: the id in the store, and the judged result
    :raises Unreachable: if a place is gone for good; what was finished is
        kept
    """
    store = stores.Store(confinement.store_url(url, data), data)
    try:
        entry = runner.execute(plan, store, {
            'hpcvirt': importlib.metadata.version('hpcvirt'),
            'tempest': importlib.metadata.version('tempest')}, Logged())
        return entry, verdict.judge_result(store.result(entry))
    finally:
        store.close()


def told(flavor: str, entry: str, data: str, result: record.Result) -> str:
    """Say what came out: verdict, table, what is wrong, where it is kept."""
    word = result.verdict.word if result.verdict else 'no verdict'
    if all(run.purpose is record.Purpose.UNPAIRED for run in result.runs):
        # Bounds are on ratios, of which there are none.
        word = 'unpaired'
        result = dataclasses.replace(result, verdict=None)
    return '\n'.join([
        f'{word}: {flavor}', text.table(result),
        *outcome.faults(result), f'result {entry}, outputs in {data}', ''])


class Beyond:
    """A guest that is reached from another one, through their network."""

    def __init__(self, first: executor.Executor, address: str) -> None:
        self._first = first
        self._address = address

    @property
    def name(self) -> str:
        return f'{self._first.name} ssh://{self._address}'

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        done = self._first.run([*mpi_hosts.SSH, self._address, shlex.join(argv)],
                               stdin, timeout_s)
        if done.status == 255:
            said = done.stderr.decode('utf-8', 'replace').strip()
            raise exception.Unreachable(f'{self.name}: {said}')
        return done

    def close(self) -> None:
        """Hold nothing: the connection is the first guest's."""


class Logged:
    """Tells Tempest's log how a plan goes."""

    def entry(self, entry: stores.Entry, continued: bool) -> None:
        LOG.info('%s result %s', 'continuing' if continued else 'new',
                 entry.id)

    def sample(self, run: record.Run, slot: schedule.Slot,
               total: int) -> None:
        LOG.info('%s: run %d of %d, %s', run.label, slot.position + 1, total,
                 slot.arm)

    def tick(self, elapsed_s: float) -> None:
        """Say nothing: a log has no line to write over."""

    def done(self, sample: record.Sample) -> None:
        LOG.info('%s, %s s', sample.outcome.reason or 'valid',
                 sample.elapsed_s)

    def left(self, what: str) -> None:
        LOG.warning('left behind, its place does not answer: %s', what)
