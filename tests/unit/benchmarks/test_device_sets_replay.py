# SPDX-License-Identifier: Apache-2.0

"""Requests for GPUs are replayed with sets, and with Nova's first match.

The sample has the form of the trace; its values are not of the trace.
"""

import contextlib
import importlib.util
import io
import pathlib
import random
import sys

from tests.unit.simulate.read import files

_spec = importlib.util.spec_from_file_location(
    'device_sets_replay', pathlib.Path(__file__).parents[3] / 'benchmarks'
    / 'device_sets_replay.py')
device_sets_replay = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = device_sets_replay
_spec.loader.exec_module(device_sets_replay)

NO_TIMES = 'name,cpu_milli,memory_mib,num_gpu,gpu_milli\n'
TIMES = NO_TIMES.strip() + ',creation_time,deletion_time,scheduled_time\n'


def sample(number):
    """Make a list of pods with times, and the same without."""
    dice = random.Random(1)
    with_times, without = TIMES, NO_TIMES
    for place in range(number):
        row = f'p{place},1000,1024,{dice.choice((0, 1, 1, 1, 2, 4, 8))},1000'
        start = place * 60
        with_times += f'{row},{start},{start + dice.randint(60, 6000)},{start}'
        with_times += '\n'
        without += f'{row}\n'
    return with_times, without


class ReplayTest(files.FilesTestCase):
    def replay(self, *words):
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()) as error:
            status = device_sets_replay.main([*words, '--hosts', '3'])
        return status, out.getvalue(), error.getvalue()

    def test_sets_are_legal_and_a_first_match_need_not_be(self):
        with_times, without = map(self.write, sample(200), ('times', 'pods'))
        for words in ((with_times,), (without, '--times', with_times)):
            status, out, _ = self.replay(*words)
            self.assertEqual(0, status)
            illegal = {}
            for line in out.splitlines()[2:]:
                *how, gpus, asked, accepted, wrong, _, _ = line.rsplit(
                    maxsplit=7)
                self.assertLessEqual(int(accepted), int(asked))
                own = illegal.setdefault('sets' in how[0], {})
                own[gpus] = own.get(gpus, 0) + int(wrong)
            self.assertEqual({'2': 0, '4': 0, '8': 0, 'all': 0}, illegal[True])
            self.assertGreater(illegal[False]['4'], 0)
            self.assertEqual(0, illegal[False]['8'])

    def test_a_list_without_gpus_is_refused_in_one_line(self):
        status, _, error = self.replay(self.write(NO_TIMES))
        self.assertEqual(2, status)
        self.assertRegex(error, r'\Adevice_sets_replay: .* no pod with GPUs\n')
