# SPDX-License-Identifier: Apache-2.0

# Chooses threads in place of eventlet, before any other module of Watcher.
import watcher.tests.unit  # noqa: F401
