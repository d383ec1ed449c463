import assert from 'node:assert/strict';
import { copyFile, cp, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { gearman } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { setUp } from '../fixtures/set-up.ts';
import { createSite, type Site } from '../fixtures/site.ts';
import { writeKeys } from '../fixtures/site-key.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

/** Script that writes random bytes, so that two builds differ only in their content. */
const RANDOM = `
  - {name: docs, builder: command, formats: [raw], command: [sh, -c, 'head --bytes=64K /dev/urandom > "$0"', '{output.raw}']}`;

const PROVIDERS = `
  - {name: shelf, type: directory, directory: shelf, image-type: raw, images: [{name: docs, diskimage: docs}]}
attestation: {key: attestation.pem, bill-of-materials: false}
`;

let site: Site;
let port: number;
let shelf: string;
/** Copy of two images that were built and uploaded to `pool` and `shelf`, from which each change starts. */
let original: string;

setUp(async (undo) => {
  const server = await startGearmand();
  undo(() => server.stop());
  ({ port } = server);
  site = await createSite(port, RANDOM);
  undo(() => site.remove());
  shelf = join(site.directory, 'shelf');
  await writeKeys(site.directory);
  const configured = (await readFile(site.config, 'utf8')).replace('image-type: qcow2', 'image-type: raw');
  await writeFile(site.config, configured.trimEnd() + PROVIDERS);
  await cp(site.pool, shelf, { recursive: true });
  const builder = await startBuilder(site.config);
  try {
    for (const id of ['docs-1', 'docs-2']) {
      const built = await gearman(port, 'image-build:docs', JSON.stringify({ 'image-id': id }));
      assert.equal(built.code, 0, built.stderr);
      for (const provider of ['pool', 'shelf']) assert.equal((await upload(id, provider)).code, 0);
    }
  } finally {
    await builder.end('SIGTERM');
  }
  original = join(site.directory, 'original');
  await copySite(site.directory, original);
});

beforeEach(() => copySite(original, site.directory));

async function copySite(from: string, to: string): Promise<void> {
  for (const name of ['images', 'pool', 'shelf']) {
    await rm(join(to, name), { recursive: true, force: true });
    const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true };
    await cp(join(from, name), join(to, name), options);
  }
}

async function upload(id: string, provider: string): ReturnType<typeof gearman> {
  return await gearman(port, `image-upload:${id}`, JSON.stringify({ provider, 'image-name': 'docs' }));
}

interface Outcome {
  readonly state: string;
  readonly reasons: string;
}

async function verify(...args: readonly string[]): Promise<Outcome> {
  const { code, stdout, stderr } = await runInProcess('verify', ...args, '-c', site.config, '--json');
  assert.ok(stdout !== '', stderr);
  const { state, links } = JSON.parse(stdout) as { state: string; links: readonly { reason: string }[] };
  assert.equal(code, { proven: 0, unproven: 7, refuted: 8 }[state], stdout);
  return { state, reasons: links.map(({ reason }) => reason).join('\n') };
}

const image = (name: string): string => join(site.images, name);
const pooled = (name: string): string => join(site.pool, name);

/** Replaces the content of a file by another file's, without changing its size and times. */
async function swap(content: string, path: string): Promise<void> {
  const { atime, mtime } = await stat(path);
  await copyFile(content, path);
  await utimes(path, atime, mtime);
}

/** Copies an image in `pool` with its manifest and attestations to another name. */
async function copyWithSidecars(from: string, to: string, directory = site.pool): Promise<void> {
  const record = JSON.parse(await readFile(pooled(`${from}.json`), 'utf8'));
  await copyFile(pooled(from), join(directory, to));
  await writeFile(join(directory, `${to}.json`), JSON.stringify(record));
  for (const name of record.attestations) {
    await copyFile(pooled(`${from}.${name}`), join(directory, `${to}.${name}`));
  }
}

