import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Manifest, readManifest, writeManifest } from '../src/manifest.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { withCode } from './with-code.ts';

const MANIFEST: Manifest = {
  version: 1,
  'image-id': 'debian-1',
  'image-name': 'debian',
  builder: 'DibBuilder',
  started: '2026-11-21T12:00:00.000Z',
  finished: '2026-11-21T12:01:00.000Z',
  files: [{ format: 'raw', size: 7, mtime: '2026-11-21T12:00:59.123Z', md5: 'm', sha256: 's' }],
};

test('a manifest is read as it was written', async (t) => {
  const path = join(await temporaryDirectory(t), 'debian-1.json');
  await writeManifest(path, MANIFEST);
  assert.deepEqual(await readManifest(path, 'debian-1'), MANIFEST);
});

test('an image without a manifest has none', async (t) => {
  assert.equal(await readManifest(join(await temporaryDirectory(t), 'debian-1.json'), 'debian-1'), undefined);
});

const DAMAGED = {
  'cut short': JSON.stringify(MANIFEST).slice(0, 40),
  empty: '',
  'no object': '[]',
  'another version': JSON.stringify({ ...MANIFEST, version: 2 }),
  'another image': JSON.stringify({ ...MANIFEST, 'image-id': 'debian-2' }),
  'a name that is no string': JSON.stringify({ ...MANIFEST, 'image-name': 5 }),
  'no files': JSON.stringify({ ...MANIFEST, files: undefined }),
  'a file of an unknown format': JSON.stringify({
    ...MANIFEST,
    files: [{ ...MANIFEST.files[0], format: 'x' }],
  }),
  'a file without checksums': JSON.stringify({
    ...MANIFEST,
    files: [{ ...MANIFEST.files[0], md5: undefined }],
  }),
};

for (const [what, text] of Object.entries(DAMAGED)) {
  test(`a manifest is damaged: ${what}`, async (t) => {
    const path = join(await temporaryDirectory(t), 'debian-1.json');
    await writeFile(path, text);
    await assert.rejects(
      readManifest(path, 'debian-1'),
      withCode('manifest-damaged', /debian-1\.json" is damaged: /),
    );
  });
}
