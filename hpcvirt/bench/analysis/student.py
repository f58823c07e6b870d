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

"""Student's t distribution, from scipy.

scipy is imported when the first verdict is asked for: it takes as long to
load as all the rest, and reading an output does not need it.
"""

import functools

from hpcvirt import exception


@functools.lru_cache(maxsize=4096)
def quantile(part: float, freedom: float) -> float:
    """The value that t stays below with probability ``part``.

    :param freedom: degrees of freedom, above 0, not necessarily whole
    :raises Unreachable: if scipy is not installed
    """
    return float(_special().stdtrit(freedom, part))


def below(value: float, freedom: float) -> float:
    """Probability that t stays below a value."""
    return float(_special().stdtr(freedom, value))


@functools.cache
def _special():  # type: ignore[no-untyped-def]
    try:
        import scipy.special  # noqa: PLC0415 - see the module's docstring
    except ImportError as exc:
        raise exception.Unreachable(
            'verdicts need scipy: install hpcvirt[bench]') from exc
    return scipy.special
