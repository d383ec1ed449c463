import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, open, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FinishedFiles } from '../../src/build/finished-files.ts';

const CONTENT = 'a disk';

interface Watched {
  readonly finished: FinishedFiles;
  readonly path: string;
  /** Resolves with the path of the first file whose checksums are known. */
  readonly hashed: Promise<string>;
}

async function watchFiles(t: TestContext): Promise<Watched> {
  const directory = await mkdtemp(join(tmpdir(), 'finished-files-'));
  const path = join(directory, 'a.raw');
  const { promise: hashed, resolve: onHashed } = Promise.withResolvers<string>();
  const options = { interval: 1, quietPeriod: 20, onHashed };
  const finished = new FinishedFiles([path, join(directory, 'a.qcow2')], options);
  t.after(async () => {
    await finished.close();
    await rm(directory, { recursive: true });
  });
  return { finished, path, hashed };
}

function digest(algorithm: string, content: string): string {
  return createHash(algorithm).update(content).digest('hex');
}

test('the checksums of a file are computed while the build goes on', async (t) => {
  const { finished, path, hashed } = await watchFiles(t);
  await writeFile(`${path}.new`, CONTENT);
  await rename(`${path}.new`, path);
  assert.equal(await hashed, path);
  assert.deepEqual(await finished.checksums(path), {
    md5: digest('md5', CONTENT),
    sha256: digest('sha256', CONTENT),
  });
});

test('a file that is written again has no checksums, even with its old time', async (t) => {
  const { finished, path, hashed } = await watchFiles(t);
  const time = new Date('2026-05-01');
  await writeFile(`${path}.new`, CONTENT);
  await utimes(`${path}.new`, time, time);
  await rename(`${path}.new`, path);
  await hashed;
  // Ends the polling, which would find the other content.
  assert.equal((await finished.checksums(path))?.md5, digest('md5', CONTENT));
  await writeFile(path, 'b disk');
  await utimes(path, time, time);
  assert.equal(await finished.checksums(path), undefined);
});

test('a file that a process has open for writing is not read', async (t) => {
  const { path, hashed } = await watchFiles(t);
  const other = path.replace('.raw', '.qcow2');
  const writer = await open(path, 'w');
  t.after(() => writer.close());
  await writer.writeFile(CONTENT);
  await writeFile(`${other}.new`, CONTENT);
  await rename(`${other}.new`, other);
  assert.equal(await hashed, other);
});

test('a file that gets its name at the end has the checksums that were computed before', async (t) => {
  const { finished, path, hashed } = await watchFiles(t);
  const early = `${path}.new`;
  finished.add(early);
  await writeFile(early, CONTENT);
  assert.equal(await hashed, early);
  await rename(early, path);
  assert.equal((await finished.checksums(path))?.md5, digest('md5', CONTENT));
  await writeFile(path, 'b disk');
  assert.equal(await finished.checksums(path), undefined, 'it was written after that');
});
