"""Verifies sigstore bundles with Debian's python3-securesystemslib, and prints their statements.

usage: verify.py PUBLIC-KEY BUNDLE...

It shares no code with the project: it decodes bundles and envelopes as the specifications require, and securesystemslib
verifies signatures. Exits with 1 if a signature is invalid.
"""

import base64
import hashlib
import json
import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import Signature, SSlibKey


def read_key(path):
    """Reads a key from a PEM file, with the key id that bundles contain as a hint."""
    with open(path, "rb") as file:
        pem = file.read()
    key = serialization.load_pem_public_key(pem)
    encoding = serialization.Encoding
    formats = serialization.PublicFormat
    keyid = hashlib.sha256(key.public_bytes(encoding.DER, formats.SubjectPublicKeyInfo)).hexdigest()
    if isinstance(key, ed25519.Ed25519PublicKey):
        public = key.public_bytes(encoding.Raw, formats.Raw).hex()
        return SSlibKey(keyid, "ed25519", "ed25519", {"public": public})
    assert isinstance(key, ec.EllipticCurvePublicKey)
    scheme = {"secp256r1": "ecdsa-sha2-nistp256", "secp384r1": "ecdsa-sha2-nistp384"}[key.curve.name]
    return SSlibKey(keyid, scheme, scheme, {"public": pem.decode()})


def pre_authentication_encoding(kind, payload):
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def verify(path, key):
    with open(path, encoding="utf-8") as file:
        bundle = json.load(file)
    assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert bundle["verificationMaterial"]["publicKey"]["hint"] == key.keyid
    envelope = bundle["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"], validate=True)
    signed = pre_authentication_encoding(envelope["payloadType"].encode(), payload)
    [signature] = envelope["signatures"]
    raw = base64.b64decode(signature["sig"], validate=True)
    key.verify_signature(Signature(signature["keyid"], raw.hex()), signed)
    return json.loads(payload)


def main(key_path, *paths):
    key = read_key(key_path)
    try:
        print(json.dumps([verify(path, key) for path in paths]))
    except UnverifiedSignatureError as error:
        sys.exit(str(error))


main(*sys.argv[1:])
