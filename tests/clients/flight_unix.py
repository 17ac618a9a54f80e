"""Speaks Flight with pyarrow and ADBC over a socket in the file system.

usage: flight_unix.py URI
"""

import sys

from adbc_driver_flightsql import dbapi
from pyarrow import flight

client = flight.connect(sys.argv[1])
list(client.list_actions())

with dbapi.connect(sys.argv[1], autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute("select 41 + 1 as answer")
    assert cursor.fetchall() == [(42,)], "ADBC"
