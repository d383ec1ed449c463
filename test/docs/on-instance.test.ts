import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { loadConfiguration } from 'nodepool-builder';
import { InstanceRecords } from '../../packages/on-instance/src/instance-records.ts';
import { HostKey } from '../../packages/on-instance/src/ssh/host-key.ts';
import { sshLogin } from '../../packages/on-instance/src/ssh/ssh-login.ts';
import { freePort } from '../../scripts/free-port.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const page = await readPage('docs/on-instance.md');
const configurations = codeBlocks(page, 'yaml');
const [example = '', commands = ''] = codeBlocks(page, 'sh');

const AUTH = {
  auth_url: 'https://keystone.example.org/v3',
  username: 'u',
  password: 'p',
  project_name: 'ci',
};

for (const [index, text] of configurations.entries()) {
  const [name] = /(?<=- name: )\S+/.exec(text) ?? [];
  test(`nodepool.yaml ${index + 1} in docs/on-instance.md, from ${name}, loads without a warning`, async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'docs-on-instance-'));
    undoAfter(t, () => rm(directory, { recursive: true }));
    const file = join(directory, 'nodepool.yaml');
    await writeFile(file, text);
    await writeFile(
      join(directory, 'clouds.yaml'),
      JSON.stringify({ clouds: { example: { auth: AUTH }, other: { auth: AUTH } } }),
    );
    const place = { env: {}, cwd: directory, home: directory };
    const { configuration, warnings } = await loadConfiguration(file, { place });
    assert.deepEqual(warnings, []);
    assert.ok(configuration.diskimages.length > 0);
    for (const { builder } of configuration.diskimages) assert.equal(builder, 'on-instance');
  });
}

test('a builder with the configuration in docs/on-instance.md starts with --keep-on-failure', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-on-instance-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  for (const name of ['bin', 'images', 'pool']) await mkdir(join(directory, name));
  const server = `gearman-servers: [{host: 127.0.0.1, port: ${await freePort()}}]\n`;
  await writeFile(join(directory, 'nodepool.yaml'), configurations[0] + server);
  const command = builderCommand('"$@"').flat();
  await writeFile(join(directory, 'bin/nodepool-builder'), `#!/bin/sh\nexec ${command.join(' ')}\n`, {
    mode: 0o755,
  });
  const PATH = [join(directory, 'bin'), process.env.PATH].join(delimiter);
  const run = promisify(execFile);
  await run('sh', ['-euc', commands], { cwd: directory, env: { ...process.env, PATH } });
  const pid = Number(await readFile(join(directory, 'builder.pid'), 'utf8'));
  undoAfter(t, async () => {
    process.kill(pid, 'SIGTERM');
    await waitUntil('the builder to end', () => !existsSync(`/proc/${pid}`));
  });
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8');
  assert.match(line, /--keep-on-failure=3600/);
});

test('docs/on-instance.md names existing scripts', async () => {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const named = [...`${example}${page}`.matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name);
  assert.ok(named.includes('example:on-instance') && named.includes('soak:on-instance'));
  for (const name of named) assert.ok(name in scripts, name);
});

test('docs/on-instance.md shows the login to a kept machine as the builder prints it', async () => {
  const hint = /`(ssh -i [^`]+)`/.exec(page)?.[1] ?? '';
  const ledger = new InstanceRecords({
    recordDirectory: (name) => `/opt/nodepool/images/.nodepool-builder/${name}`,
  });
  const keyFile = ledger.tryClaim('0000000001')?.keyFile ?? '';
  const login = sshLogin('root', { privateKey: '', keyFile }, new HostKey());
  assert.equal(login.hint({ host: '127.0.0.1', port: 40_123 }), hint);
});
