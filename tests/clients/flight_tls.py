"""Speaks Flight over TLS with pyarrow and ADBC, and shows a certificate.

usage: flight_tls.py URI TOKEN CA CERTIFICATE KEY
"""

import sys

from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_flightsql import dbapi
from pyarrow import flight

URI, TOKEN, CA, CERTIFICATE, KEY = sys.argv[1:6]


def text(path):
    with open(path, "rb") as file:
        return file.read()


def refused(call):
    try:
        call()
    except flight.FlightError as refusal:
        return str(refusal)
    raise AssertionError("not refused")


trusted = {"tls_root_certs": text(CA)}
shown = {"cert_chain": text(CERTIFICATE), "private_key": text(KEY)}
client = flight.connect(URI, **trusted, **shown)
options = flight.FlightCallOptions(headers=[client.authenticate_basic_token("anybody", TOKEN)])
list(client.list_actions(options))

refused(lambda: flight.connect(URI, **trusted).authenticate_basic_token("anybody", TOKEN))
refused(lambda: flight.connect(URI, **shown).authenticate_basic_token("anybody", TOKEN))

database = {
    "username": "anybody",
    "password": TOKEN,
    DatabaseOptions.TLS_ROOT_CERTS.value: text(CA).decode(),
    DatabaseOptions.MTLS_CERT_CHAIN.value: text(CERTIFICATE).decode(),
    DatabaseOptions.MTLS_PRIVATE_KEY.value: text(KEY).decode(),
}
with dbapi.connect(URI, db_kwargs=database, autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute("select 41 + 1 as answer")
    assert cursor.fetchall() == [(42,)], "ADBC"
