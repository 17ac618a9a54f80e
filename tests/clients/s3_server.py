"""moto's S3 on a free port, with a bucket `lake`; ends when its standard input does."""

import logging
import sys
import urllib.request

from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
host, port = server.get_host_and_port()
urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/lake", method="PUT")).close()
print(f"http://{host}:{port}", flush=True)
sys.stdin.read()
server.stop()
