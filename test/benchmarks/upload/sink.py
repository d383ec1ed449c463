# Stands in for Glance where network and cloud must cost as little as possible: it receives images and stores nothing.
# It does not even copy the bytes of a file out of the kernel (MSG_TRUNC, see tcp(7)). It prints its address for each
# line of input, and exits at the end of its input.
import json
import re
import socket
import sys
import threading

IMAGE = {"id": "7a1d8a5c-0f0a-4d6f-9a63-0a6cb3ba9b11", "name": "image", "status": "active"}
PIECE = bytearray(1 << 20)

listener = socket.create_server(("127.0.0.1", 0))
address = "http://127.0.0.1:%d" % listener.getsockname()[1]
VERSIONS = {
    "versions": [
        {"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": address + "/v2/"}]}
    ]
}


def response_to(request_line):
    """Returns the status and the value to send as JSON."""
    if re.match(r"PUT /v2/images/[^/]+/file ", request_line):
        return "204 No Content", None
    if request_line.startswith("POST /v2/images "):
        return "201 Created", dict(IMAGE, status="queued")
    if re.match(r"GET /v2/images/[^/? ]+ ", request_line):
        return "200 OK", IMAGE
    if re.match(r"GET /(v2/?)? ", request_line):
        return "200 OK", VERSIONS
    return "404 Not Found", None


def discard(connection, count):
    while count > 0:
        taken = connection.recv_into(PIECE, min(count, len(PIECE)), socket.MSG_TRUNC)
        if taken == 0:
            raise EOFError
        count -= taken


def serve(connection):
    received = b""
    while True:
        while b"\r\n\r\n" not in received:
            more = connection.recv(65536)
            if not more:
                return
            received += more
        head, received = received.split(b"\r\n\r\n", 1)
        request_line, *headers = head.decode().split("\r\n")
        length = 0
        for header in headers:
            name, value = header.split(":", 1)
            if name.lower() == "content-length":
                length = int(value)
        discard(connection, length - len(received))
        received = received[length:]
        status, value = response_to(request_line)
        body = b"" if value is None else json.dumps(value).encode()
        framing = "" if status.startswith("204") else "Content-Length: %d\r\n" % len(body)
        reply = "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%s\r\n" % (status, framing)
        connection.sendall(reply.encode() + body)


def accept():
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
for _ in sys.stdin:
    print(address, flush=True)
