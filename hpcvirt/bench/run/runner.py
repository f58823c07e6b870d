# SPDX-License-Identifier: Apache-2.0

"""Execute a plan sample by sample, and store each sample when it is finished.

This module decides nothing: :mod:`hpcvirt.bench.run.plan` says what to run,
:mod:`hpcvirt.bench.run.schedule` in which order, and the parsers whether an
output is valid. An interrupted plan is continued when the same plan is
executed again. Both sides get the same binaries, because another compiler
would make another benchmark.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import platform
import posixpath
import re
import uuid
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job as detached_jobs
from hpcvirt.bench.execute import job_scripts
from hpcvirt.bench.execute import program_directory
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import identity
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import schedule

#: Commands (argument lists) that build binaries.
Builds = tuple[tuple[str, ...], ...]
#: The binaries to put into the directories of jobs: name to content.
Products = Mapping[Builds, Mapping[str, bytes]]

#: Lines such as "make: *** [Makefile:36: cg] Error 2", which name no cause.
_MAKE = re.compile(r'make(\[\d+\])?: ')
BUILD_LIMIT_S = 1800.0
COPY_LIMIT_S = 600.0

#: Runs a program in the directory $1.
_BUILD = job_scripts.CREATE + """
create "$1"
shift
exec "$@"
"""

#: Prints the file $2 of the directory $1.
_PRODUCT = job_scripts.ENTER + """
enter "$1" && exec cat "$2"
"""

#: Prints the SHA-256 sum of the file $1; exits with 0 even if it is missing.
_SUM = program_directory.TRUST_PATH + """
trust_path "$(dirname "$1")" || exit
[ ! -e "$1" ] || sha256sum "$1"
"""

#: Writes standard input to the file $1 atomically.
_PUT = """
new=$(mktemp "$1.XXXXXX") && cat > "$new" &&
  chmod 755 "$new" && mv "$new" "$1"
