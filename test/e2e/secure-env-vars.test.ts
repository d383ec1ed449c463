// Only in test:all: it waits for several builds.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '@nodepool-builder/gearman-node';
import { builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { createSite, type Site } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const [SECRET, OTHER] = ['correct-horse', 'battery-staple'];

/** Element that runs in the chroot with `set -x`, and fails if the token is wrong. */
const INSTALL = `#!/bin/bash
set -eux
echo "$TOKEN" > /etc/token
if [ "\${#TOKEN}" -gt ${SECRET.length} ]; then
    echo "the token $TOKEN is wrong"
    exit 42
fi
`;

let server: Gearmand;
let client: Client;

before(async () => {
  server = await startGearmand();
  client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
});
after(async () => {
  await client.close();
  await server.stop();
});

async function newSite(t: TestContext, diskimage: (site: Site) => string): Promise<Site> {
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  await site.configure(`\n  - ${diskimage(site)}`);
  await writeSecret(site, SECRET);
  return site;
}

async function writeSecret({ directory }: Site, token: string): Promise<void> {
  await writeFile(
    join(directory, 'secure.yaml'),
    `diskimages: [{name: tokens, env-vars: {TOKEN: ${token}}}]\n`,
  );
}

function build(imageId: string): Promise<Buffer> {
  return client.submit('image-build:tokens', JSON.stringify({ 'image-id': imageId })).result;
}

it('secret env-vars reach the real disk-image-create and no log, and are reloaded when the file changes', async (t) => {
  const elements = join(import.meta.dirname, '../elements');
  const site = await newSite(t, ({ directory }) => {
    const variables = `{ELEMENTS_PATH: '${elements}:${directory}/elements', DIB_JOURNAL_SIZE: '4'}`;
    return `{name: tokens, elements: [mini-os, token], formats: [raw], env-vars: ${variables}}`;
  });
  const install = join(site.directory, 'elements/token/install.d');
  await mkdir(install, { recursive: true });
  await writeFile(join(install, '60-token'), INSTALL, { mode: 0o755 });
  const builder = await startBuilder(site.config, '-s', join(site.directory, 'secure.yaml'));
  undoAfter(t, () => builder.end('SIGKILL'));

  await build('0001');
  const image = join(site.images, '0001.raw');
  const token = execFileSync('debugfs', ['-R', 'cat /etc/token', image], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  assert.equal(token, `${SECRET}\n`);
  await builder.logged(/image\.build\.tokens: .*\+ echo \*\*\*$/);

  await writeSecret(site, OTHER);
  await builder.logged(/nodepool\.builder: reloaded .*nodepool\.yaml/);
  await assert.rejects(build('0002'), { code: 'job-failed' });
  await builder.logged(/the token \*\*\* is wrong/);
  await builder.logged(/ERROR .*build \S+ of tokens failed: "disk-image-create" ended with exit code 42/);
  const buildLogs = ['0001', '0002'].map((id) => join(site.images, '.nodepool-builder/logs', `${id}.log`));
  const texts = await Promise.all(buildLogs.map((path) => readFile(path, 'utf8')));
  assert.doesNotMatch([...texts, ...builder.log].join('\n'), new RegExp(`${SECRET}|${OTHER}`));
});

it('secret env-vars are found by a daemon in the background, also with a relative path', async (t) => {
  const site = await newSite(t, ({ directory }) => `{name: tokens, dib-cmd: ${directory}/dib}`);
  const { directory } = site;
  const script = ['#!/bin/sh', `printf %s "$TOKEN" > ${directory}/token`, 'exit 1', ''].join('\n');
  await writeFile(join(directory, 'dib'), script, { mode: 0o755 });
  const pidFile = join(directory, 'pid');
  const [file, args] = builderCommand('-c', 'nodepool.yaml', '-s', 'secure.yaml', '-p', pidFile);
  await promisify(execFile)(file, args, { cwd: directory });
  await assert.rejects(build('0001'), { code: 'job-failed' });
  assert.equal(await readFile(join(directory, 'token'), 'utf8'), SECRET);
  process.kill(Number(await readFile(pidFile, 'utf8')), 'SIGINT');
  await waitUntil('the end', async () => (await stat(pidFile).catch(() => undefined)) === undefined);
});
