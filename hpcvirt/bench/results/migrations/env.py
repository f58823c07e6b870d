# SPDX-License-Identifier: Apache-2.0

"""Run the migrations on the connection that the caller gave."""

from alembic import context

from hpcvirt.bench.results import tables

context.configure(connection=context.config.attributes['connection'],
                  version_table=tables.VERSION_TABLE)
with context.begin_transaction():
    context.run_migrations()
