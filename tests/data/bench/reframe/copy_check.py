# SPDX-License-Identifier: Apache-2.0

"""The check whose reports are here: dd copies zeros in memory."""

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class MemoryCopy(rfm.RunOnlyRegressionTest):
    block = parameter(['1M', '4M'])
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'dd'
    reference = {'*': {'rate': (1, -0.9, None, 'GB/s')}}

    @run_before('run')
    def set_options(self):
        count = 800 // int(self.block[:-1])
        self.executable_opts = [
            'if=/dev/zero', 'of=/dev/null', f'bs={self.block}',
            f'count={count}']

    @sanity_function
    def is_copied(self):
        return sn.assert_found(r'copied', self.stderr)

    def _value(self, pattern):
        return sn.extractsingle(pattern, self.stderr, 1, float)

    @performance_function('GB/s')
    def rate(self):
        return self._value(r'(\S+) GB/s')

    @performance_function('s')
    def elapsed(self):
        return self._value(r'copied, (\S+) s')

    @performance_function('B')
    def size(self):
        return self._value(r'(\d+) bytes')


@rfm.simple_test
class Functional(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'true'

    @sanity_function
    def passes(self):
        return True
