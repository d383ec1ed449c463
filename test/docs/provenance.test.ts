// Only in test:all: it walks through a long document.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../../scripts/free-port.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { checkJson } from '../fixtures/checked-output.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const page = await readPage('docs/provenance.md');
const [
  keys = '',
  start = '',
  verifyFile = '',
  verifyUpload = '',
  download = '',
  alone = '',
  stop = '',
  changes = '',
  ...others
] = codeBlocks(page, 'sh');
const [configuration = '', gate = '', kms = ''] = codeBlocks(page, 'yaml');
const [python = ''] = codeBlocks(page, 'python');

const run = promisify(execFile);

test('the commands in docs/provenance.md prove where an image in a real Glance comes from', async (t) => {
  assert.deepEqual(others, []);
  const account = await (await openStack()).createAccount();
  const directory = await mkdtemp(join(tmpdir(), 'docs-provenance-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = (name: string): string => join(directory, name);
  await writeFile(file('clouds.yaml'), cloudsYaml({ ci: account.cloud() }));
  const text = configuration
    .replace('/opt/nodepool', directory)
    .replace(
      '[debian-minimal, debian-fixes, vm, cloud-init]',
      "[mini-dpkg]\n    env-vars: {DIB_JOURNAL_SIZE: '4'}",
    );
  assert.match(text, /mini-dpkg/);
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
    return (await run('sh', ['-euc', here], { env })).stdout;
  };

  await shell(keys);
  assert.equal((await stat(file('attestation.pem'))).mode & 0o777, 0o600);
  assert.match(await shell(start), /is valid: 1 disk image, 1 provider\n/);
  const pid = Number(await readFile(file('nodepool-builder.pid'), 'utf8'));
  undoAfter(t, () => {
    if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
  });
  // Each of these waits has its own timeout, and is cheaper than a command.
  const images = file('images');
  const image = await waitUntil('the image', async () =>
    (await readdir(images)).find((name) => name.endsWith('.qcow2'))?.replace('.qcow2', ''),
  );
  const attestations = join(images, `${image}.d/attestations`);
  await waitUntil('the attestation of the upload', async () =>
    (await readdir(attestations)).some((name) => name.startsWith('upload-')),
  );
  await waitUntil('the upload to be ready', async () =>
    /\bready\b/.test(await shell('nodepool-builder image-list -c /etc/nodepool/nodepool.yaml')),
  );

  assert.match(
    await shell(verifyFile),
    /^proven +file .*\n(?:.*\n)*proven +build .*\n(?:.*\n)*proven: file /,
  );
  const uploaded = await shell(verifyUpload);
  assert.match(uploaded, /^proven +upload .*md5 [0-9a-f]{32}, sha512 [0-9a-f]{128}\n/);
  assert.match(uploaded, /\nproven +record +properties in the provider: agrees in image-id, upload-id,/);
  assert.match(uploaded, /\nproven: image .* of provider ci: /);
  const downloaded = await shell(download);
  checkJson('verify', downloaded);
  const { links, state, builder } = JSON.parse(downloaded) as {
    links: { kind: string; state: string }[];
    state: string;
    builder: string;
  };
  assert.deepEqual([state, builder], ['proven', 'https://ci.example.org/builder-1']);
  assert.ok(links.some((link) => link.kind === 'download' && link.state === 'proven'));
  assert.match(await shell(alone), /\nproven: file /);

  const [inCloud] = await account.images();
  assert.match(
    String(inCloud?.['attestation-sha256'] ?? inCloud?.nodepool_attestation_sha256),
    /^[0-9a-f]{64}$/,
  );

  await shell(stop);
  await waitUntil('the builder to end', () => !existsSync(`/proc/${pid}`));
  const origin = await shell(changes);
  assert.ok(origin.startsWith(`${image}: proven, `), origin);
  assert.match(origin, /\n\d+ packages: the store has no package list of an earlier build\n/);

  // With another program, and after a change.
  await writeFile(file('verify.py'), python);
  const bundle = join(attestations, 'build.sigstore.json');
  const { stdout } = await run('/usr/bin/python3', [file('verify.py'), bundle, file('attestation.pub')]);
  const digests = JSON.parse(stdout) as { name: string; digest: { sha256: string } }[];
  const { stdout: sum } = await run('sha256sum', [join(images, `${image}.qcow2`)]);
  assert.equal(digests[0]?.digest.sha256, sum.split(' ', 1)[0]);
  const changed = (await readFile(bundle, 'utf8')).replace('"sig":"', '"sig":"AAAA');
  await writeFile(bundle, changed);
  await assert.rejects(run('/usr/bin/python3', [file('verify.py'), bundle, file('attestation.pub')]));
  await assert.rejects(shell(alone), { code: 8 });
});

test('the gate and the KMS in docs/provenance.md are valid configuration', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-provenance-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = (name: string): string => join(directory, name);
  await run('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', file('attestation.pem')]);
  for (const name of ['attestation.pub', 'zuul.pub']) {
    await run('openssl', ['pkey', '-in', file('attestation.pem'), '-pubout', '-out', file(name)]);
  }
  await writeFile(file('kms-sign'), '#!/bin/sh\n', { mode: 0o755 });
  const settings = kms.replace('/usr/local/bin/kms-sign', file('kms-sign'));
  await writeFile(file('nodepool.yaml'), `images-dir: .\n${settings}${gate}`);
  const [command, args] = builderCommand('validate', '--strict', '-c', file('nodepool.yaml'));
  assert.match((await run(command, args)).stdout, /is valid/);
});
