# SPDX-License-Identifier: Apache-2.0

"""Create the tables."""

from alembic import op

from hpcvirt.bench.results import tables

revision = '0001'
down_revision = None


def upgrade() -> None:
    """Create the tables that are missing.

    They have not changed since. The first revision that changes them keeps
    here what they were.
    """
    tables.METADATA.create_all(op.get_bind())
