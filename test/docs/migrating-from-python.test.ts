import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CONFIGURATION_SCHEMA } from '../../packages/nodepool-builder/src/configuration/schema.ts';
import { builderCommand, startBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/migrating-from-python.md');
const [validate = '', goBack = '', ...others] = codeBlocks(page, 'sh');

test('the commands of docs/migrating-from-python.md do what it says', async (t) => {
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

  assert.match(await shell(validate), /nodepool\.yaml is good: 1 disk image, 1 provider/);
  const builder = await startBuilder(site.config);
  undoAfter(t, () => (builder.child.exitCode === null ? builder.end('SIGKILL') : undefined));
  assert.equal(await builder.end('SIGTERM'), 0);
  assert.ok((await readdir(site.images)).includes('.nodepool-builder'));
  await shell(goBack);
  assert.deepEqual(await readdir(site.images), ['0000000007.qcow2']);
});

test('the keys that docs/migrating-from-python.md calls new are there', () => {
  const paragraph = /^New keys for these.*?\n\n/ms.exec(page)?.[0] ?? '';
  const named = [...paragraph.matchAll(/`([\w-]+)`/g)].map(([, key = '']) => key);
  assert.ok(named.length > 5);
  const { properties = {} } = CONFIGURATION_SCHEMA;
  const keys = [
    properties,
    properties.diskimages?.items?.properties ?? {},
    properties.providers?.items?.properties ?? {},
  ].flatMap((group) => Object.entries(group).filter(([, node]) => node.description !== undefined));
  const known = new Set(keys.map(([key]) => key));
  assert.deepEqual(
    named.filter((key) => !known.has(key)),
    [],
  );
});
