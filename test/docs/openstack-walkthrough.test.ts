// Only in test:all: it walks through a long document.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { freePort } from '../../scripts/free-port.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const page = await readPage('docs/openstack-walkthrough.md');
const [, start = '', watch = '', latest = '', stop = '', ...others] = codeBlocks(page, 'sh');
const [clouds = '', configuration = ''] = codeBlocks(page, 'yaml');

test('the commands in docs/openstack-walkthrough.md upload an image to a real Glance', async (t) => {
  assert.deepEqual(others, []);
  const account = await (await openStack()).createAccount();
  const { id, secret } = await account.createApplicationCredential();
  const directory = await mkdtemp(join(tmpdir(), 'docs-walkthrough-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = (name: string): string => join(directory, name);

  // The page's cloud entry with the test's credentials, and a small image in place of Debian.
  const { auth_type: authType, auth } = (
    load(clouds) as { clouds: { ci: { auth_type: string; auth: object } } }
  ).clouds.ci;
  const credential = { application_credential_id: id, application_credential_secret: secret };
  const ci = {
    ...account.cloud(),
    auth_type: authType,
    auth: { ...auth, ...credential, auth_url: account.authUrl },
  };
  await writeFile(file('clouds.yaml'), cloudsYaml({ ci }));
  const text = configuration
    .replace('/opt/nodepool', directory)
    .replace(
      '[debian-minimal, debian-fixes, vm, cloud-init]',
      "[mini-os]\n    env-vars: {DIB_JOURNAL_SIZE: '4'}",
    );
  assert.match(text, /mini-os/);
  const server = `gearman-servers: [{host: 127.0.0.1, port: ${await freePort()}}]`;
  await writeFile(file('nodepool.yaml'), `${text}elements-dir: ${join(ROOT, 'test/elements')}\n${server}\n`);
  const program = builderCommand().flat().join(' ');
  await writeFile(file('nodepool-builder'), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
  const env = {
    ...process.env,
    PATH: `${directory}:${process.env.PATH}`,
    OS_CLIENT_CONFIG_FILE: file('clouds.yaml'),
  };
  const shell = async (script: string): Promise<string> => {
    const here = script.replaceAll(/\/etc\/nodepool|\/opt\/nodepool|\/run(?=\/nodepool)/g, directory);
    return (await promisify(execFile)('sh', ['-euc', here], { env })).stdout;
  };

  assert.match(
    await shell(start),
    /nodepool\.yaml is valid: 1 disk image, 1 provider\n.* serves in the background/,
  );
  const pid = Number(await readFile(file('nodepool-builder.pid'), 'utf8'));
  undoAfter(t, () => {
    if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
  });
  await waitUntil('the upload to be ready', async () =>
    /\bready\b/.test(await shell('nodepool-builder image-list -c /etc/nodepool/nodepool.yaml')),
  );
  assert.match(await shell(watch), /debian/);
  const images = await account.images();
  assert.deepEqual(
    images.map(({ id: externalId, status, os_distro: distro }) => [`${externalId}\n`, status, distro]),
    [[await shell(latest), 'active', 'debian']],
  );
  assert.match(images[0]?.name ?? '', /^template-debian-\d+$/);
  await shell(stop);
  await waitUntil('the builder to end', () => !existsSync(`/proc/${pid}`));
});