describe('swapped images', () => {
  it('all images are proven before any of them is swapped', async () => {
    for (const id of ['docs-1', 'docs-2']) {
      const file = `docs-${id}.raw`;
      for (const args of [[id], [image(`${id}.raw`)], [pooled(file)], ['--provider', 'shelf', file]]) {
        assert.equal((await verify(...args)).state, 'proven', args.join(' '));
      }
    }
  });

  it('another image’s file with its attestations next to it is refuted', async () => {
    await swap(image('docs-1.raw'), image('docs-2.raw'));
    assert.equal((await verify(image('docs-2.raw'))).state, 'refuted');
    assert.equal((await verify('docs-2')).state, 'refuted');
  });

  it('another image’s file with its own attestations under the wrong id is refuted', async () => {
    await swap(image('docs-1.raw'), image('docs-2.raw'));
    await rm(image('docs-2.d'), { recursive: true });
    await cp(image('docs-1.d'), image('docs-2.d'), { recursive: true });
    for (const subject of ['docs-2', image('docs-2.raw')]) {
      const { state, reasons } = await verify(subject);
      assert.equal(state, 'refuted');
      assert.match(reasons, /its bytes are those of docs-1\.raw/);
    }
  });

  it('a renamed file whose attestations are named on the command line is refuted', async () => {
    await rm(image('docs-2.d'), { recursive: true });
    await rename(image('docs-1.raw'), image('docs-2.raw'));
    const { state, reasons } = await verify(image('docs-2.raw'), '--attestations', image('docs-1.d'));
    assert.equal(state, 'refuted');
    assert.match(reasons, /its bytes are those of docs-1\.raw; give the file that name/);
  });

  it('a swapped image in a directory provider is refuted without --download', async () => {
    await swap(pooled('docs-docs-1.raw'), pooled('docs-docs-2.raw'));
    const { state, reasons } = await verify('--provider', 'pool', 'docs-docs-2.raw');
    assert.equal(state, 'refuted');
    assert.match(reasons, /the provider has other bytes than docs-2\.raw had/);
  });

  it('a swapped image in a directory provider is not proven if its manifest and attestations were also renamed', async () => {
    await copyWithSidecars('docs-docs-1.raw', 'docs-docs-2.raw');
    assert.equal((await verify(pooled('docs-docs-2.raw'))).state, 'refuted');
    assert.equal((await verify('--provider', 'pool', 'docs-docs-2.raw')).state, 'unproven');
  });

  it('a copy of an image with its attestations is not proven in another provider, or under another name', async () => {
    await rm(image('docs-1.d'), { recursive: true });
    await copyWithSidecars('docs-docs-1.raw', 'docs-docs-1.raw', shelf);
    assert.equal((await verify('--provider', 'shelf', 'docs-docs-1.raw')).state, 'unproven');
    await copyWithSidecars('docs-docs-1.raw', 'mini-docs-1.raw');
    assert.equal((await verify('--provider', 'pool', 'mini-docs-1.raw')).state, 'unproven');
    assert.equal((await verify(pooled('mini-docs-1.raw'))).state, 'refuted');
  });
});

describe('require-attestation', () => {
  it('require-attestation rejects a swapped image in images-dir, with and without its attestations', async (t) => {
    const configured = await readFile(site.config, 'utf8');
    undoAfter(t, () => writeFile(site.config, configured));
    await writeFile(site.config, `${configured}require-attestation: {}\n`);
    await swap(image('docs-1.raw'), image('docs-2.raw'));
    await copyFile(image('docs-1.raw'), image('docs-3.raw'));
    await cp(image('docs-1.d'), image('docs-3.d'), { recursive: true });
    const builder = await startBuilder(site.config);
    undoAfter(t, () => builder.end('SIGTERM'));
    for (const id of ['docs-2', 'docs-3']) {
      assert.equal((await upload(id, 'pool')).stdout, '', id);
      await builder.logged(
        new RegExp(`the upload of image ${id} to pool is refused by require-attestation: `),
      );
    }
    assert.equal((await upload('docs-1', 'pool')).code, 0);
    for (const id of ['docs-2', 'docs-3']) {
      const args = ['upload', image(`${id}.raw`), '--provider', 'shelf', '--name', 'docs', '-c', site.config];
      const { code, stderr } = await runInProcess(...args);
      assert.notEqual(code, 0);
      assert.match(
        stderr,
        new RegExp(`${id}\\.raw to shelf is refused by require-attestation: trusted-keys: `),
      );
    }
  });
});
