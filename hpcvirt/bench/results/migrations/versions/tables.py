# SPDX-License-Identifier: Apache-2.0

"""Create the tables.

A store that is older than the migrations has them already.
"""

import sqlalchemy
from alembic import op
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None


def upgrade() -> None:
    """Create the tables that are missing."""
    metadata = sqlalchemy.MetaData()
    document = sqlalchemy.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql',
                                              'mariadb')
    sqlalchemy.Table(
        'hpcvirt_results', metadata,
        sqlalchemy.Column('id', sqlalchemy.String(64), primary_key=True),
        sqlalchemy.Column('plan', sqlalchemy.String(64), nullable=False,
                          index=True),
        sqlalchemy.Column('started_at', sqlalchemy.String(40),
                          nullable=False),
        sqlalchemy.Column('finished_at', sqlalchemy.String(40)),
        sqlalchemy.Column('software', document, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    sqlalchemy.Table(
        'hpcvirt_runs', metadata,
        sqlalchemy.Column('id', sqlalchemy.String(64), primary_key=True),
        sqlalchemy.Column('result_id', sqlalchemy.String(64),
                          sqlalchemy.ForeignKey('hpcvirt_results.id'),
                          nullable=False, index=True),
        sqlalchemy.Column('number', sqlalchemy.Integer, nullable=False),
        sqlalchemy.Column('benchmark', sqlalchemy.String(64),
                          nullable=False),
        sqlalchemy.Column('host', sqlalchemy.String(255), nullable=False,
                          index=True),
        sqlalchemy.Column('document', document, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    sqlalchemy.Table(
        'hpcvirt_samples', metadata,
        sqlalchemy.Column('run_id', sqlalchemy.String(64),
                          sqlalchemy.ForeignKey('hpcvirt_runs.id'),
                          primary_key=True),
        sqlalchemy.Column('position', sqlalchemy.Integer, primary_key=True,
                          autoincrement=False),
        sqlalchemy.Column('document', document, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
    metadata.create_all(op.get_bind())
