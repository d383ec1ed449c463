import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { openSigner, readAttestations, SiteAttester } from '@nodepool-builder/provenance';
import { temporaryDirectory } from '../../fixtures/temporary-directory.ts';

const VERIFIER = join(import.meta.dirname, 'verify.py');

const KEY_TYPES: Readonly<Record<string, () => { privateKey: KeyObject; publicKey: KeyObject }>> = {
  Ed25519: () => generateKeyPairSync('ed25519'),
  'ECDSA P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'ECDSA P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
};

/** A statement in a payload, as another program reads it. */
interface PlainStatement {
  readonly _type: string;
  readonly predicateType: string;
  readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[];
}

function verify(
  key: string,
  ...bundles: readonly string[]
): { statements: readonly PlainStatement[] } | { error: string } {
  const { status, stdout, stderr } = spawnSync('/usr/bin/python3', [VERIFIER, key, ...bundles], {
    encoding: 'utf8',
  });
  return status === 0 ? { statements: JSON.parse(stdout) as PlainStatement[] } : { error: stderr };
}

suite("Debian's securesystemslib", () => {
  for (const [type, create] of Object.entries(KEY_TYPES)) {
    test(`Debian’s securesystemslib verifies a build’s, a conversion’s and an upload’s attestations with ${type}`, async (t) => {
      const directory = await temporaryDirectory(t);
      const { privateKey, publicKey } = create();
      const [key, pub] = [join(directory, 'key.pem'), join(directory, 'key.pub')];
      await writeFile(key, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
      await writeFile(pub, publicKey.export({ type: 'spki', format: 'pem' }));
      const content = 'the bytes of an image';
      const sha256 = createHash('sha256').update(content).digest('hex');
      const file = {
        format: 'raw',
        size: content.length,
        mtime: new Date(0).toISOString(),
        md5: '',
        sha256,
      } as const;
      const attester = new SiteAttester({
        signer: await openSigner({ key }),
        builderId: 'nodepool-builder://host',
        version: '1.0.0',
        host: 'host',
        billOfMaterials: false,
      });
      await attester.attestBuild({
        manifest: { version: 1, 'image-id': 'image-1', files: [file] },
        diskimage: { name: 'ünïcode', formats: ['raw'] },
        materials: [{ name: 'base', uri: 'https://example.org/base.raw', digest: { sha256 } }],
        environment: {},
        directory,
      });
      const converted = { ...file, format: 'qcow2' } as const;
      await attester.attestConversion({
        imageId: 'image-1',
        imageName: 'image',
        source: file,
        file: converted,
        directory,
      });
      await attester.attestUpload({
        'image-id': 'image-1',
        'image-name': 'image',
        provider: 'cloud',
        'provider-type': 'openstack',
        'upload-id': 'one',
        'external-id': '7d1f',
        format: 'qcow2',
        sha256,
        'reported-digests': {},
        directory,
      });
      const bundles = (await readAttestations(directory, 'image-1')).map(({ place }) => place);
      const verified = verify(pub, ...bundles);
      assert.ok('statements' in verified, JSON.stringify(verified));
      assert.deepEqual(
        verified.statements.map(({ predicateType }) => predicateType),
        [
          'https://slsa.dev/provenance/v1',
          'https://slsa.dev/provenance/v1',
          'https://nodepool-builder.dev/upload/v1',
        ],
      );
      for (const { _type, subject } of verified.statements) {
        assert.equal(_type, 'https://in-toto.io/Statement/v1');
        assert.deepEqual(subject[0]?.digest, { sha256 });
      }

      // The same verifier rejects modified bundles.
      const [path = ''] = bundles;
      const bundle = JSON.parse(await readFile(path, 'utf8')) as { dsseEnvelope: { payload: string } };
      const payload = Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString();
      bundle.dsseEnvelope.payload = Buffer.from(payload.replace(sha256, '0'.repeat(64))).toString('base64');
      await writeFile(path, JSON.stringify(bundle));
      const refused = verify(pub, path);
      assert.ok(
        'error' in refused && refused.error.includes('Failed to verify signature'),
        JSON.stringify(refused),
      );
    });
  }
});
