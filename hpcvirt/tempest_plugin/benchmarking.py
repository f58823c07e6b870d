# SPDX-License-Identifier: Apache-2.0

"""Measure guests with the benchmarks of the options, and judge the results.

Tempest starts the guests, and :mod:`hpcvirt.bench` does the rest. Of the
plugin, only this module needs the libraries of ``hpcvirt[bench]``.
"""

import dataclasses
import enum
import shlex
import unittest
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from oslo_log import log

from hpcvirt import exception
from hpcvirt.acceptance import measurement
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import host_keys
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.execute import reboot
from hpcvirt.bench.execute import ssh
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import text
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import schedule
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target
from hpcvirt.flavors import plan_document
from hpcvirt.tempest_plugin import contract

LOG = log.getLogger(__name__)

NATIVE = '[hpcvirt]native'
SETTINGS = '[hpcvirt]benchmark_settings'
ADVICE = decidable.Advice('set [hpcvirt]benchmark_pairs to {}',
                          'remove it from [hpcvirt]benchmarks')

#: Samples of an MPI benchmark over several guests. They are not compared with
#: native; the second shows how much the figures vary.
MPI_SAMPLES = 2
#: Makes a waiting rank yield its CPU. Without it the ranks in a guest with one
#: CPU would never end.
YIELD = ('--mca', 'mpi_yield_when_idle', '1')


def requests(names: Iterable[str], settings: Iterable[str],
             limit_s: int | None) -> tuple[run_request.RunRequest, ...]:
    """Read the options that name benchmarks.

    :param names: ``NAME`` or ``NAME/VARIANT``
    :param settings: ``NAME:KEY=VALUE``; those of other benchmarks are ignored
    :param limit_s: time limit of one run, None for that of the definition
    :raises InvalidInput: for an unknown benchmark or a malformed setting
    """
    found = run_request.find(names, run_request.read_settings(
        settings, SETTINGS, of_benchmarks=True))
    if limit_s is None:
        return found
    return tuple(
        dataclasses.replace(wanted, definition=dataclasses.replace(
            wanted.definition, time_limit_s=limit_s)) for wanted in found)


def check(wanted: Sequence[run_request.RunRequest],
          flavors: Iterable[plan_document.FlavorSummary],
          pair_count: int) -> None:
    """Check, before any guest starts, that one of each flavor can pass.

    :raises InvalidInput: if one cannot
    """
    for flavor in flavors:
        decidable.check(decidable.foresee(
            wanted, [decidable.Instances(flavor.name, flavor.vcpus, [''])],
            record.Purpose.COMPARE, pair_count), ADVICE)


def guest(place: executor.Executor, server: dict[str, Any], flavor: str,
          host: str, nodes: Sequence[contract.ServerTopologyNode],
          address: str = '',
          rebooter: reboot.Rebooter | None = None) -> target.Target:
    """Return the target for a guest.

    :param server: from the Compute API
    :param host: its compute host
    :param nodes: its guest cells, from the Compute API
    :param address: by which other guests reach it
    :param rebooter: reboots it; None if it must not be relaunched
    """
    cpus = contract.host_cpus(nodes)
    page_kib = min((node.page_kib or 0 for node in nodes), default=0)
    facts = target.instance_facts(server['id'], flavor, page_kib, cpus)
    return target.Target(place, server['name'], address, host, flavor, cpus,
                         facts, rebooter)


def native(text: str, host: str,
           planned: Iterable[str],
           host_key: str = 'known') -> executor.Executor:
    """Return the executor for native runs.

    :param text: value of the option
    :param host: the compute host of the guest
    :param planned: all hosts that guests may start on
    :param host_key: ``known`` or ``accept-new``
    :raises InvalidInput: if the option has another form, or may name another
        host than that of the guest
    """
    if '{host}' not in text and len(set(planned)) > 1:
        raise exception.InvalidInput(
            f'{NATIVE} {text}', 'is one machine, but guests start on '
            f'{", ".join(sorted(set(planned)))}; use {{host}} in its name')
    if text == 'local':
        return local.LocalExecutor()
    return ssh.SSHExecutor.from_url(
        text.replace('{host}', host),
        host_keys.Trust(host_keys.HostKeys(host_key)))


def compare(guest: target.Target, native_place: executor.Executor,
            wanted: Sequence[run_request.RunRequest],
            pair_count: int) -> plans.RunPlan:
    """Plan to compare a guest with its own host CPUs, in several boots.

    :raises InvalidInput: for a setting that a benchmark does not have
    :raises Unreachable: if a machine does not answer
    """
    pairs = sides.pair([guest], [target.Target(native_place, guest.label)])
    return plans.make(wanted, pairs, record.Purpose.COMPARE, pair_count,
                      launch=record.Launch.WARM)


