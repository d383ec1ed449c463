// Only in test:all: it starts a builder for the example of each cloud.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { checksumsOf } from '@nodepool-builder/image-builder/internal';
import { dump, load } from 'js-yaml';
import { builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { temporaryDirectory } from '../fixtures/temporary-directory.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import type { SoakCloud } from '../soak/soak-cloud.ts';
import { openClouds } from '../soak-clouds/clouds.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/providers');

const SIZE = 1_000_000;

interface Example {
  readonly providers: readonly Provider[];
}

interface Provider extends Readonly<Record<string, unknown>> {
  readonly name: string;
  readonly images: readonly { readonly name: string }[];
}

for (const name of await readdir(EXAMPLES)) {
  test(`the example configuration for ${name} uploads an image to its cloud’s double`, async (t) => {
    const [cloud] = await openClouds([name], 0);
    assert.ok(cloud, `there is no double for the example of ${name}`);
    undoAfter(t, () => cloud.close?.());
    const server = await startGearmand();
    undoAfter(t, () => server.stop());
    const directory = await temporaryDirectory(t);
    const [config, path] = [join(directory, 'nodepool.yaml'), join(directory, 'images/0001.raw')];
    const example = load(await readFile(join(EXAMPLES, name, 'nodepool.yaml'), 'utf8')) as Example;
    const providers = example.providers.map((provider) => ({ ...provider, ...connection(cloud, provider) }));
    const servers = [{ host: '127.0.0.1', port: server.port }];
    await writeFile(config, dump({ ...example, providers, 'gearman-servers': servers }));
    await mkdir(join(directory, 'images'));
    await writeFile(path, randomBytes(SIZE));
    const variables = Object.entries(cloud.environment ?? {}).map(([key, value]) => `${key}=${value}`);
    const run = async (...args: readonly string[]): Promise<string> => {
      const [command, rest] = builderCommand(...args, '-c', config);
      const { stdout } = await promisify(execFile)('env', [...variables, command, ...rest]);
      return stdout.trim();
    };

    const [command, args] = builderCommand('-d', '-c', config);
    const daemon = spawnDaemon(['env', [...variables, command, ...args]]);
    undoAfter(t, () => daemon.end('SIGTERM'));
    await daemon.logged(/nodepool\.builder: serving /);
    for (const { name: provider, images } of providers) {
      const externalId = await run('image-upload', '0001', '--provider', provider);
      const imageName = images[0]?.name ?? '';
      const latest = await run('latest', '--provider', provider, '--filter', `image-name=${imageName}`);
      assert.equal(latest, externalId);
      const copy = join(directory, provider);
      const fetched = run(
        'latest',
        '--provider',
        provider,
        '--filter',
        `image-name=${imageName}`,
        '--output',
        copy,
      );
      if (cloud.entry.type === 's3') {
        assert.equal(await fetched, externalId);
        assert.deepEqual(await readFile(copy), await readFile(path));
      } else await assert.rejects(fetched, { code: 2, message: /omit --output/ });
    }
    const [stored, ...others] = await cloud.images();
    assert.deepEqual([stored?.imageId, stored?.flaw, others], ['0001', undefined, []]);
    const { md5 } = await checksumsOf(path);
    assert.equal(await stored?.isSame({ id: '0001', path, size: SIZE, md5 }), true);
    assert.deepEqual((await cloud.orphans?.()) ?? [], []);
  });
}

/** Keys that direct an example to the double, and to another format, because the image is a raw file. */
function connection({ entry }: SoakCloud, { repository }: Provider): object {
  const { name: _, ...settings } = entry;
  const host = String(settings.repository).split('/')[0] ?? '';
  return {
    ...settings,
    ...(typeof repository === 'string' && { repository: repository.replace(/^[^/]+/, host) }),
  };
}
