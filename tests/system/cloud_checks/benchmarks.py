# SPDX-License-Identifier: Apache-2.0

"""Measure guests that Nova launched, and check that the verdicts are true.

The DevStack plugin builds the image, uploads it and sets the options of
Tempest, in its own phases and with stand-ins for the functions of DevStack.

The guests are emulated, 10 to 700 times slower than the machine itself. The
test that compares a flavor with native must therefore fail, with the verdict
FAIL and far from the bounds. MPI between two guests must work. The checks of
``tests/system/guest_image.py``, which need no cloud, are not repeated.
"""

import configparser
import json
import pathlib
import shutil
from typing import Any

from tests.system.cloud import cloud as clouds
from tests.system.cloud import commands
from tests.system.cloud import errors
from tests.system.cloud import fleet
from tests.system.cloud import inifile
from tests.system.cloud import packages
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud_checks import tempest_run

HERE = pathlib.Path(__file__).resolve().parent
GUEST_IMAGE = cloud_settings.REPOSITORY / 'contrib' / 'guest_image'
#: The DevStack plugin, and the program that runs its phases without DevStack.
PLUGIN = cloud_settings.REPOSITORY / 'devstack'
STACK = cloud_settings.REPOSITORY / 'testing' / 'devstack.sh'
#: Options that the plugin sets.
DEVSTACK_OPTIONS = ('benchmarks', 'native', 'benchmark_image_ref')
#: The pairs that a guest needs to pass in the three figures of HPCC, the boots
#: that they are measured in, and the controls.
PAIRS = 11
BOOTS = 8
CONTROLS = 5
#: HPCC ends in seconds under emulation. With two ranks that spin on one
#: emulated CPU it never ends.
SETTINGS = {'N': '300', 'ranks': '1'}
#: Largest message between the two guests: NetPIPE takes at least two seconds
#: for each size.
MESSAGE = '64'
#: Seconds that one run of a benchmark, and all of Tempest, may take.
RUN_S = 180
TEMPEST_S = 2400
#: The largest ratio of guest to native that is plausible under emulation.
MAX_RATIO = 0.5
COMPARE = 'CompareTest.test_guests_are_within_their_bounds'
MPI = 'TenantNetworkTest.test_mpi_spans_two_guests'


def check(cloud: clouds.Cloud) -> None:
    """Run the tests that measure.

    :raises CloudError: if a verdict is wrong or missing
    """
    settings = cloud.settings
    packages.install(settings, _packages())
    options = _devstack(cloud)
    data = settings.log / 'benchmarks'
    shutil.rmtree(data, ignore_errors=True)
    # The outputs are small and kept for inspection, whatever the result.
    progress.say(f'outputs are in {data}')
    result = tempest_run.attempt(
        settings, r'^hpcvirt.*\.tests\.scenario', TEMPEST_S, {
            **options,
            'benchmark_settings': ','.join([
                *(f'hpcc:{name}={value}' for name, value in SETTINGS.items()),
                f'netpipe:max_size={MESSAGE}']),
            'benchmark_pairs': PAIRS,
            'benchmark_time_limit': RUN_S,
            'guest_plan_file': str(_plan(settings)),
            'mpi_benchmark': 'netpipe',
            'results_dir': str(data / 'tempest'),
        })
    _check_mpi(result)
    _check_comparison(settings, result)
    _check_results(settings, data / 'tempest')


def _smallest(settings: cloud_settings.Settings) -> dict[str, Any]:
    """Choose the flavor to measure: the smallest, since emulation is slow."""
    plan = json.loads(fleet.guest_plan_file(settings).read_text())
    flavor: dict[str, Any] = min(plan['flavors'],
                                 key=lambda flavor: flavor['vcpus'])
    return flavor


def _plan(settings: cloud_settings.Settings) -> pathlib.Path:
    """Write a plan with the smallest flavor alone."""
    plan = json.loads(fleet.guest_plan_file(settings).read_text())
    plan['flavors'] = [_smallest(settings)]
    path = settings.etc / 'smallest-plan.json'
    path.write_text(json.dumps(plan))
    return path


