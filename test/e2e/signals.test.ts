import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '@nodepool-builder/gearman-node';
import { type BuilderProcess, spawnBuilder, startBuilder } from '../fixtures/builder-process.ts';
import { offeredFunctions } from '../fixtures/gearman-commands.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { createSite, DOCS, type Site } from '../fixtures/site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

let server: Gearmand;
let site: Site;
let builder: BuilderProcess;
let client: Client;
let gate: string;

beforeEach(async () => {
  server = await startGearmand();
  site = await createSite(server.port);
  gate = join(site.directory, 'gate');
  const command = join(site.directory, 'wait-for-gate');
  // A build command that ends when the test decides; the second last argument is the value of -o.
  await writeFile(
    command,
    `#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo waiting
until [ -e ${gate} ]; do sleep 0.02; done
qemu-img create -q -f qcow2 "$2.qcow2" 1M
`,
  );
  await chmod(command, 0o755);
  await site.configure(`\n  - {name: gated, dib-cmd: ${command}}`);
  builder = await startBuilder(site.config);
  client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
});
afterEach(async () => {
  await client.close();
  if (builder.child.exitCode === null) await builder.end('SIGKILL');
  await server.stop();
  await site.remove();
});

async function startBuild(): Promise<Promise<Buffer>[]> {
  const { result } = client.submit('image-build:gated', '{"image-id": "0001"}');
  await builder.logged(/image\.build\.gated: .*waiting/);
  return [result]; // in an array, because a bare promise would be awaited here
}

describe('SIGTERM and SIGINT', () => {
  it('SIGTERM lets the running build finish, and its result arrives', async () => {
    const [result] = await startBuild();
    const ended = builder.end('SIGTERM');
    await builder.logged(/SIGTERM: finishing the running jobs/);
    builder.child.kill('SIGUSR1'); // as an init script does right after, which has no effect
    await writeFile(gate, '');
    assert.equal(String(await result), '{"image-id": "0001"}');
    assert.equal(await ended, 0);
    assert.ok(existsSync(join(site.images, '0001.qcow2')));
  });

  it('the second SIGINT stops the build, which leaves nothing', async () => {
    const [result] = await startBuild();
    const failed = assert.rejects(result ?? Promise.resolve(), { code: 'job-failed' });
    const ended = builder.end('SIGINT');
    await builder.logged(/SIGINT: finishing the running jobs/);
    builder.child.kill('SIGINT');
    assert.equal(await ended, 0);
    await failed;
    assert.deepEqual(await readdir(site.images), ['.nodepool-builder']);
    assert.deepEqual(await readdir(join(site.images, '.nodepool-builder/staging')), []);
  });
});

it('a builder whose status page cannot start ends without waiting for a job that it has been assigned', async () => {
  await builder.end('SIGTERM');
  await client.submit('image-build:gated', '{"image-id": "0001"}', { background: true });
  const token = join(site.directory, 'token');
  execFileSync('mkfifo', ['-m', '600', token]); // the page waits for its token
  builder = spawnBuilder(site.config, '--web', '0', '--web-token-file', token);
  await builder.logged(/image\.build\.gated: .*waiting/);
  await writeFile(token, 'short');
  await Promise.race([builder.ended, delay(60_000, undefined, { ref: false })]);
  assert.notEqual(builder.child.exitCode, null, 'it still runs');
  assert.match(builder.log.at(-1) ?? '', /the token in .* has fewer than 16 characters/);
  assert.deepEqual(await readdir(join(site.images, '.nodepool-builder/staging')), []);
});

it('a daemon outlives the program that reads its log', async () => {
  builder.child.stderr?.destroy();
  builder.child.kill('SIGHUP');
  assert.equal(await builder.end('SIGTERM'), 0);
});

describe('SIGHUP', () => {
  it('SIGHUP applies a changed configuration', async () => {
    await site.configure(DOCS);
    builder.child.kill('SIGHUP');
    await builder.logged(/reloaded .*nodepool\.yaml/);
    await waitUntil('the other function', async () => {
      const offered = await offeredFunctions(server.port);
      return offered.length === 1 && offered[0] === 'image-build:docs';
    });
    assert.equal(await builder.end('SIGTERM'), 0);
  });

  it('SIGHUP reports an invalid configuration and keeps the current one', async () => {
    await writeFile(site.config, 'images-dir: [\n');
    builder.child.kill('SIGHUP');
    await builder.logged(/the configuration is unchanged: .*nodepool\.yaml:2:1: /);
    const [result] = await startBuild();
    await writeFile(gate, '');
    assert.equal(String(await result), '{"image-id": "0001"}');
    assert.equal(await builder.end('SIGTERM'), 0);
  });
});
