import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { SettingsSchema } from '@nodepool-builder/image-builder';
import { cancelFunction } from '@nodepool-builder/image-manager/protocol';
import { loadConfiguration } from 'nodepool-builder';
import { IMAGE_TAGS } from '../../packages/image-builder/src/image-tags.ts';
import { Modules } from '../../packages/nodepool-builder/src/configuration/modules.ts';
import { configurationSchema } from '../../packages/nodepool-builder/src/configuration/schema.ts';
import { statusFunction } from '../../packages/nodepool-builder/src/protocol/builder-status.ts';
import { logFunction } from '../../packages/nodepool-builder/src/protocol/log-part.ts';
import { builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/upgrading-from-nodepool.md');
const [validate = '', rollBack = '', latest = '', ...others] = codeBlocks(page, 'sh');
const [before = '', after = ''] = codeBlocks(page, 'yaml');

test('the commands in docs/upgrading-from-nodepool.md work', async (t) => {
  assert.deepEqual(others, []);
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  await writeFile(join(site.images, '0000000007.qcow2'), 'an image');
  await writeFile(
    join(site.directory, 'nodepool-builder'),
    `#!/bin/sh\nexec ${builderCommand().flat().join(' ')} "$@"\n`,
    {
      mode: 0o755,
    },
  );
  const shell = async (script: string): Promise<string> => {
    const here = script
      .replace('/etc/nodepool/nodepool.yaml', site.config)
      .replace('/opt/nodepool_dib', site.images);
    const env = { ...process.env, PATH: [site.directory, process.env.PATH].join(delimiter) };
    return (await promisify(execFile)('sh', ['-ec', here], { env })).stdout;
  };

  assert.match(await shell(validate), /nodepool\.yaml is valid: 1 disk image, 1 provider/);
  const builder = await startBuilder(site.config);
  undoAfter(t, () => (builder.child.exitCode === null ? builder.end('SIGKILL') : undefined));
  assert.equal(await builder.end('SIGTERM'), 0);
  assert.ok((await readdir(site.images)).includes('.nodepool-builder'));
  await shell(rollBack);
  assert.deepEqual(await readdir(site.images), ['0000000007.qcow2']);
});

test('docs/upgrading-from-nodepool.md names existing keys', () => {
  const paragraph =
    /^\[Configuration\]\(configuration\.md\) describes the new keys.*?\n\n/ms.exec(page)?.[0] ?? '';
  const named = [...paragraph.matchAll(/`([\w-]+)`/g)].map(([, key = '']) => key);
  assert.ok(named.length > 5);
  const { properties = {} } = configurationSchema(Modules.builtIn);
  const keys = [
    properties,
    properties.diskimages?.items?.properties ?? {},
    properties.providers?.items?.properties ?? {},
  ].flatMap((group: Readonly<Record<string, SettingsSchema>>) =>
    Object.entries(group).filter(([, node]) => node.description !== undefined),
  );
  const known = new Set(keys.map(([key]) => key));
  assert.deepEqual(
    named.filter((key) => !known.has(key)),
    [],
  );
});

test('docs/upgrading-from-nodepool.md names the functions and properties that nodepool does not know', () => {
  const functions = [statusFunction, logFunction, cancelFunction].map((name) => name(''));
  for (const name of [...functions, ...Object.values(IMAGE_TAGS)])
    assert.ok(page.includes(`\`${name}`), name);
});

test('the steps in docs/upgrading-from-nodepool.md convert a later release’s file', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'docs-upgrading-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const auth = {
    auth_url: 'https://keystone.example.org/v3',
    username: 'u',
    password: 'p',
    project_name: 'x',
  };
  await writeFile(join(directory, 'clouds.yaml'), JSON.stringify({ clouds: { example: { auth } } }));
  const place = { env: {}, cwd: directory, home: directory };
  const load = async (text: string) => {
    await writeFile(join(directory, 'nodepool.yaml'), text);
    return await loadConfiguration(join(directory, 'nodepool.yaml'), { place });
  };

  await assert.rejects(load(before), (error: Error) => {
    assert.equal(`${error.message.replace(`${directory}/`, '')}\n`, codeBlocks(page, '')[0]);
    return true;
  });
  const { configuration, warnings } = await load(after);
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    configuration.diskimages.map(({ name, rebuildAge }) => [name, rebuildAge]),
    [['debian-bookworm', 86_400]],
  );
  assert.match(latest, /latest --provider ci --filter image-name=debian-bookworm /);
});
