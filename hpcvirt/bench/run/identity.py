# SPDX-License-Identifier: Apache-2.0

"""The identity of a run, and the environment of each sample.

A run is continued only while its definition, its inputs and its machines stay
the same: samples of another binary, another input file or another kernel
belong to another run. Runs with the same *subject* are attempts on it, whose
evidence is judged together (:mod:`hpcvirt.bench.analysis.attempts`).

The subject excludes what does not change the question: the number of samples,
the bounds, the address of an instance and the CPUs that it happens to be
pinned to. It includes the hardware and the settings of the machines, as
:mod:`hpcvirt.bench.execute.environment` captures them. After a change of a
host, its earlier measurements therefore no longer count.
"""

import hashlib
import itertools
import json
import shlex
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import target as targets

#: Time limit for the checksums of the input files of a target.
CHECKSUM_LIMIT_S = 600.0
#: Longer values are not printed.
LONGEST_SHOWN = 60

#: Facts that change with every boot or with every instance.
_UNSTEADY = ('boot_id', 'host', 'server.id', 'server.host_cpus')
#: The memory size that a kernel reports varies by a few pages between boots.
_MEMORY = 'memory.total_kib'
_MEMORY_STEP_KIB = 65536

#: Prints the checksum of each path with its number: of a file, or of all files
#: in a directory.
_CHECKSUMS = """
number=0
for path; do
  if [ -d "$path" ]; then
    sum=$(cd "$path" && find . -type f -exec cksum {} + | sort -k 3 |
      sha256sum)
  elif [ -e "$path" ]; then
    sum=$(sha256sum < "$path")
  else
    sum=missing
  fi || exit
  echo "$number=${sum%% *}"
  number=$((number + 1))
done
"""


def identify(planned: plans.PlannedRun, binaries: Mapping[str, str],
             environments: environment.Environments) -> dict[str, str]:
    """Collect what a run depends on.

    :param binaries: product to its checksum
    :param environments: those of the run
    :returns: name to value, as messages show them
    :raises Unreachable: if a target does not answer
    """
    jobs = planned.guest_jobs
    found = aggregation.merge([job.label for job in jobs],
                              [_describe_job(job) for job in jobs])
    found |= {f'binary {name}': digest for name, digest in binaries.items()}
    for side, of_side in planned.jobs.items():
        labels: list[str] = []
        of_targets: list[dict[str, str]] = []
        for job in of_side:
            for target in job.targets:
                labels.append(target.label)
                of_targets.append({**_facts(environments, job.run, target),
                                   **_checksums(job.run, target)})
        facts = aggregation.merge(labels, of_targets)
        found |= {f'{side} {name}': value for name, value in facts.items()}
    return dict(sorted(found.items()))


def subject(planned: plans.PlannedRun, identity: Mapping[str, str]) -> str:
    """Return the digest of what the verdict of a run is about.

    :param identity: from :func:`identify`
    """
    places = [job.target.flavor or job.target.place.name
              for job in planned.guest_jobs]
    run = planned.run
    return _digest([
        run.benchmark, run.variant, run.purpose, run.host, run.shape,
        run.launch, run.of_launch, run.study, run.case, places,
        dict(identity)])


def changes(before: Mapping[str, str],
            now: Mapping[str, str]) -> tuple[str, ...]:
    """Describe changes: ``native kernel was 6.1.0-18 and is 6.1.0-21``.

    :param before: empty for a run of an hpcvirt that did not record it
    """
    if not before:
        return ('an earlier version of hpcvirt began it',)
    return tuple(
        f'{name} {_change(before.get(name), now.get(name))}'
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name))


def _change(before: str | None, now: str | None) -> str:
    if before is None or now is None:
        return 'is new' if before is None else 'is gone'
    if max(len(before), len(now)) > LONGEST_SHOWN:
        return 'changed'
    return f'was {before or "empty"} and is {now or "empty"}'


def _describe_job(job: run_spec.JobSpec) -> dict[str, str]:
    """Return what the definition and the settings determine of a job."""
    spec = job.run
    definition = spec.definition
    return {
        'command': shlex.join(spec.variant.command),
        'variables': shlex.join(f'{name}={value}' for name, value
                                in sorted(spec.environment.items())),
        'preparation': '; '.join(map(shlex.join, spec.prepare)),
        'build': '; '.join(map(shlex.join, spec.builds)),
        'parser': f'{definition.parser}, {spec.output}, exit status '
        f'{definition.exit_status}',
        'figures': _digest(serialization.dump([
            (figure.name, figure.unit, figure.direction, figure.per_size)
            for figure in definition.metrics])),
        **{f'{record.SETTING}{name}': value for name, value
           in {**spec.parameters, **spec.paths}.items()},
        **{f'input {name}': hashlib.sha256(content).hexdigest()
           for name, content in spec.inputs.items()},
    }


def _facts(environments: environment.Environments, spec: run_spec.RunSpec,
           target: targets.Target) -> dict[str, str]:
    place = executor.RetryingExecutor(target.place)
    found = {**environments.capture(place, spec.command).facts,
             **target.facts}
    memory_kib = words.read_whole(found.get(_MEMORY, ''))
    if memory_kib is not None:
        found[_MEMORY] = str(
            round(memory_kib / _MEMORY_STEP_KIB) * _MEMORY_STEP_KIB)
    return {name: value for name, value in found.items()
            if name not in _UNSTEADY}


def _checksums(spec: run_spec.RunSpec,
               target: targets.Target) -> dict[str, str]:
    """Return the checksums of the files that a job reads on its target.

    A build directory is left out: its binaries have checksums.
    """
    built = ' '.join(itertools.chain.from_iterable(spec.builds))
    paths = {name: path for name, path in spec.paths.items()
             if path not in built}
    if not paths:
        return {}
    place = executor.RetryingExecutor(target.place)
    found = machine_facts.ask(place, _CHECKSUMS, *paths.values(),
                              timeout_s=CHECKSUM_LIMIT_S)
    return {f'file {path}': found.line(str(number))
            for number, path in enumerate(paths.values())}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def capture(specs: Sequence[run_spec.JobSpec],
            places: Sequence[executor.Executor],
            environments: environment.Environments,
            ) -> list[environment.Captured]:
    """Capture the environments of the targets of a sample, before it begins.

    :param places: executors of the targets of the jobs, in their order
    :param environments: those of the run
    :raises Unreachable: if a target does not answer
    """
    commands: list[tuple[str, ...]] = []
    for spec in specs:
        commands += [spec.run.command] * len(spec.targets)
    return [environments.capture(place, command)
            for place, command in zip(places, commands, strict=True)]


def describe(specs: Sequence[run_spec.JobSpec],
             before: Sequence[environment.Captured],
             after: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Merge the facts of all targets of a sample.

    :param before: from :func:`capture`
    :param after: from :func:`hpcvirt.bench.execute.environment.load`, after
        the sample
    """
    used: list[targets.Target] = []
    for spec in specs:
        used += spec.targets
    merged = aggregation.merge([target.label for target in used], [
        {**early.facts, **environment.describe_load(early.load, late),
         **target.facts, 'place': target.place.name}
        for early, late, target in zip(before, after, used, strict=True)])
    cores = [spec.cores_used for spec in specs]
    known = [count for count in cores if count is not None]
    if len(known) == len(cores):
        merged['cores.used'] = str(sum(known))
    return merged
