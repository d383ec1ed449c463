// Only in test:all: it walks through a long document.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import type { SettingsSchema } from '@nodepool-builder/image-builder';
import { loadConfiguration } from 'nodepool-builder';
import { toManagerConfiguration } from '../../packages/nodepool-builder/src/configuration/manager-configuration.ts';
import { Modules } from '../../packages/nodepool-builder/src/configuration/modules.ts';
import { providerSchema } from '../../packages/nodepool-builder/src/configuration/provider-schema.ts';
import { configurationSchema } from '../../packages/nodepool-builder/src/configuration/schema.ts';
import { freePort } from '../../scripts/free-port.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/managing-images.md');
const readme = await readPage('README.md');

/** Creates a directory with a `nodepool.yaml` and a command `nodepool-builder`. The image "debian" is a small one. */
async function createShell(t: TestContext): Promise<(script: string) => Promise<string>> {
  const directory = await mkdtemp(join(tmpdir(), 'managing-images-'));
  await Promise.all(['bin', 'images', 'pool'].map((name) => mkdir(join(directory, name))));
  await writeFile(
    join(directory, 'nodepool.yaml'),
    `images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${await freePort()}}]
diskimages: [{name: debian, builder: directory-tree, options: {tree: ${import.meta.dirname}}}]
providers: [{name: local, type: directory, directory: pool, images: [{name: debian, diskimage: debian}]}]
`,
  );
  const command = builderCommand()
    .flat()
    .map((word) => `'${word}'`)
    .join(' ');
  const script = `#!/bin/sh\nexec ${command} "$@"\n`;
  await writeFile(join(directory, 'bin/nodepool-builder'), script, { mode: 0o755 });
  const env = { ...process.env, PATH: [join(directory, 'bin'), process.env.PATH].join(delimiter) };
  const shell = async (text: string): Promise<string> =>
    (await promisify(execFile)('sh', ['-euc', text], { cwd: directory, env })).stdout;
  undoAfter(t, async () => {
    await shell('[ ! -e builder.pid ] || kill -9 "$(cat builder.pid)"');
    await rm(directory, { recursive: true, force: true });
  });
  return shell;
}

/** Waits until the provider has the images of this number of builds. */
async function uploaded(shell: (script: string) => Promise<string>, count: number): Promise<void> {
  await waitUntil(`${count} uploads`, async () => {
    const list: { state: string }[] = JSON.parse(
      await shell('nodepool-builder image-list --json -c nodepool.yaml'),
    );
    return list.filter(({ state }) => state === 'ready').length === count;
  });
}

/** Stops the process with SIGTERM, and checks that its pid file is gone. */
async function ended(shell: (script: string) => Promise<string>): Promise<void> {
  await waitUntil('its end', async () => (await shell('[ -e builder.pid ] || echo ended')) === 'ended\n');
}

test('the commands in docs/managing-images.md do what it says', async (t) => {
  const [start = '', look = '', request = '', dryRun = '', save = '', stop = '', ...others] = codeBlocks(
    page,
    'sh',
  );
  assert.deepEqual(others, []);
  const shell = await createShell(t);
  await shell(start);
  await uploaded(shell, 1);
  const shown = await shell(look);
  for (const column of ['PROVIDER', 'ERROR', 'EXTERNAL-ID', 'WHAT'])
    assert.ok(shown.includes(column), column);
  assert.match(shown, /^debian +local +ready +1 +debian-0000000001-\w+ /m);
  await shell('nodepool-builder rebuild debian -c nodepool.yaml');
  await uploaded(shell, 2);
  assert.ok(request.includes('rebuild debian') && request.includes('rollback debian'));
  await shell(request);
  assert.match(await shell(dryRun), /^WHAT +SUBJECT +WHEN +REASON$/m);
  await shell(save);
  assert.match(await shell('cat images.json'), /"version": 1/);
  await shell(stop);
  await ended(shell);
});

test('the README’s session without a nodepool daemon works as it is written', async (t) => {
  const session =
    codeBlocks(readme, 'sh').find((block) => block.startsWith('nodepool-builder --all-in-one')) ?? '';
  const [start = '', ...rest] = session.split('\n');
  const shell = await createShell(t);
  await shell(start);
  await uploaded(shell, 1);
  assert.match(await shell(rest.join('\n')), /^debian +local +ready +1 +debian-0000000001-\w+ /m);
  await ended(shell);
});

test('the configuration in docs/managing-images.md is valid', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'managing-images-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  const [text = '', ...others] = codeBlocks(page, 'yaml');
  assert.deepEqual(others, []);
  await writeFile(file, text);
  const { configuration, warnings } = await loadConfiguration(file);
  assert.deepEqual(warnings, []);
  assert.equal(configuration.manager.store, 'postgresql://nodepool@db.example.org/nodepool');
});

test('the keys in docs/managing-images.md exist, with the defaults shown there', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'managing-images-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(
    file,
    'images-dir: images\ndiskimages: [{name: a}]\nproviders: [{name: p, type: directory, directory: p, images: []}]\n',
  );
  const { configuration } = await loadConfiguration(file);
  const { diskimages, providers, timing } = toManagerConfiguration(configuration);
  const { properties: providerKeys = {} } = providerSchema(Modules.builtIn);
  const defaults: Readonly<Record<string, unknown>> = {
    'diskimages[].rebuild-age': diskimages[0]?.rebuildAge,
    'diskimages[].rebuild-cron': '',
    'cron.image-update': '',
    'diskimages[].keep': diskimages[0]?.keep,
    'diskimages[].pause': diskimages[0]?.pause,
    'providers[].pause': providers[0]?.pause,
    'diskimages[].build-timeout': diskimages[0]?.buildTimeout,
    'providers[].image-upload-timeout': providers[0]?.uploadTimeout,
    'providers[].upload-retry-timeout': providerKeys['upload-retry-timeout']?.default,
    'manager.retry-delay': timing.retryDelay,
    'manager.max-retry-delay': timing.maxRetryDelay,
    'manager.orphan-scan-interval': timing.orphanScanInterval,
    'manager.absence-timeout': timing.absenceTimeout,
  };
  const rows = [...page.matchAll(/^\| `([\w.[\]-]+\.[\w.[\]-]+)`[^|]*\| *([^|]*?) *\|/gm)];
  const documented = Object.fromEntries(rows.map(([, key = '', standard]) => [key, standard]));
  assert.deepEqual(
    documented,
    Object.fromEntries(Object.entries(defaults).map(([key, standard]) => [key, String(standard)])),
  );
  for (const key of Object.keys(documented)) assert.ok(nodeAt(key)?.description !== undefined, key);
});

function nodeAt(path: string): SettingsSchema | undefined {
  return path
    .replaceAll('[]', '.[]')
    .split('.')
    .reduce<SettingsSchema | undefined>(
      (node, name) => (name === '[]' ? node?.items : node?.properties?.[name]),
      configurationSchema(Modules.builtIn),
    );
}
