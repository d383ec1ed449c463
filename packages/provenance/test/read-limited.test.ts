// Not a unit test: a FIFO is created by a program
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { readLimited } from '../src/read-limited.ts';
import { provenanceFailure } from './provenance-failure.ts';

const LIMITS = {
  thing: 'the key',
  limit: 10,
  unreadable: 'key-unusable',
  tooLarge: 'bundle-too-large',
} as const;

describe('reading a file of limited size', () => {
  test('a read with a size limit returns a file’s bytes up to the limit', async (t) => {
    const path = join(await temporaryDirectory(t), 'file');
    for (const content of ['', '1', '1234567890']) {
      await writeFile(path, content);
      assert.equal((await readLimited(path, LIMITS)).toString(), content);
    }
    await writeFile(path, '12345678901');
    await assert.rejects(
      readLimited(path, LIMITS),
      provenanceFailure('bundle-too-large', 'the key', path, '10 bytes'),
    );
  });

  test('a read with a size limit stops at the limit in a file without a size', async () => {
    const version = await readLimited('/proc/version', { ...LIMITS, limit: 4_096 });
    assert.match(version.toString(), /^Linux version /);
    await assert.rejects(readLimited('/proc/version', LIMITS), provenanceFailure('bundle-too-large'));
  });

  test('a read with a size limit rejects anything that is not a file, and never waits for it', async (t) => {
    const directory = await temporaryDirectory(t);
    const fifo = join(directory, 'fifo');
    execFileSync('mkfifo', [fifo]);
    await mkdir(join(directory, 'directory'));
    for (const path of [fifo, join(directory, 'directory'), '/dev/zero']) {
      await assert.rejects(readLimited(path, LIMITS), provenanceFailure('key-unusable', path, 'name a file'));
    }
    const missing = join(directory, 'missing');
    await assert.rejects(
      readLimited(missing, LIMITS),
      provenanceFailure('key-unusable', missing, 'does not exist'),
    );
  });

  test('a read with a size limit follows a symbolic link only if allowed', async (t) => {
    const directory = await temporaryDirectory(t);
    const link = join(directory, 'link');
    await writeFile(join(directory, 'file'), 'content');
    await symlink('file', link);
    assert.equal((await readLimited(link, LIMITS)).toString(), 'content');
    await assert.rejects(
      readLimited(link, { ...LIMITS, followLinks: false }),
      provenanceFailure('key-unusable', link, 'symbolic link'),
    );
  });

  test('a read with a size limit rejects a file whose mode is too permissive', async (t) => {
    const path = join(await temporaryDirectory(t), 'file');
    await writeFile(path, 'content', { mode: 0o604 });
    await assert.rejects(
      readLimited(path, { ...LIMITS, forbiddenMode: 0o007 }),
      provenanceFailure('key-unusable', path, 'chmod'),
    );
  });
});
