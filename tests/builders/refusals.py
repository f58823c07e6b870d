# SPDX-License-Identifier: Apache-2.0

"""What is said of input that cannot be used."""

import unittest
from collections.abc import Callable
from typing import Any

from hpcvirt import exception


def message(case: unittest.TestCase, function: Callable[..., object],
            *args: Any, **more: Any) -> str:
    """Check that a call refuses its input; return what it says.

    :param function: what is called, with the other arguments
    :returns: the message, which begins with the place of the fault
    """
    try:
        function(*args, **more)
    except exception.InvalidInput as exc:
        return str(exc)
    raise case.failureException('the input was not refused')
