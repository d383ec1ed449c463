import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { builderCommand } from '../fixtures/builder-process.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

test('the command latest queries a cloud in clouds.yaml, without any nodepool.yaml', async (t) => {
  const account = await (await openStack()).createAccount();
  const directory = await mkdtemp(join(tmpdir(), 'latest-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const clouds = join(directory, 'clouds.yaml');
  await writeFile(clouds, cloudsYaml({ ci: account.cloud() }));
  const glance = await account.glance();
  const { id } = await glance.request<{ id: string }>('POST', '/images', { name: 'debian-1' });
  const latest = async (provider: string): Promise<string> => {
    const [file, args] = builderCommand(
      'latest',
      '--provider',
      provider,
      '--filter',
      'name=debian-?',
      '--explain',
    );
    const env = { ...process.env, OS_CLIENT_CONFIG_FILE: clouds };
    return await new Promise((resolve) => {
      execFile(file, args, { env }, (error, stdout, stderr) => resolve(`${error?.code} ${stdout}${stderr}`));
    });
  };
  assert.match(
    await latest('ci'),
    new RegExp(
      `^3 EXTERNAL-ID.*\\n${id} +debian-1 .* not chosen: it is queued\\n.*1 with a matching name: it is queued \\(1\\)`,
    ),
  );
  assert.match(
    await latest('other'),
    /^1 .*the cloud "other" is not in .*; known clouds: ci; .*directory:PATH/,
  );
});
