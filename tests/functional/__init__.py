# SPDX-License-Identifier: Apache-2.0

"""Tests that need Nova.

The embedded Nova is imported first, because it selects threads before a test
module imports Nova.
"""

import importlib
import logging

import testing  # noqa: F401

# nova.test hangs a handler on the root logger that writes to stdout, into the
# midst of the results. A test that wants logs captures them.
importlib.import_module('nova.test')
logging.getLogger().handlers[:] = [logging.NullHandler()]
