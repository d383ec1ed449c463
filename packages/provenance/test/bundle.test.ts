import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { type Bundle, bundleFromJSON } from '@sigstore/bundle';
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { payloadDigest, signStatement, unverifiedStatement, verifyBundle } from '../src/bundle.ts';
import { ProvenanceError } from '../src/errors.ts';
import { readTrustedKeys } from '../src/keys.ts';
import { openSigner } from '../src/signer.ts';
import type { Signer, Statement, TrustedKey } from '../src/types.ts';
import { provenanceFailure } from './provenance-failure.ts';
import { KEY_TYPES, writeKeys } from './site-fixture.ts';

const STATEMENT: Statement = {
  subjects: [{ name: 'debian-1.qcow2', sha256: 'a'.repeat(64) }],
  predicateType: 'https://example.org/predicate/v1',
  predicate: { text: 'ünïcode', number: 1, list: [true, null] },
};

type Json = Record<string, unknown>;

async function signed(
  directory: string,
  keyType: keyof typeof KEY_TYPES = 'Ed25519',
): Promise<{ text: string; signer: Signer; trusted: readonly TrustedKey[] }> {
  const keys = await writeKeys(directory, 'site', KEY_TYPES[keyType]);
  const signer = await openSigner({ key: keys.key });
  const trusted = await readTrustedKeys([keys.publicKey]);
  return { text: await signStatement(STATEMENT, signer), signer, trusted };
}

/** Returns the bundle with a change in its JSON. */
function edited(text: string, change: (bundle: Json, envelope: Json, signature: Json) => void): string {
  const bundle = JSON.parse(text) as Json;
  const envelope = bundle.dsseEnvelope as Json & { signatures: [Json] };
  change(bundle, envelope, envelope.signatures[0]);
  return JSON.stringify(bundle);
}

function parsed(text: string): Bundle {
  return bundleFromJSON(JSON.parse(text));
}

