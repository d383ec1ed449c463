import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { RecordingLogger } from '../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { MANIFEST, type Manifest, readManifest } from '../src/manifest.ts';

const RECORD: Manifest = {
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
  await MANIFEST.write(path, RECORD);
  assert.deepEqual(await readManifest(path, 'debian-1'), RECORD);
});

test('an image without a manifest file has no manifest', async (t) => {
  assert.equal(await readManifest(join(await temporaryDirectory(t), 'debian-1.json'), 'debian-1'), undefined);
});

const DAMAGED = {
  'cut short': JSON.stringify(RECORD).slice(0, 40),
  empty: '',
  'not an object': '[]',
  'another version': JSON.stringify({ ...RECORD, version: 2 }),
  'another image': JSON.stringify({ ...RECORD, 'image-id': 'debian-2' }),
  'a name that is not a string': JSON.stringify({ ...RECORD, 'image-name': 5 }),
  'no files': JSON.stringify({ ...RECORD, files: undefined }),
  'a file in an unknown format': JSON.stringify({
    ...RECORD,
    files: [{ ...RECORD.files[0], format: 'x' }],
  }),
  'a file without checksums': JSON.stringify({
    ...RECORD,
    files: [{ ...RECORD.files[0], md5: undefined }],
  }),
};

for (const [what, text] of Object.entries(DAMAGED)) {
  test(`a damaged manifest is logged and ignored: ${what}`, async (t) => {
    const path = join(await temporaryDirectory(t), 'debian-1.json');
    await writeFile(path, text);
    const logger = new RecordingLogger();
    assert.equal(await readManifest(path, 'debian-1', logger), undefined);
    assert.match(logger.lines.join('\n'), /^warn the manifest ".*debian-1\.json" is damaged: /);
  });
}
