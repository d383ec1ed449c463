#!/usr/bin/python3
"""Receives notifications from nodepool-builder, and prints the text of each event.

    receiver.py PORT SECRET-FILE

A request is accepted if its signature is valid and its timestamp is at most five minutes old. An event that is
delivered again because the first response was lost is printed once.
"""
import base64
import hashlib
import hmac
import http.server
import json
import sys
import time

MAX_AGE = 300
MAX_LENGTH = 1024 * 1024

port, secret_file = int(sys.argv[1]), sys.argv[2]
with open(secret_file) as file:
    secret = file.read().strip()
if secret.startswith("whsec_"):
    key = base64.b64decode(secret.removeprefix("whsec_"))
else:
    key = secret.encode()
seen = set()


def is_genuine(headers, body):
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > MAX_AGE:
        return False
    signed = f"{event_id}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(signature, f"v1,{digest}") for signature in signatures)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(min(length, MAX_LENGTH))
        status = 204 if is_genuine(self.headers, body) else 401
        self.send_response(status)
        self.end_headers()
        event_id = self.headers.get("webhook-id", "")
        if status == 204 and event_id not in seen:
            seen.add(event_id)
            print(json.loads(body)["text"], flush=True)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
print(f"listening on port {server.server_port}", flush=True)
server.serve_forever()