def span(guests: Sequence[target.Target],
         wanted: run_request.RunRequest) -> plans.RunPlan:
    """Plan an MPI benchmark over several guests, with one rank in each.

    :raises InvalidInput: for a benchmark that runs on one machine only
    :raises Unreachable: if a guest does not answer
    """
    if not wanted.variant.spans:
        raise exception.InvalidInput(
            wanted.definition.name, 'runs on one machine; '
            '[hpcvirt]mpi_benchmark must span several')
    over_guests = dataclasses.replace(
        wanted, mpi_options=YIELD,
        settings={'ranks': str(len(guests)), **wanted.settings})
    return plans.make([over_guests], sides.pair(guests),
                      record.Purpose.UNPAIRED, MPI_SAMPLES, warm_ups=0,
                      shape=f'{len(guests)} guests of {guests[0].flavor}')


def run(plan: plans.RunPlan, url: str | None,
        data: str) -> tuple[str, record.Result]:
    """Execute a plan, store the result and judge it.

    :param url: the database of results, None for a file in ``data``
    :param data: the directory of raw outputs
    :returns: the id in the store, and the judged result
    :raises Unreachable: if a machine does not answer; finished samples are
        kept
    """
    store = stores.Store(url, data)
    try:
        entry = measurement.execute(
            plan, store, measurement.TimeLimit(LogProgress()),
            ('hpcvirt', 'tempest'))
        return entry, verdict.judge_result(store.result(entry))
    finally:
        store.close()


def summary(flavor: str, entry: str, data: str, result: record.Result) -> str:
    """Render a result: its verdict, table, invalid samples and location."""
    word = result.verdict.result if result.verdict else 'no verdict'
    if all(run.purpose is record.Purpose.UNPAIRED for run in result.runs):
        # Without native samples there is no ratio to judge.
        word = 'unpaired'
        result = dataclasses.replace(result, verdict=None)
    return '\n'.join([
        f'{word}: {flavor}', text.table(result),
        *faults(result), f'result {entry}, outputs in {data}', ''])


class TestOutcome(enum.IntEnum):
    """The outcome of a test; that of several results is the largest."""

    PASS = 0
    SKIP = 1
    FAIL = 2


def make_outcome(result: record.Result, inconclusive: str) -> TestOutcome:
    """Turn the verdict on a result into the outcome of a test.

    A result without any bound is INCONCLUSIVE.

    :param inconclusive: outcome of INCONCLUSIVE: ``fail`` or ``skip``
    """
    word = result.verdict.result if result.verdict else None
    if word is judgement.VerdictResult.PASS:
        return TestOutcome.PASS
    if word is judgement.VerdictResult.INCONCLUSIVE and inconclusive == 'skip':
        return TestOutcome.SKIP
    return TestOutcome.FAIL


def conclude(test: unittest.TestCase, outcomes: Iterable[TestOutcome],
             text: str) -> None:
    """Fail, skip or pass a test by the worst of its outcomes.

    :param text: the results, for the message
    """
    outcome = max(outcomes, default=TestOutcome.FAIL)
    if outcome is TestOutcome.FAIL:
        test.fail(f'\n{text}')
    if outcome is TestOutcome.SKIP:
        test.skipTest(text)


def faults(result: record.Result) -> list[str]:
    """List the invalid samples with their reasons."""
    found: list[str] = []
    for run in result.runs:
        for sample in run.samples:
            if not sample.outcome.valid:
                kind = 'warm-up' if sample.warm_up else 'pair'
                found.append(f'{run.label}, {sample.side} {kind} '
                             f'{sample.pair + 1}: {sample.outcome.reason}')
    return found


class RelayedExecutor:
    """An executor on a guest that is reached through another guest."""

    def __init__(self, first: executor.Executor, address: str) -> None:
        self._first = first
        self._address = address

    @property
    def name(self) -> str:
        return f'{self._first.name} ssh://{self._address}'

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        done = self._first.run(
            [*mpi_hosts.SSH, self._address, shlex.join(argv)], stdin,
            timeout_s)
        if done.status == 255:
            stderr = done.stderr.decode('utf-8', 'replace').strip()
            raise exception.ConnectionLost(f'{self.name}: {stderr}')
        return done

    def expect_restart(self) -> None:
        self._first.expect_restart()

    def close(self) -> None:
        """Do nothing: the caller closes the connection of the first guest."""


class LogProgress:
    """A progress display that writes to Tempest's log."""

    def opened(self, entry: stores.Entry, continued: bool) -> None:
        LOG.info('%s result %s', 'continuing' if continued else 'new',
                 entry.id)

    def not_continued(self, entry: stores.Entry,
                      changes: Sequence[str]) -> None:
        LOG.info('result %s is not continued: %s', entry.id,
                 '; '.join(changes))

    def sample_started(self, run: record.Run, due: schedule.PlannedSample,
                       number: int, total: int) -> None:
        LOG.info('%s: run %d of %d, %s', run.label, number, total,
                 due.side)

    def tick(self, elapsed_s: float) -> None:
        """Do nothing: a log has no line to update."""

    def sample_finished(self, sample: record.Sample) -> None:
        LOG.info('%s, %s s', sample.outcome.reason or 'valid',
                 sample.elapsed_s)

    def left_behind(self, what: str) -> None:
        LOG.warning('not removed: %s', what)