describe('a bundle', () => {
  for (const keyType of Object.keys(KEY_TYPES) as (keyof typeof KEY_TYPES)[]) {
    test(`a bundle signed with ${keyType} is verified`, async (t) => {
      const { text, signer, trusted } = await signed(temporaryDirectory(t), keyType);
      const verified = verifyBundle({ place: 'here', text }, trusted);
      assert.deepEqual(verified.statement, STATEMENT);
      assert.equal(verified.keyId, signer.keyId);
      assert.equal(verified.keyFile, trusted[0]?.file);
      assert.equal(verified.digest, payloadDigest(text));
      assert.deepEqual(unverifiedStatement({ place: 'here', text }), STATEMENT);
    });
  }

  test('a bundle has the format of sigstore and in-toto', async (t) => {
    const { text, signer } = await signed(temporaryDirectory(t));
    const { mediaType, verificationMaterial, dsseEnvelope } = JSON.parse(text);
    assert.equal(mediaType, 'application/vnd.dev.sigstore.bundle.v0.3+json');
    assert.equal(verificationMaterial.publicKey.hint, signer.keyId);
    assert.equal(dsseEnvelope.payloadType, 'application/vnd.in-toto+json');
    const payload = Buffer.from(dsseEnvelope.payload, 'base64');
    assert.deepEqual(JSON.parse(payload.toString()), {
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'debian-1.qcow2', digest: { sha256: 'a'.repeat(64) } }],
      predicateType: STATEMENT.predicateType,
      predicate: STATEMENT.predicate,
    });
    assert.equal(payloadDigest(text), createHash('sha256').update(payload).digest('hex'));
  });

  // sigstore's verifier has no SHA-384, with which sigstore's registry of algorithms pairs P-384.
  for (const keyType of ['Ed25519', 'ECDSA P-256'] as const) {
    test(`a bundle signed with ${keyType} is verified by sigstore’s own verifier`, async (t) => {
      const { text, signer, trusted } = await signed(temporaryDirectory(t), keyType);
      const [key] = trusted;
      assert.ok(key !== undefined);
      const none = { tlogs: [], ctlogs: [], certificateAuthorities: [], timestampAuthorities: [] };
      const material = toTrustMaterial({ mediaType: '', ...none }, (hint) => {
        assert.equal(hint, signer.keyId);
        return { publicKey: key.key, validFor: () => true };
      });
      const verifier = new Verifier(material, { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 0 });
      verifier.verify(toSignedEntity(parsed(text)));
      const changed = edited(text, (_bundle, envelope) => {
        envelope.payload = Buffer.from('{}').toString('base64');
      });
      assert.throws(() => verifier.verify(toSignedEntity(parsed(changed))), /signature verification failed/);
    });
  }

  test('a bundle becomes invalid if any of its bytes changes', async (t) => {
    const { text, trusted } = await signed(temporaryDirectory(t));
    const bytes = Buffer.from(text);
    for (const mask of [0x01, 0x20, 0x80]) {
      for (let index = 0; index < bytes.length; index += 1) {
        const changed = Buffer.from(bytes);
        changed[index] = (bytes[index] ?? 0) ^ mask;
        assert.throws(
          () => verifyBundle({ place: 'here', text: changed.toString() }, trusted),
          ProvenanceError,
          `byte ${index} with ${mask}: ${changed.toString('utf8', Math.max(0, index - 20), index + 20)}`,
        );
      }
    }
  });

  test('a bundle becomes invalid if any byte of its payload or signature changes', async (t) => {
    for (const keyType of Object.keys(KEY_TYPES) as (keyof typeof KEY_TYPES)[]) {
      const { text, trusted } = await signed(temporaryDirectory(t), keyType);
      for (const part of ['payload', 'sig'] as const) {
        let length = 1;
        for (let index = 0; index < length; index += 1) {
          const changed = edited(text, (_bundle, envelope, signature) => {
            const owner = part === 'payload' ? envelope : signature;
            const bytes = Buffer.from(String(owner[part]), 'base64');
            length = bytes.length;
            bytes[index] = (bytes[index] ?? 0) ^ 1;
            owner[part] = bytes.toString('base64');
          });
          assert.throws(
            () => verifyBundle({ place: 'here', text: changed }, trusted),
            provenanceFailure('signature-invalid', 'here', trusted[0]?.file ?? ''),
          );
        }
      }
    }
  });

  test('a bundle that was truncated is rejected at every length', async (t) => {
    const { text, trusted } = await signed(temporaryDirectory(t));
    for (let length = 0; length < text.length; length += 1) {
      assert.throws(
        () => verifyBundle({ place: 'here', text: text.slice(0, length) }, trusted),
        provenanceFailure('bundle-invalid', 'here'),
      );
    }
  });

  test('a huge bundle is rejected before it is parsed', async (t) => {
    const { text, trusted } = await signed(temporaryDirectory(t));
    const huge = text + ' '.repeat(1_048_577 - text.length);
    assert.throws(
      () => verifyBundle({ place: 'here', text: huge }, trusted),
      provenanceFailure('bundle-too-large', 'here', '1048576 bytes'),
    );
    assert.ok(verifyBundle({ place: 'here', text: huge.slice(0, -1) }, trusted));
  });

  test('a bundle that would be huge is not written', async (t) => {
    const { key } = await writeKeys(temporaryDirectory(t));
    const large = { ...STATEMENT, predicate: { text: 'x'.repeat(900_000) } };
    await assert.rejects(
      signStatement(large, await openSigner({ key })),
      provenanceFailure('bundle-too-large', 'debian-1.qcow2'),
    );
  });

  test('a bundle signed with another key is rejected', async (t) => {
    const directory = temporaryDirectory(t);
    const { text, signer } = await signed(directory);
    const others = await readTrustedKeys([(await writeKeys(directory, 'other')).publicKey]);
    assert.throws(
      () => verifyBundle({ place: 'here', text }, others),
      provenanceFailure('key-untrusted', 'here', signer.keyId, 'trusted-keys'),
    );
    assert.throws(() => verifyBundle({ place: 'here', text }, []), provenanceFailure('key-untrusted'));
    // The hint of a trusted key does not help.
    const claimed = edited(text, (bundle, _envelope, signature) => {
      bundle.verificationMaterial = { publicKey: { hint: others[0]?.keyId } };
      signature.keyid = others[0]?.keyId;
    });
    assert.throws(
      () => verifyBundle({ place: 'here', text: claimed }, others),
      provenanceFailure('signature-invalid'),
    );
  });

  test('a bundle with cosign’s hint, the key’s digest in base64 and no key id, is verified', async (t) => {
    const { text, signer, trusted } = await signed(temporaryDirectory(t));
    const changed = edited(text, (bundle, _envelope, signature) => {
      bundle.verificationMaterial = {
        publicKey: { hint: Buffer.from(signer.keyId, 'hex').toString('base64') },
        tlogEntries: [],
      };
      delete signature.keyid;
    });
    assert.deepEqual(verifyBundle({ place: 'here', text: changed }, trusted).statement, STATEMENT);
  });

  test('a bundle in another form is rejected', async (t) => {
    const { text, trusted } = await signed(temporaryDirectory(t));
    const changes: readonly ((bundle: Json, envelope: Json, signature: Json) => void)[] = [
      (bundle) => (bundle.mediaType = 'application/vnd.dev.sigstore.bundle.v0.2+json'),
      (bundle) => (bundle.extra = 1),
      (bundle) => delete bundle.verificationMaterial,
      (bundle) => (bundle.verificationMaterial = { certificate: { rawBytes: 'AAAA' } }),
      (_bundle, envelope) => (envelope.payloadType = 'text/plain'),
      (_bundle, envelope) => (envelope.payload = ''),
      (_bundle, envelope) => (envelope.payload = `${String(envelope.payload)}\n`),
      (_bundle, envelope) => (envelope.signatures = []),
      (_bundle, envelope, signature) => (envelope.signatures = [signature, signature]),
      (_bundle, _envelope, signature) => (signature.sig = '*'),
      (_bundle, _envelope, signature) => (signature.keyid = 'another'),
    ];
    for (const change of changes) {
      assert.throws(
        () => verifyBundle({ place: 'here', text: edited(text, change) }, trusted),
        provenanceFailure('bundle-invalid', 'here'),
        String(change),
      );
    }
    for (const other of ['', 'null', '[]', '"text"', '['.repeat(100_000)]) {
      assert.throws(() => payloadDigest(other), provenanceFailure('bundle-invalid'));
    }
  });
});
