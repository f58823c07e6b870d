# SPDX-License-Identifier: Apache-2.0

"""Read nova.conf as Nova's services on the controller do."""

import contextlib
import functools
import logging
import re
from collections.abc import Iterator
from collections.abc import Sequence

import nova.conf
import oslo_messaging
import sqlalchemy
from nova import config
from nova import objects
from nova.db.api import api as api_database
from nova.db.main import api as main_database
from oslo_config import cfg

from hpcvirt import exception
from hpcvirt.conf import weights
from hpcvirt.nova_live import masking
from hpcvirt.nova_live import read_only

_LINE = re.compile(r':(\d+)\b')


@contextlib.contextmanager
def convert_errors() -> Iterator[None]:
    """Convert errors of oslo.config, which is read when Nova needs an option.

    :raises InvalidInput: naming the option
    """
    try:
        yield
    except cfg.Error as exc:
        raise exception.InvalidInput(
            'nova.conf', masking.mask(exc)) from None


def _parse(files: Sequence[str], folders: Sequence[str]) -> None:
    """Read the options of Nova, and those of hpcvirt in nova.conf."""
    # Nova's warnings do not concern the user of this command, and libraries
    # may log secrets.
    logging.getLogger().addHandler(logging.NullHandler())
    words = [f'--config-file={path}' for path in files]
    words += [f'--config-dir={path}' for path in folders]
    try:
        config.parse_args(['hpcvirt', *words], configure_db=False,
                          init_rpc=False)
    except cfg.ConfigFileParseError as exc:
        # The message quotes the line, which may have a password.
        line = _LINE.search(str(exc))
        raise exception.InvalidInput(
            exc.config_file, 'cannot be understood'
            + (f' at line {line[1]}' if line else '')) from None
    except cfg.Error as exc:
        raise exception.InvalidInput(
            'nova.conf', masking.mask(exc)) from None
    weights.register_opts(nova.conf.CONF)


@functools.cache
def load(files: Sequence[str] = (), folders: Sequence[str] = ()) -> None:
    """Read nova.conf, and prepare to read the databases that it names.

    :param files: ``--config-file``; if empty, oslo.config searches nova.conf
        in its default places, such as /etc/nova
    :param folders: ``--config-dir``
    :raises InvalidInput: if it cannot be used
    """
    _parse(files, folders)
    conf = nova.conf.CONF
    if not conf.config_file and not files:
        raise exception.InvalidInput(
            'nova.conf', 'is not found in /etc/nova; name it with '
            '--config-file, or the hosts with --fleet')
    with contextlib.suppress(oslo_messaging.InvalidTransportURL):
        # This registers an option to which the records of Nova cells may
        # refer; no message is sent.
        oslo_messaging.TransportURL.parse(conf)
    if not conf.api_database.connection:
        raise exception.InvalidInput(
            'nova.conf', 'has no [api_database]connection, or it is not '
            'readable; run the command on a controller')
    for group in ('api_database', 'database'):
        # An operator waits for the answer, and can run the command again.
        conf.set_override('max_retries', 1, group)
        conf.set_override('retry_interval', 0, group)
    read_only.guard(sqlalchemy.engine.Engine)
    try:
        main_database.configure(conf)
        api_database.configure(conf)
    except (cfg.Error, sqlalchemy.exc.SQLAlchemyError) as exc:
        raise exception.InvalidInput(
            'nova.conf', masking.mask(exc)) from None
    objects.register_all()
