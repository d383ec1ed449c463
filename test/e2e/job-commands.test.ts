import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { DirectoryProvider } from '@nodepool-builder/image-builder';
import { jobUploadId } from '../../packages/nodepool-builder/src/commands/upload.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { pausesAfter } from '../fixtures/fault-proxy/faults.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { faultyOpenStack } from '../fixtures/openstack/faulty-openstack.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const DAY = 86_400_000;
const PUT_FILE = { method: 'PUT', path: /\/file$/ };

function idOf(sha256: string): string {
  return jobUploadId({ provider: 'pool', name: 'debian', format: 'qcow2', sha256 });
}

async function createDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'job-commands-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  await mkdir(join(directory, 'pool'));
  return directory;
}

function digestsOf(bytes: Buffer): { md5: string; sha256: string } {
  const digest = (algorithm: string): string => createHash(algorithm).update(bytes).digest('hex');
  return { md5: digest('md5'), sha256: digest('sha256') };
}

/** Returns the part of the JSON that describes the image's bytes and its source file. */
function pick({ size, md5, sha256, source }: Readonly<Record<string, unknown>>): object {
  return { size, md5, sha256, source };
}

describe('job commands with a directory', () => {
  test('the command upload converts the file, and concurrent and repeated uploads to a directory share one image', async (t) => {
    const directory = await createDirectory(t);
    const image = join(directory, 'built.raw');
    await writeFile(image, Buffer.alloc(1_048_576, 'image'));
    const args = ['upload', image, '--provider', `directory:${directory}/pool`, '--name', 'debian'];
    const dry = await runCommand(...args, '--dry-run');
    assert.deepEqual([dry.code, dry.stdout], [0, '']);
    assert.match(dry.stderr, /^would upload .*built\.raw to .*pool as debian, in the format qcow2$/m);
    const [one, other] = await Promise.all([runCommand(...args), runCommand(...args, '--meta', 'os=debian')]);
    assert.match(one.stdout, /^debian-[0-9a-f]{16}\.qcow2\n$/, one.stderr);
    assert.equal(one.stderr, '');
    assert.deepEqual([other.code, other.stdout], [0, one.stdout], other.stderr);
    const again = JSON.parse((await runCommand(...args, '--json')).stdout);
    const { 'external-id': externalId, name, format, existed } = again;
    assert.deepEqual(
      { externalId, name, format, existed },
      { externalId: one.stdout.trim(), name: 'debian', format: 'qcow2', existed: true },
    );
    const published = await readFile(join(directory, 'pool', externalId));
    const uploaded = { size: published.length, ...digestsOf(published) };
    const given = await readFile(image);
    const source = { file: image, format: 'raw', size: given.length, ...digestsOf(given) };
    assert.deepEqual(pick(again), { ...uploaded, source });
    const other1 = ['--name', 'other', '--json'];
    const dryOther = JSON.parse((await runCommand(...args, ...other1, '--dry-run')).stdout);
    assert.deepEqual(pick(dryOther), { size: null, md5: null, sha256: null, source });
    const first = JSON.parse((await runCommand(...args, ...other1)).stdout);
    assert.deepEqual([first.existed, pick(first)], [false, { ...uploaded, source }]);
    await new DirectoryProvider({ name: 'pool', directory: join(directory, 'pool') }).delete(
      first['external-id'],
    );
    assert.deepEqual(
      new Set(await readdir(join(directory, 'pool'))),
      new Set([externalId, `${externalId}.json`, 'debian-latest.qcow2']),
    );
    assert.deepEqual((await readdir(directory)).toSorted(), ['built.raw', 'pool']);
  });

  test('the command prune deletes old images in a directory, and reap a killed job’s partial file', async (t) => {
    const directory = await createDirectory(t);
    const pool = join(directory, 'pool');
    const path = join(directory, 'image.qcow2');
    await writeFile(path, 'image');
    const provider = new DirectoryProvider({ name: 'pool', directory: pool });
    const upload = async (imageId: string, days: number, uploadId: string): Promise<string> => {
      const file = { format: 'qcow2', path, size: 5 } as const;
      const builtAt = new Date(Date.now() - days * DAY);
      return (await provider.upload({ uploadId, imageId, imageName: 'debian', builtAt, file })).externalId;
    };
    const oldest = await upload('1', 9, idOf('1'));
    const older = await upload('2', 8, idOf('2'));
    const kept = [
      await upload('3', 2, idOf('3')),
      await upload('4', 1, idOf('4')),
      await upload('5', 9, '0000000042-k7f3q2xa'),
    ];
    const pruneAll = ['prune', '--provider', `directory:${pool}`, '--keep', '1', '--older-than', '3d'];
    const dry = await runCommand(...pruneAll, '--dry-run');
    assert.match(
      dry.stdout,
      new RegExp(`^would delete ${older} .*\nwould delete ${oldest} .*\n$`),
      dry.stderr,
    );
    const outcomes = await Promise.all([runCommand(...pruneAll), runCommand(...pruneAll, '--json')]);
    assert.deepEqual(
      outcomes.map(({ code }) => code),
      [0, 0],
      JSON.stringify(outcomes),
    );
    assert.deepEqual((await provider.list()).map(({ externalId }) => externalId).toSorted(), kept);

    const left = join(pool, `.upload-${idOf('6')}.0123abcd.part`);
    await writeFile(left, 'half');
    const reap = ['reap', '--provider', `directory:${pool}`, '--json'];
    assert.equal((await runCommand(...reap)).stdout, '[]\n');
    await utimes(left, 0, 0);
    const [reaped] = JSON.parse((await runCommand(...reap)).stdout);
    assert.deepEqual([reaped.action, reaped['upload-id']], ['deleted', idOf('6')]);
    assert.ok(!(await readdir(pool)).some((name) => name.startsWith('.upload')));
  });

  test('the job commands reject invalid files and options with a reason, and change nothing', async (t) => {
    const directory = await createDirectory(t);
    const provider = ['--provider', `directory:${directory}/pool`];
    const random = join(directory, 'random');
    await writeFile(random, randomBytes(1_048_576));
    const empty = join(directory, 'empty.raw');
    await writeFile(empty, '');
    const qcow2 = join(directory, 'disk.img');
    await promisify(execFile)('qemu-img', ['create', '-q', '-f', 'qcow2', qcow2, '4M']);
    const backed = join(directory, 'backed.qcow2');
    await promisify(execFile)('qemu-img', [
      'create',
      '-q',
      '-f',
      'qcow2',
      '-b',
      qcow2,
      '-F',
      'qcow2',
      backed,
    ]);
    const named = [...provider, '--name', 'debian'];
    const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
      [['upload', 'image', ...provider, '--name', 'debian'], /name of image does not show its format/],
      [['upload', '/no/i.tar', ...provider, '--name', 'debian'], /needs qcow2, and .* is tar/],
      [['upload', random, ...named, '--format', 'qcow2'], /random" is not a qcow2 image: it has no header/],
      [['upload', random, ...named, '--format', 'qcow2', '--dry-run'], /random" is not a qcow2 image/],
      [['upload', random, ...named, '--format', 'vmdk'], /random" is not a vmdk image: it has no header/],
      [
        ['upload', qcow2, ...named, '--format', 'raw'],
        /is not a raw image: it has the header of a qcow2 image/,
      ],
      [['upload', backed, ...named], /names another file, ".*disk\.img"/],
      [['upload', empty, ...named], /empty\.raw is empty; name an image file/],
      [['prune', ...provider], /name what to delete/],
      [['reap', ...provider, '--older-than', '5'], /It must be a number and a unit/],
    ];
    await Promise.all(
      cases.map(async ([args, message]) => assert.match((await runCommand(...args)).stderr, message)),
    );
    assert.deepEqual(await readdir(join(directory, 'pool')), []);
  });
});

test('a stopped upload leaves nothing in a cloud, and reap removes what a killed upload left', async (t) => {
  const account = await (await openStack()).createAccount();
  const faulty = await faultyOpenStack(account);
  undoAfter(t, () => faulty.close());
  const directory = await createDirectory(t);
  const image = join(directory, 'debian.qcow2');
  await promisify(execFile)('qemu-img', [
    'create',
    '-q',
    '-f',
    'qcow2',
    '-o',
    'preallocation=full',
    image,
    '4M',
  ]);
  const clouds = join(directory, 'clouds.yaml');
  await writeFile(clouds, cloudsYaml({ ci: faulty.account.cloud() }));
  const env = { ...process.env, OS_CLIENT_CONFIG_FILE: clouds };
  const run = async (...args: readonly string[]): Promise<string> => {
    const [file, all] = builderCommand(...args, '--provider', 'ci');
    return (await promisify(execFile)(file, all, { env })).stdout;
  };
  const upload = ['upload', image, '--name', 'debian'];
  const end = async (signal: NodeJS.Signals): Promise<readonly unknown[]> => {
    faulty.glance.inject(PUT_FILE, pausesAfter(1_000_000, new Promise(() => {})));
    const [file, args] = builderCommand(...upload, '--provider', 'ci');
    const child = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const said = text(child.stderr);
    undoAfter(t, () => child.kill('SIGKILL'));
    await waitUntil('the first data in the cloud', async () =>
      (await account.images()).some(({ status }) => status === 'saving'),
    );
    child.kill(signal);
    const [code] = await once(child, 'close');
    return [code, await said];
  };

  const [code, said] = await end('SIGTERM');
  assert.equal(code, 6);
  assert.match(String(said), /^nodepool-builder: stopped by SIGTERM$/m);
  assert.deepEqual(await account.images(), []);

  await end('SIGKILL');
  await waitUntil('the cloud to notice', async () => (await account.images())[0]?.status === 'queued');
  assert.equal(await run('reap'), '');
  assert.match(await run('reap', '--older-than', '0s'), /^deleted image .* \(queued\)/);
  assert.deepEqual(await account.images(), []);

  const { promise: open, resolve } = Promise.withResolvers<void>();
  faulty.glance.inject(PUT_FILE, pausesAfter(1_000_000, open));
  const begun = faulty.glance.requests.length;
  const since = (method: string): number =>
    faulty.glance.requests.slice(begun).filter((request) => request.method === method).length;
  const both = Promise.all([run(...upload), run(...upload)]);
  // Each tries the ids of the two earlier images, and a third one.
  await waitUntil('both at the same upload', () => since('POST') === 6);
  resolve();
  const ids = await both;
  assert.equal(since('PUT'), 1);
  assert.deepEqual(
    (await account.images()).map(({ id, status }) => [`${id}\n`, `${id}\n`, status]),
    [[...ids, 'active']],
  );
  assert.equal(await run('prune', '--keep', '1'), '');
});