def _check_mpi(result: tempest_run.Result) -> None:
    text = _details(result.passed, MPI, 'MPI over two guests did not pass: '
                    + '; '.join(result.failed.values())[-3000:])
    for figure in ('latency_us[1]', 'bandwidth_mb_s[1]'):
        if figure not in text:
            raise errors.CloudError(f'MPI over two guests: no {figure}: '
                                    f'{text}')
    progress.say(text)


def _check_comparison(settings: cloud_settings.Settings,
                      result: tempest_run.Result) -> None:
    """Check that the test failed because of its verdicts."""
    text = _details(result.failed, COMPARE, 'the emulated guests did not fail')
    if f'FAIL: {_smallest(settings)["name"]}' not in text:
        raise errors.CloudError(f'no verdict FAIL: {text[-3000:]}')


def _check_results(settings: cloud_settings.Settings,
                   data: pathlib.Path) -> None:
    """Check that the store has all results and the same verdicts."""
    runs = json.loads(commands.output([
        settings.program('python'), str(HERE / 'read_results.py'),
        f'sqlite:///{data}/bench.sqlite', str(data)]))
    comparisons = [run for run in runs if run['purpose'] == 'compare']
    if len(comparisons) != 1:
        raise errors.CloudError(f'{len(comparisons)} comparisons are stored, '
                                'not 1')
    (run,) = comparisons
    progress.say(f'{run["label"]}: {run["result"]}, {run["high"]}')
    if (run['result'] != 'FAIL'
            or max(run['high'].values(), default=1.0) > MAX_RATIO):
        raise errors.CloudError(f'an emulated guest is near native: {run}')
    # Native has one warm-up, and the guest one in each boot.
    if run['samples'] != 1 + BOOTS + 2 * PAIRS + CONTROLS:
        raise errors.CloudError(f'samples were lost: {run}')
    if run['launches'] != BOOTS:
        raise errors.CloudError(f'the guest was not relaunched: {run}')
    if not run['confined']:
        raise errors.CloudError('native runs were not confined to the CPUs '
                                f'of the guest: {run}')


def _details(tests: dict[str, str], name: str, message: str) -> str:
    """Return the details of a test.

    :raises CloudError: with this message, if the test is not among them
    """
    for test, text in tests.items():
        if name in test:
            return text
    raise errors.CloudError(message)


def _packages() -> list[str]:
    """Read the packages that the plugin installs."""
    lines = (GUEST_IMAGE / 'packages').read_text().splitlines()
    return [line for line in lines if not line.startswith('#')]


def _devstack(cloud: clouds.Cloud) -> dict[str, inifile.Value]:
    """Run the phases of the DevStack plugin that prepare measurements.

    :returns: the options of the group ``[hpcvirt]`` that it sets
    """
    settings = cloud.settings
    work = settings.run / 'devstack'
    shutil.rmtree(work, ignore_errors=True)
    data = work / 'data'
    data.mkdir(parents=True)
    # It is built once for all checks.
    built = cloud_settings.REPOSITORY / '.guest'
    built.mkdir(exist_ok=True)
    (data / 'guest').symlink_to(built)
    with progress.step('built and uploaded the benchmark image'):
        commands.run(
            settings, 'bench-image',
            ['bash', str(STACK), 'settings', 'stack/extra',
             'stack/test-config'],
            {**settings.credentials(), 'OS_CLOUD': 'envvars',
             'HARNESS_BIN': str(settings.venv / 'bin'),
             'WORK': str(work), 'CALLS': str(work / 'calls'),
             'PLUGIN': str(PLUGIN), 'ENABLED_SERVICES': 'tempest',
             'HPCVIRT_DATA_DIR': str(data), 'HPCVIRT_FLAVORS': 'False',
             'HPCVIRT_BENCHMARKS': 'hpcc'},
            limit_s=1800)
    written = configparser.ConfigParser()
    written.read(work / 'tempest.conf')
    return {name: written['hpcvirt'][name] for name in DEVSTACK_OPTIONS}
