# SPDX-License-Identifier: Apache-2.0

"""Compare the strategies for other seeds, by ``benchmarks/seeds.py``.

The demonstration shows one sequence of many. The benchmark models Nova and
places other sequences in seconds; it also places the one that is shown, which
verifies the model.
"""

import json
import os
import subprocess
import sys
from typing import Any

from demo import fleet

#: The number of other seeds.
OTHERS = 20


def outcomes(seed: int) -> dict[str, Any]:
    """Run the benchmark.

    :param seed: the seed of the demonstration
    :returns: the document that it prints
    """
    done = subprocess.run(
        (sys.executable, str(fleet.ROOT / 'benchmarks' / 'seeds.py'),
         '--seed', str(seed), '--others', str(OTHERS), '--format', 'json'),
        env={**os.environ, 'PYTHONPATH': str(fleet.ROOT)},
        stdout=subprocess.PIPE, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document
