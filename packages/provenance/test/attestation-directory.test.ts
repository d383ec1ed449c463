import assert from 'node:assert/strict';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { checkAttestationName } from '@nodepool-builder/image-builder/internal';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { readAttestation, readAttestations, uploadDocument } from '../src/attestation-directory.ts';
import { provenanceFailure } from './provenance-failure.ts';

describe('the attestations of an image', () => {
  test('the attestations of an image are read, the build’s first', async (t) => {
    const directory = temporaryDirectory(t);
    assert.deepEqual(await readAttestations(directory, 'debian-1'), []);
    const path = join(directory, 'debian-1.d/attestations');
    await mkdir(path, { recursive: true });
    for (const name of ['upload-1', 'convert-vhd', 'build']) {
      await writeFile(join(path, `${name}.sigstore.json`), name);
    }
    await writeFile(join(path, 'build.sigstore.json.new'), 'a crash left this');
    await writeFile(join(path, 'README'), 'other');
    assert.deepEqual(
      await readAttestations(directory, 'debian-1'),
      ['build', 'convert-vhd', 'upload-1'].map((text) => ({
        place: join(path, `${text}.sigstore.json`),
        text,
      })),
    );
    assert.equal(await readAttestation(join(path, 'missing.sigstore.json')), undefined);
  });

  test('huge, linked or too many attestations of an image are not read', async (t) => {
    const directory = temporaryDirectory(t);
    const create = async (imageId: string): Promise<string> => {
      const path = join(directory, `${imageId}.d/attestations`);
      await mkdir(path, { recursive: true });
      return path;
    };
    const huge = join(await create('huge'), 'build.sigstore.json');
    await writeFile(huge, '');
    await truncate(huge, 200 * 2 ** 20);
    await assert.rejects(readAttestations(directory, 'huge'), provenanceFailure('bundle-too-large', huge));
    const sum = await create('sum');
    for (let index = 0; index < 33; index += 1) {
      await writeFile(join(sum, `upload-${index}.sigstore.json`), Buffer.alloc(2 ** 20, ' '));
    }
    await assert.rejects(readAttestations(directory, 'sum'), provenanceFailure('bundle-too-large', sum));
    const many = await create('many');
    for (let index = 0; index < 513; index += 1) await writeFile(join(many, `${index}.sigstore.json`), '');
    await assert.rejects(readAttestations(directory, 'many'), provenanceFailure('bundle-too-large', '512'));
    const link = join(await create('link'), 'build.sigstore.json');
    await symlink(huge, link);
    await assert.rejects(
      readAttestations(directory, 'link'),
      provenanceFailure('attestation-unreadable', link, 'symbolic link'),
    );
    const folder = join(await create('folder'), 'build.sigstore.json');
    await mkdir(folder);
    await assert.rejects(
      readAttestations(directory, 'folder'),
      provenanceFailure('attestation-unreadable', folder),
    );
    await mkdir(join(directory, 'file.d'));
    await writeFile(join(directory, 'file.d/attestations'), '');
    await assert.rejects(
      readAttestations(directory, 'file'),
      provenanceFailure('attestation-unreadable', 'ENOTDIR'),
    );
  });

  test('attestations are read only for a valid image id', async (t) => {
    await assert.rejects(readAttestations(temporaryDirectory(t), '../x'), { code: 'invalid-image-id' });
  });
});

test('an upload’s attestation has a valid file name, whatever the id', () => {
  assert.equal(uploadDocument('5b1e-1'), 'upload-5b1e-1.sigstore.json');
  const ids = ['', '../x', '.', 'a b', 'a/b', 'x'.repeat(65), 'ü', '-x'];
  const names = new Set(ids.map(uploadDocument));
  assert.equal(names.size, ids.length);
  for (const name of names) {
    assert.match(name, /^upload-[\da-f]{64}\.sigstore\.json$/);
    checkAttestationName(name);
  }
});
