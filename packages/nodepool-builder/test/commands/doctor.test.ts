// Not a unit test: it starts gearmand and programs of the host.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { Worker } from '@nodepool-builder/gearman-node';
import { runInProcess } from '../../../../test/fixtures/command-in-process.ts';
import { startGearmand } from '../../../../test/fixtures/gearmand.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { writeKeys } from '../../../../test/fixtures/site-key.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';

interface Result {
  readonly area: string;
  readonly subject: string;
  readonly status: 'ok' | 'warning' | 'problem';
  readonly message: string;
  readonly remedy: string | null;
}

/** Writes a configuration with one disk image and one provider. @param port port of the job server */
async function writeSite(t: TestContext, port: number, more = ''): Promise<string> {
  const directory = temporaryDirectory(t);
  await mkdir(join(directory, 'images'));
  await mkdir(join(directory, 'shelf'));
  const file = join(directory, 'nodepool.yaml');
  const text = `
images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${port}}]
diskimages:
  - {name: tree, builder: directory-tree, options: {tree: images}}
providers:
  - {name: shelf, type: directory, directory: shelf, images: [{name: tree, diskimage: tree}]}
${more}`;
  await writeFile(file, text);
  return file;
}

/** Timeout of a check in seconds, for a slow host. */
const TIMEOUT = '300';

/** Runs the command. An option may set another timeout. */
async function examine(file: string, ...options: readonly string[]): Promise<[number, readonly Result[]]> {
  const args = ['doctor', '--json', '-c', file, '--timeout', TIMEOUT, ...options];
  const { code, stdout, stderr } = await runInProcess(...args);
  assert.equal(stderr, '');
  return [code, JSON.parse(stdout)];
}

describe('doctor', () => {
  it('doctor names the element that a misspelt one was meant to be', async (t) => {
    const file = await writeSite(t, 1);
    const text = await readFile(file, 'utf8');
    await writeFile(
      file,
      text.replace('diskimages:\n', '$&  - {name: debian, elements: [debain-minimal, vm]}\n'),
    );
    const [code, results] = await examine(file);
    assert.equal(code, 1);
    const found = results.find(({ subject }) => subject === 'diskimages[0].elements[0]');
    assert.deepEqual(
      [found?.area, found?.status, found?.remedy],
      ['tools', 'problem', 'did you mean "debian-minimal"?'],
    );
    assert.match(
      found?.message ?? '',
      /names element "debain-minimal", which is neither in diskimage-builder nor/,
    );
  });

  it('doctor signs with the key, and reads the trusted keys', async (t) => {
    const file = await writeSite(
      t,
      1,
      'attestation: {key: a.pem}\nrequire-attestation: {trusted-keys: [b.pub]}\n',
    );
    const directory = join(file, '..');
    await writeKeys(directory, 'a');
    await writeKeys(directory, 'b');
    const [, results] = await examine(file, '--only', 'attestations');
    assert.deepEqual(
      results.map(({ subject, status }) => [subject, status]),
      [
        [`key ${join(directory, 'a.pem')}`, 'ok'],
        [`trusted key ${join(directory, 'b.pub')}`, 'ok'],
      ],
    );
    await rm(join(directory, 'a.pem'));
    await writeFile(join(directory, 'b.pub'), 'no key');
    const [code, others] = await examine(file, '--only', 'attestations');
    assert.notEqual(code, 0);
    assert.deepEqual(
      others.map(({ status }) => status),
      ['problem', 'problem'],
    );
    assert.match(others[0]?.message ?? '', /a\.pem/);
    assert.match(others[1]?.remedy ?? '', /openssl/);
  });

  it('doctor finds nothing wrong with a good site, and lists what it checked', async (t) => {
    const server = await startGearmand();
    undoAfter(t, () => server.stop());
    const worker = new Worker({ servers: [{ host: '127.0.0.1', port: server.port }] });
    undoAfter(t, () => worker.close());
    worker.add('image-build:tree', () => '');
    await once(worker, 'connect');
    await worker.registered();
    const file = await writeSite(t, server.port);
    const [code, results] = await examine(file);
    assert.equal(code, 0, JSON.stringify(results.filter(({ status }) => status === 'problem')));
    const areas = new Set(results.map(({ area }) => area));
    for (const area of [
      'configuration',
      'disk',
      'images-dir',
      'job-servers',
      'providers',
      'manager',
      'clock',
    ]) {
      assert.ok(areas.has(area), area);
    }
    assert.ok(
      results.some(
        ({ subject, message }) => subject.startsWith('job server') && message.startsWith('responds'),
      ),
    );
  });

  it('doctor fails and says what to do about each problem', async (t) => {
    const file = await writeSite(t, 1);
    await rm(join(file, '../shelf'), { recursive: true });
    const [code, results] = await examine(file);
    assert.equal(code, 1);
    const problems = results.filter(({ status }) => status === 'problem');
    assert.deepEqual(problems.map(({ area }) => area).toSorted(), ['job-servers', 'providers']);
    for (const { remedy } of problems) assert.ok(remedy);
  });

  it('doctor prints headings, messages and a last line that counts them', async (t) => {
    const file = await writeSite(t, 1);
    const { code, stdout } = await runInProcess('doctor', '-c', file, '--only', 'job-servers');
    assert.equal(code, 1);
    const [heading, problem, remedy, count, ...others] = stdout.trimEnd().split('\n');
    assert.deepEqual([heading, count, others], ['Job servers', '0 ok; warnings: 0; problems: 1', []]);
    assert.match(problem ?? '', /^ {2}problem {2}job server 127\.0\.0\.1:1: .*ECONNREFUSED/);
    assert.match(remedy ?? '', /^ {11}to do: start it, or correct gearman-servers/);
  });

  it('doctor reports a job server that does not respond, within its time limit', async (t) => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    t.after(() => silent.close());
    const address = silent.address();
    assert.ok(typeof address === 'object' && address !== null);
    const file = await writeSite(t, address.port);
    const [code, results] = await examine(file, '--only', 'job-servers', '--timeout', '1');
    assert.equal(code, 1);
    assert.match(results[0]?.message ?? '', /^did not end within 1 s$/);
  });

  it('doctor reports a file that the daemon rejects, and what is wrong with it', async (t) => {
    const file = await writeSite(t, 1, 'build-cache-size: none\n');
    for (const options of [[], ['--only', 'tools']]) {
      const [code, results] = await examine(file, ...options);
      assert.equal(code, 1);
      assert.deepEqual(
        results.map(({ area, status }) => [area, status]),
        [['configuration', 'problem']],
      );
      assert.match(results[0]?.subject ?? '', /nodepool\.yaml:\d+:\d+$/);
    }
  });

  it('doctor rejects an unknown area, and names the known ones', async (t) => {
    const { code, stderr } = await runInProcess('doctor', '-c', await writeSite(t, 1), '--only', 'weather');
    assert.equal(code, 2);
    assert.match(stderr, /job-servers/);
  });
});
