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

"""Measure guests that Nova launched, and see that the verdicts are true.

The guests are emulated, 10 to 700 times slower than the machine itself. So
the test that compares a flavor with native must fail, by the verdict FAIL and
far from the bounds; MPI between two guests must work all the same. What
``tools/guest_image/prove.py`` proves without a cloud is not repeated here.
"""

import json
import pathlib
import shutil
from typing import Any

from tools.cloud import cloud as clouds
from tools.cloud import commands
from tools.cloud import errors
from tools.cloud import fleet
from tools.cloud import packages
from tools.cloud import progress
from tools.cloud import settings as cloud_settings
from tools.cloud_checks import tempest_run

HERE = pathlib.Path(__file__).resolve().parent
BUILD = cloud_settings.REPOSITORY / 'tools' / 'guest_image' / 'build'
#: For the image, and to run natively what runs in the guests.
PACKAGES = ('debootstrap', 'e2fsprogs', 'zstd', 'hpcc',
            'libopenblas0-serial', 'openmpi-bin')
IMAGE = 'benchmarks'
PAIRS = 5
#: HPCC in seconds under emulation. One rank: two that spin on one emulated
#: CPU never end.
SETTINGS = {'N': '300', 'ranks': '1'}
#: Largest message between the two guests: NetPIPE takes two seconds for each
#: size, however slow the network is.
MESSAGE = '64'
#: Seconds for one run of a benchmark, and for all of Tempest.
RUN_S = 180
TEMPEST_S = 1200
#: An emulated guest that reaches half of native is none.
NEAR = 0.5
COMPARE = 'CompareTest.test_guests_are_within_their_bounds'
SPAN = 'TenantNetworkTest.test_mpi_spans_two_guests'


def check(cloud: clouds.Cloud) -> None:
    """Run the tests that measure.

    :raises CloudError: a verdict is not true, or there is none
    """
    settings = cloud.settings
    packages.install(settings, PACKAGES)
    image = _image(cloud)
    data = settings.log / 'benchmarks'
    shutil.rmtree(data, ignore_errors=True)
    # Kept for a look, whatever comes of it: the outputs are small.
    progress.say(f'outputs are in {data}')
    result = tempest_run.attempt(
        settings, r'^hpcvirt.*\.tests\.scenario', TEMPEST_S, {
            'benchmarks': 'hpcc',
            'benchmark_settings': ','.join([
                *(f'hpcc:{name}={value}' for name, value in SETTINGS.items()),
                f'netpipe:max_size={MESSAGE}']),
            'benchmark_pairs': PAIRS,
            'benchmark_time_limit': RUN_S,
            'benchmark_image_ref': image,
            'native': 'local',
            'guest_plan_file': str(_plan(settings)),
            'mpi_benchmark': 'netpipe',
            'results_dir': str(data / 'tempest'),
        })
    _spanned(result)
    _failed(settings, result)
    _far(settings, data / 'tempest')


def _smallest(settings: cloud_settings.Settings) -> dict[str, Any]:
    """The flavor that is measured: emulation takes long."""
    plan = json.loads(fleet.guest_plan_file(settings).read_text())
    flavor: dict[str, Any] = min(plan['flavors'],
                                 key=lambda flavor: flavor['vcpus'])
    return flavor


def _plan(settings: cloud_settings.Settings) -> pathlib.Path:
    """Write a plan of that flavor alone."""
    plan = json.loads(fleet.guest_plan_file(settings).read_text())
    plan['flavors'] = [_smallest(settings)]
    path = settings.etc / 'smallest-plan.json'
    path.write_text(json.dumps(plan))
    return path


def _spanned(result: tempest_run.Result) -> None:
    text = _only(result.passed, SPAN, 'MPI over two guests did not pass: '
                 + '; '.join(result.failed.values())[-3000:])
    for figure in ('latency_us[1]', 'bandwidth_mb_s[1]'):
        if figure not in text:
            raise errors.CloudError(f'MPI over two guests: no {figure}: '
                                    f'{text}')
    progress.say(text)


def _failed(settings: cloud_settings.Settings,
            result: tempest_run.Result) -> None:
    """The test must have failed by its verdicts; Tempest shows it."""
    text = _only(result.failed, COMPARE, 'the emulated guests did not fail')
    if f'FAIL: {_smallest(settings)["name"]}' not in text:
        raise errors.CloudError(f'no verdict FAIL: {text[-3000:]}')


def _far(settings: cloud_settings.Settings, data: pathlib.Path) -> None:
    """Everything is in the store, and says the same."""
    found = json.loads(commands.output([
        settings.program('python'), str(HERE / 'read_results.py'),
        f'sqlite:///{data}/bench.sqlite', str(data)]))
    compared = [one for one in found if one['purpose'] == 'compare']
    if len(compared) != 1:
        raise errors.CloudError(f'{len(compared)} comparisons are stored')
    for one in compared:
        highest = max(one['high'].values(), default=1.0)
        progress.say(f'{one["label"]}: {one["word"]}, {one["high"]}')
        if one['word'] != 'FAIL' or highest > NEAR:
            raise errors.CloudError(f'not far from native: {one}')
        if one['samples'] != 2 * (PAIRS + 1) or not one['confined']:
            raise errors.CloudError('samples were lost, or native ran on '
                                    f'other CPUs: {one}')


def _only(tests: dict[str, str], name: str, complaint: str) -> str:
    for test, text in tests.items():
        if name in test:
            return text
    raise errors.CloudError(complaint)


def _image(cloud: clouds.Cloud) -> str:
    """Build and upload the image, if it is not there yet.

    :returns: its id
    """
    settings = cloud.settings
    directory = cloud_settings.REPOSITORY / '.guest'
    with progress.step('the benchmark image is built'):
        commands.run(settings, 'bench-image', [str(BUILD), str(directory)],
                     {'PYTHON': settings.program('python')}, limit_s=1500)
    with progress.step('it is in Glance'):
        cloud.python('bench-image', [
            str(HERE / 'upload_image.py'), IMAGE, str(directory)], 300)
    return tempest_run.images(settings)[IMAGE]
