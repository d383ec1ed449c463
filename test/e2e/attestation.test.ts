import assert from 'node:assert/strict';
import { appendFile, copyFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { payloadDigest } from '@nodepool-builder/provenance';
import { startBuilder } from '../fixtures/builder-process.ts';
import { gearman } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite, type Site } from '../fixtures/site.ts';
import { statementIn, writeKeys } from '../fixtures/site-key.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** A site that signs images, and its job server. */
async function signingSite(t: TestContext): Promise<{ readonly site: Site; readonly port: number }> {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  await writeKeys(site.directory);
  await appendFile(site.config, '\nattestation: {key: attestation.pem, bill-of-materials: false}\n');
  return { site, port: server.port };
}

const BUILD = '{"image-id": "0001"}';
const UPLOAD = { provider: 'pool', 'image-name': 'docs' };

it('a build and an upload are attested, and only clients that request it get the attestations', async (t) => {
  const { site, port } = await signingSite(t);
  const builder = await startBuilder(site.config);
  undoAfter(t, () => builder.end('SIGKILL'));
  await builder.logged(/attested with the key [0-9a-f]{64}/);
  assert.equal((await gearman(port, 'image-build:docs', BUILD)).stdout, '{"image-id": "0001"}');
  const directory = join(site.images, '0001.d/attestations');
  const build = await readFile(join(directory, 'build.sigstore.json'), 'utf8');
  const { subject, predicate } = statementIn(build);
  assert.ok(subject.some(({ name }) => name === '0001.raw'));
  const { externalParameters } = predicate.buildDefinition;
  assert.equal(externalParameters.diskimage, 'docs');
  assert.match(externalParameters['configuration-digest'], /^[0-9a-f]+$/);
  assert.deepEqual(externalParameters.options, { tree: '***' });

  const plain = await gearman(port, 'image-upload:0001', JSON.stringify(UPLOAD));
  assert.equal(plain.stdout, '{"external-id": "docs-0001.qcow2"}');
  const asked = await gearman(port, 'image-upload:0001', JSON.stringify({ ...UPLOAD, attestations: true }));
  const { attestations } = JSON.parse(asked.stdout) as { attestations: readonly string[] };
  assert.equal(attestations[0], build);
  const conversion = statementIn(attestations[1] ?? '');
  assert.equal(conversion.subject[0]?.name, '0001.qcow2');
  assert.deepEqual(conversion.predicate.buildDefinition.resolvedDependencies, [
    { name: '0001.raw', digest: subject.find(({ name }) => name === '0001.raw')?.digest },
  ]);
  assert.equal(attestations.length, 3);
  assert.equal(statementIn(attestations.at(-1) ?? '').predicate['external-id'], 'docs-0001.qcow2');
  const manifest = JSON.parse(await readFile(join(site.pool, 'docs-0001.qcow2.json'), 'utf8'));
  assert.equal(manifest.metadata['attestation-sha256'], payloadDigest(build));
  assert.ok((await readdir(directory)).some((name) => name.startsWith('upload-')));
});

it('an image that was added by hand needs an attestation by a trusted key after SIGHUP', async (t) => {
  const { site, port } = await signingSite(t);
  const builder = await startBuilder(site.config);
  undoAfter(t, () => builder.end('SIGKILL'));
  await gearman(port, 'image-build:docs', BUILD);
  await appendFile(site.config, 'require-attestation: {}\n');
  builder.child.kill('SIGHUP');
  await builder.logged(/reloaded .*nodepool.yaml|reloaded/i);
  await copyFile(join(site.images, '0001.raw'), join(site.images, '0002.raw'));
  const failed = await waitUntil('the rejected upload', async () => {
    const upload = await gearman(port, 'image-upload:0002', JSON.stringify(UPLOAD));
    return upload.code === 0 ? undefined : upload;
  });
  assert.equal(failed.stdout, '');
  await builder.logged(/the upload of image 0002 to pool is refused by require-attestation: trusted-keys: /);
  assert.deepEqual(await readdir(site.pool), []);
  const built = await gearman(port, 'image-upload:0001', JSON.stringify(UPLOAD));
  assert.equal(built.code, 0);
});
