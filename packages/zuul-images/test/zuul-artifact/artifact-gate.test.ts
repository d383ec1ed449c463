// Not a unit test: it starts servers and programs.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type GatedFile, ImageError, type RequiredAttestation } from '@nodepool-builder/image-builder';
import { ArtifactServer, digest, idOf, ZuulSite } from './zuul-site.ts';

const server = await ArtifactServer.start();
after(() => server.nginx.stop());

const REQUIRED = { 'require-attestation': { 'trusted-keys': ['zuul.pub'] } };

/** A gate that records its input, and rejects artifacts without the attestation `good`. */
function recordingGate(seen: GatedFile[]) {
  return {
    checkAttestations: async (_: RequiredAttestation, file: GatedFile) => {
      seen.push(file);
      if (file.attestations.some(({ text }) => text === 'good')) return;
      throw new ImageError('attestation-refused', `${file.name} is refused: it has no attestation`);
    },
  };
}

for (const [place, metadata] of [
  ['next to the artifact', undefined],
  ['among the build’s artifacts', { type: 'attestation' }],
] as const) {
  test(`an attestation ${place} lets an artifact pass`, async (t) => {
    const site = await ZuulSite.start(t, server);
    const artifact = await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' });
    const name = metadata === undefined ? 'image.qcow2.sigstore.json' : 'provenance.json';
    const attestation = await site.put(name, Buffer.from('good'), metadata ?? {});
    const row = site.zuul.table().add(metadata === undefined ? [artifact] : [artifact, attestation]);
    const seen: GatedFile[] = [];
    const { repository } = site.repository;
    await site.builder({}, REQUIRED, recordingGate(seen)).build({ imageId: idOf(row), repository });
    const [file] = seen;
    assert.equal(file?.fileName, 'image.qcow2');
    assert.equal(file?.sha256, digest('sha256', server.qcow2));
    assert.match(file?.attestations[0]?.place ?? '', new RegExp(`^http://.*/${name}$`));
    assert.ok(repository.get(idOf(row)));
  });
}

test('an artifact without its attestation is rejected, and nothing is published or kept', async (t) => {
  const site = await ZuulSite.start(t, server);
  const row = await site.addQcow2();
  const { repository } = site.repository;
  const build = site.builder({}, REQUIRED, recordingGate([])).build({ imageId: idOf(row), repository });
  await assert.rejects(build, { code: 'attestation-refused', retriable: false });
  assert.equal(repository.images.size, 0);
});

test('a huge attestation of an artifact is rejected', async (t) => {
  const site = await ZuulSite.start(t, server);
  await site.put('image.qcow2.sigstore.json', Buffer.alloc(2 ** 20 + 1), {});
  const row = await site.addQcow2();
  const { repository } = site.repository;
  const build = site.builder({}, REQUIRED, recordingGate([])).build({ imageId: idOf(row), repository });
  await assert.rejects(build, { code: 'artifact-too-large' });
  assert.equal(repository.images.size, 0);
});
