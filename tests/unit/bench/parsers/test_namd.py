# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base


def output(wall='1748.123412', end='[Partition 0][Node 0] End of program\n'):
    """What NAMD 2.14 prints, shortened."""
    return f"""\
Charm++: standalone mode (not using charmrun)
Info: NAMD 2.14 for Linux-x86_64-multicore
Info: Running on 4 processors, 1 nodes, 1 physical nodes.
Info: ENERGY OUTPUT STEPS    20
Info: 1066628 ATOMS
ENERGY:     460   -1.0 0.0 2.0
Info: Benchmark time: 4 CPUs 3.51234 s/step 20.3261 days/ns 1300.4 MB memory
ENERGY:     480   -1.0 0.0 2.0
Info: Benchmark time: 4 CPUs 3.49021 s/step 20.1980 days/ns 1300.4 MB memory
TIMING: 500  CPU: 1745.1, 3.4/step  Wall: 1748.1, 3.4/step, 0 hours remaining
ENERGY:     500   -1.0 0.0 2.0
WRITING EXTENDED SYSTEM TO OUTPUT FILE AT STEP 500
WRITING COORDINATES TO OUTPUT FILE AT STEP 500
WallClock: {wall}  CPUTime: 1745.123412  Memory: 1300.437500 MB
{end}"""


#: What NAMD 3 prints, shortened; some of it is of a run that holds everything
#: on a GPU, and prints ns/day.
NAMD_3 = """\
Charm++: standalone mode (not using charmrun)
Info: NAMD 3.0.2 for Linux-x86_64-multicore-CUDA
Info: Running on 8 processors, 1 nodes, 1 physical nodes.
Info: 1066628 ATOMS
Info: Initial time: 8 CPUs 0.0602873 s/step 5.73255 ns/day 0 MB memory
Info: Benchmark time: 8 CPUs 0.0106954 s/step 16.1565 ns/day 0 MB memory
ENERGY:     480   -1.0 0.0 2.0
Info: Benchmark time: 8 CPUs 0.0104954 s/step 16.4644 ns/day 0 MB memory
TIMING: 500  CPU: 6.17736, 0.0105293/step  Wall: 6.18515, 0.0104489/step, \
8.2688 ns/days, 0 hours remaining, 0.000000 MB of memory in use.
ENERGY:     500   -1.0 0.0 2.0
WallClock: 9.123412  CPUTime: 8.745123  Memory: 0.000000 MB
[Partition 0][Node 0] End of program
"""
AVERAGE = ('PERFORMANCE: {}  averaging {} ns/day, {} sec/step with standard '
           'deviation 0.000148228\n')

GOOD_OUTPUTS = ((output().encode(), {}), (NAMD_3.encode(), {}))


class TestNamd(base.ParserTestCase):
    parser = 'namd'
    refused = (
        ('benchmark lines that contradict each other', 'do not agree',
         NAMD_3.replace('0.0106954 s/step', '0.1069540 s/step')),
        ('benchmark lines that contradict each other', 'is broken',
         NAMD_3.replace('0.0106954 s/step 16.1565 ns/day', '0.01')),
        ('a run without its end', 'no "End of program"', output(end='')),
        ('a run without its end', 'WallClock',
         output().partition('  CPUTime')[0]),
        ('an error', 'FATAL ERROR: Low global',
         output().replace(
             'WallClock',
             'FATAL ERROR: Low global exclusion count!\nWall')),
        ('energies that are no numbers', 'nan',
         output().replace('ENERGY:     500   -1.0', 'ENERGY:     500   nan')),
        ('fewer steps or processors', 'steps=1000', output(),
         {'steps': '1000'}),
        ('fewer steps or processors', 'processors=8', output(), {'p': '8'}),
        ('two runs', 'several runs', output() + output()),
    )

    def test_the_wall_clock_is_read(self):
        self.assertEqual(
            {'wall_s': 1748.123412, 'step_time_s': 3.49021},
            self.figures(output(), {'processors': '4', 'atoms': '1066628',
                                    'numsteps': '500', 'version': '2.14'}))

    def test_no_energies_can_be_cut_out(self):
        raw = output()
        begin = raw.index('ENERGY:     480')
        for end in (raw.index('Info: Benchmark', begin),
                    raw.index('WRITING EXT')):
            self.assert_refused('lines are missing', raw[:begin] + raw[end:])
        end = raw.index('TIMING: 500')
        self.assert_refused('lines are missing',
                            raw[:end] + raw[raw.index('WRITING EXT'):]
                            .replace('STEP 500', 'STEP 501'))
        # A script may print them less often later on.
        self.figures(raw.replace('ENERGY:     460', (
            'TCL: Setting parameter outputEnergies to 400\nENERGY:    60')))

    def test_a_benchmark_line_of_which_the_beginning_is_missing_is_broken(
            self):
        raw = output()
        begin = raw.rindex('Info: Benchmark') + 1
        self.assert_refused('is broken', raw[:begin] + raw[begin + 5:])

    def test_version_3_is_read(self):
        self.assertEqual(
            {'wall_s': 9.123412, 'step_time_s': 0.0104954},
            self.figures(NAMD_3, {'processors': '8', 'steps': '500',
                                  'version': '3.0.2'}))

    def test_the_average_of_version_3_counts(self):
        raw = NAMD_3.replace(
            'TIMING', AVERAGE.format(480, 34.8074, 0.00248223)
            + AVERAGE.format(500, 34.9, 0.00247565) + 'TIMING')
        self.assertEqual(0.00247565, self.figures(raw)['step_time_s'])

    def test_bad_times_are_refused(self):
        for word in ('nan', '0.000000', '-1', 'inf'):
            self.assert_refused('WallClock', output(wall=word))