"""


class Progress(Protocol):
    """Shows the progress of a plan."""

    def opened(self, entry: stores.Entry, continued: bool) -> None:
        """A result was begun, or is being continued."""

    def not_continued(self, entry: stores.Entry,
                      changes: Sequence[str]) -> None:
        """An unfinished result of the same plan cannot be continued."""

    def sample_started(self, run: record.Run, due: schedule.PlannedSample,
                       number: int, total: int) -> None:
        """A sample was started; both numbers refer to the whole plan."""

    def tick(self, elapsed_s: float) -> None:
        """The sample is still running."""

    def sample_finished(self, sample: record.Sample) -> None:
        """The sample is finished and kept."""

    def left_behind(self, what: str) -> None:
        """A directory could not be removed."""


def read_versions(*distributions: str) -> dict[str, str]:
    """Read the versions to store with a result."""
    return {**{name: importlib.metadata.version(name)
               for name in distributions},
            'python': platform.python_version()}


def execute(plan: plans.RunPlan, store: stores.Store,
            software: Mapping[str, str], progress: Progress) -> str:
    """Execute a plan to its end.

    :param software: name to version, stored with the result
    :returns: the id of the entry in the store
    :raises Unreachable: if a target or the store does not answer; finished
        samples are kept
    """
    fresh = stores.Entry(uuid.uuid4().hex[:16], plan.fingerprint,
                         sampler.read_clock(), None)
    built = [_build(planned, fresh.id) for planned in plan.runs]
    environments = environment.Environments()
    identities = [identity.identify(planned, checksums, environments)
                  for planned, (_, checksums)
                  in zip(plan.runs, built, strict=True)]
    entry = _open(plan, fresh, identities, store, software, progress)
    taken = 0
    with store.measuring(entry.id):
        for number, planned in enumerate(plan.runs):
            store.add_run(entry.id, number, dataclasses.replace(
                planned.run, id=name_run(entry.id, number),
                started_at=sampler.read_clock(), identity=identities[number],
                subject=identity.subject(planned, identities[number]),
                targets=_name_targets(planned)))
            run = store.result(entry.id).runs[number]
            later = sum(len(schedule.list_missing(each.run))
                        for each in plan.runs[number + 1:])
            taken += _take_samples(planned, run, built[number][0],
                                   environments, store, progress,
                                   (taken, later))
            for job in planned.all_jobs:
                for what in sampler.clean(job, run.id):
                    progress.left_behind(what)
        store.finish(entry.id, sampler.read_clock())
    return entry.id


def name_run(entry_id: str, number: int) -> str:
    """Return the id of a run of a result."""
    return f'{entry_id}-{number}'


def _name_targets(planned: plans.PlannedRun) -> tuple[str, ...]:
    """Name the targets of a run, each once."""
    names: list[str] = []
    for job in planned.all_jobs:
        names += [target.named or target.place.name for target in job.targets]
    return tuple(dict.fromkeys(names))


def _open(plan: plans.RunPlan, fresh: stores.Entry,
          identities: Sequence[Mapping[str, str]], store: stores.Store,
          software: Mapping[str, str], progress: Progress) -> stores.Entry:
    """Continue the unfinished result of a plan, or begin one.

    A result is not continued if anything changed that its runs depend on.
    """
    def fits(entry: stores.Entry) -> bool:
        begun = store.result(entry.id).runs
        changes: list[str] = []
        for run, now in zip(begun, identities, strict=False):
            changes += identity.changes(run.identity, now)
        changed = tuple(dict.fromkeys(changes))
        if changed:
            progress.not_continued(entry, changed)
            # Jobs that still run would disturb the new result.
            for target in plan.targets:
                for run in begun:
                    detached_jobs.stop_run(target.place, run.id,
                                           target.directory)
        return not changed
    entry = store.open_entry(fresh, software, fits)
    progress.opened(entry, continued=entry.id != fresh.id)
    return entry


def _take_samples(planned: plans.PlannedRun, run: record.Run,
                  products: Products,
                  environments: environment.Environments,
                  store: stores.Store, progress: Progress,
                  others: tuple[int, int]) -> int:
    """Take the samples that a run lacks.

    :param others: number of samples of the runs before and after this one
    :returns: number of samples of the run
    """
    run_id = run.id
    is_relaunched = run.relaunched or run.launch is record.Launch.COLD
    # The samples after the pilot are planned when it has ended.
    while missing := schedule.list_missing(run):
        due = missing[0]
        progress.sample_started(
            run, due, others[0] + len(run.samples) + 1,
            sum(others) + len(missing) + len(run.samples))

        def keep(name: str, content: bytes,
                 position: int = due.position) -> record.RawOutput:
            return store.keep_raw(run_id, position, name, content)
        jobs = planned.jobs[due.side]
        is_guest = due.side is record.Side.GUEST
        try:
            sample = sampler.sample(
                jobs, run.id, due, [products[job.run.builds] for job in jobs],
                environments, keep, progress.tick,
                run.launch if is_guest and not due.warm_up else None,
                is_launched=is_guest and is_relaunched)
        except sampler.JobNotStarted as exc:
            raise exception.NotInstalled(
                f'{exc}; its outputs are in '
                f'{store.raw_directory(run.id, due.position)}') from exc
        store.add_sample(run.id, sample)
        progress.sample_finished(sample)
        run = dataclasses.replace(run, samples=(*run.samples, sample))
    return len(run.samples)


def _build(planned: plans.PlannedRun,
           scratch: str) -> tuple[Products, dict[str, str]]:
    """Build each binary once, and install it on each target that runs it.

    :param scratch: name of a temporary directory on the builder
    :returns: the products, and the checksum of each binary
    """
    users: dict[Builds, list[run_spec.JobSpec]] = {}
    for job in planned.all_jobs:
        users.setdefault(job.run.builds, []).append(job)
    products: dict[Builds, Mapping[str, bytes]] = {}
    checksums = {}
    for builds, jobs in users.items():
        builder = jobs[0].target
        built = build(
            jobs[0].run, builder.place,
            job_scripts.make_path(builder.directory, scratch))
        of = f' of {jobs[0].label}' if len(users) > 1 else ''
        checksums.update({
            posixpath.basename(name) + of: hashlib.sha256(content).hexdigest()
            for name, content in built.items()})
        others: list[executor.Executor] = []
        for job in jobs:
            others += [target.place for target in job.targets
                       if target.place.name != builder.place.name]
        products[builds] = distribute(built, others)
    return products, checksums


def build(spec: run_spec.RunSpec, place: executor.Executor,
          directory: str) -> dict[str, bytes]:
    """Build the products on one machine.

    :param directory: a temporary directory, which is created and removed
    :returns: product to its content; empty if there is nothing to build
    :raises Unreachable: with the end of the output of a command that failed
    """
    if not spec.builds:
        return {}
    inner = posixpath.join(directory, 'build')
    try:
        for words in spec.builds:
            _command(place, ['sh', '-c', _BUILD, 'build', inner, *words],
                     timeout_s=BUILD_LIMIT_S)
        products = {}
        for product in spec.products:
            products[product] = _command(
                place, ['sh', '-c', _PRODUCT, 'product', inner, product],
                timeout_s=COPY_LIMIT_S).stdout
        return products
    finally:
        # The error of the build counts, not that of its removal.
        with contextlib.suppress(exception.Unreachable):
            place.run(['sh', '-c', job_scripts.REMOVE_ALL, 'remove',
                       directory])


def distribute(products: Mapping[str, bytes],
               places: Sequence[executor.Executor]) -> dict[str, bytes]:
    """Install the products that have absolute paths on further machines.

    :returns: the other products, to be put into the directory of each job
    :raises InvalidInput: if a machine has a different file at the path
    :raises Unreachable: if a file cannot be installed, or other users could
        replace it
    """
    others: dict[str, bytes] = {}
    for product, content in products.items():
        if not posixpath.isabs(product):
            others[posixpath.basename(product)] = content
            continue
        for place in places:
            install(place, product, content)
    return others


def install(place: executor.Executor, path: str, content: bytes) -> None:
    """Copy a binary to a machine, unless it is there already.

    :raises InvalidInput: if a different binary is there
    :raises Unreachable: if other users could replace it
    """
    present = _command(place, ['sh', '-c', _SUM, 'sum', path],
                       timeout_s=COPY_LIMIT_S).stdout.split()
    if not present:
        _command(place, ['sh', '-c', _PUT, 'put', path], content, COPY_LIMIT_S)
    elif present[0] != hashlib.sha256(content).hexdigest().encode():
        raise exception.InvalidInput(
            f'{place.name}:{path}', 'differs from the binary of the other '
            'side; remove it, and the binary is copied there')


def _command(place: executor.Executor, argv: Sequence[str], stdin: bytes = b'',
             timeout_s: float = executor.SHORT_S) -> executor.Completed:
    done = place.run(argv, stdin, timeout_s)
    if done.status:
        output = (done.stderr or done.stdout).decode('utf-8', 'replace')
        raise exception.Unreachable(
            f'{place.name}: building failed: '
            f'{_cause(output) or f"status {done.status}"}')
    return done


def _cause(output: str) -> str:
    """Return the last lines that are not messages of make."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [line for line in lines if not _MAKE.match(line)]
    return printable.one_line(' / '.join((causes or lines)[-2:]))
