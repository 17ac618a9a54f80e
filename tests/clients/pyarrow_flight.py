"""Speaks Flight SQL with pyarrow's plain Flight client, messages encoded by hand: what a driver's author would see.

usage: pyarrow_flight.py URI TOKEN
"""

import sys

from pyarrow import flight

URI, TOKEN = sys.argv[1:3]


def field(number, value):
    """A protobuf field of text or bytes."""
    data = value.encode() if isinstance(value, str) else value
    length, size = b"", len(data)
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def command(name, body=b""):
    return field(1, f"type.googleapis.com/arrow.flight.protocol.sql.{name}") + field(2, body)


def refused(error, call):
    try:
        call()
    except error as refusal:
        return str(refusal)
    raise AssertionError(f"no {error.__name__}")


client = flight.connect(URI)
statement = flight.FlightDescriptor.for_command(command("CommandStatementQuery", field(1, "select 41 + 1 as answer")))
refused(flight.FlightUnauthenticatedError, lambda: client.get_flight_info(statement))
refused(flight.FlightUnauthenticatedError, lambda: client.authenticate_basic_token("anybody", "wrong"))

name, bearer = client.authenticate_basic_token("anybody", TOKEN)
assert (name, bearer) == (b"authorization", f"Bearer {TOKEN}".encode()), (name, bearer)
options = flight.FlightCallOptions(headers=[(name, bearer)])

info = client.get_flight_info(statement, options)
(endpoint,) = info.endpoints
reader = client.do_get(endpoint.ticket, options)
assert reader.schema == info.schema == client.get_schema(statement, options).schema
assert reader.read_all().to_pylist() == [{"answer": 42}]


# What is too long to be repeated is described all the same.
letters = "x" * 1_000_000
long = flight.FlightDescriptor.for_command(
    command("CommandStatementQuery", field(1, f"select length('{letters}') as n"))
)
(endpoint,) = client.get_flight_info(long, options).endpoints
assert client.do_get(endpoint.ticket, options).read_all().to_pylist() == [{"n": 1_000_000}]


class Credentials(flight.ClientAuthHandler):
    """The handshake by messages, whose token goes with each call as `auth-token-bin`."""

    def __init__(self, token):
        super().__init__()
        self.password, self.token = token, b""

    def authenticate(self, outgoing, incoming):
        outgoing.write(flight.BasicAuth("anybody", self.password).serialize())
        self.token = incoming.read()

    def get_token(self):
        return self.token


by_messages = flight.connect(URI)
by_messages.authenticate(Credentials(TOKEN))
assert by_messages.get_flight_info(statement).schema == info.schema
refused(flight.FlightUnauthenticatedError, lambda: flight.connect(URI).authenticate(Credentials("wrong")))

listing = flight.FlightDescriptor.for_command(command("CommandGetCatalogs"))
(endpoint,) = client.get_flight_info(listing, options).endpoints
assert client.do_get(endpoint.ticket, options).read_all().to_pylist() == [{"catalog_name": "querent"}]

said = refused(NotImplementedError, lambda: list(client.do_action(flight.Action("BeginTransaction", b""), options)))
assert "BeginTransaction" in said and "commits by itself" in said, said
assert "CreatePreparedStatement" in [action.type for action in client.list_actions(options)]
said = refused(ValueError, lambda: list(client.do_action(flight.Action("CreatePreparedStatement", b""), options)))
assert "CreatePreparedStatement" in said, said

flights = list(client.list_flights(options=options))
assert flights == [], "there are no tables"
(result,) = client.do_action(flight.Action("CreatePreparedStatement", command(
    "ActionCreatePreparedStatementRequest", field(1, "select 43 as answer"))), options)
assert b"ActionCreatePreparedStatementResult" in result.body.to_pybytes()

forged = flight.Ticket(command("TicketStatementQuery", field(1, b"x" * 64)))
said = refused(Exception, lambda: client.do_get(forged, options).read_all())
assert "not made by this server" in said, said
print("pyarrow's Flight client is content")
