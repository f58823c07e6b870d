# SPDX-License-Identifier: Apache-2.0

"""The unit tests.

Hypothesis limits no example to a time: on a busy machine, any may take long.
"""

import hypothesis

hypothesis.settings.register_profile(
    'hpcvirt', hypothesis.settings.default, deadline=None, max_examples=50)
hypothesis.settings.load_profile('hpcvirt')
