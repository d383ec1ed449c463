// Only in test:all: it installs packed packages.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '@nodepool-builder/gearman-node';
import { spawnDaemon } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { npmInstall, packagesOfTheCommand, packPackages } from '../fixtures/packed-packages.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLE = join(ROOT, 'examples/plugin-provider');
const { NODE_TEST_CONTEXT: _, ...environment } = process.env;

const run = async (cwd: string, command: string, ...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(command, args, { cwd, env: environment })).stdout;

/** Empty directory into which the tarballs of the command and the plugin are installed. */
let site: string;

before(async () => {
  site = await mkdtemp(join(tmpdir(), 'plugin-provider-'));
  const tarballs = join(site, 'tarballs');
  for (const name of ['tarballs', 'images', 'pool']) await mkdir(join(site, name));
  const packed = await packPackages(await packagesOfTheCommand(), join(site, 'packed'));
  await run(EXAMPLE, 'npm', 'pack', '--pack-destination', tarballs);
  const plugins = (await readdir(tarballs)).map((name) => join(tarballs, name));
  await npmInstall(site, [...packed.values(), ...plugins]);
});
after(() => rm(site, { recursive: true, force: true }));

/** A builder plugin in a single TypeScript file. */
const TREE_BUILDER = `
import { BaseImageBuilder, type BuildContext, type BuilderModule } from '@nodepool-builder/image-builder';

class TreeBuilder extends BaseImageBuilder {
  override readonly nativeFormats = ['raw'] as const;

  protected override async createImage({ run, outputPath, diskimage }: BuildContext): Promise<void> {
    await run('mke2fs', ['-q', '-t', 'ext4', '-d', String(diskimage.options?.tree), outputPath('raw'), '64M']);
  }
}

export default {
  type: 'tree',
  settings: { type: 'object', properties: {} },
  create: (diskimage) => new TreeBuilder(diskimage),
} satisfies BuilderModule;
`;

const CONFIGURATION = `
images-dir: images
plugins: [nodepool-builder-provider-folder, ./tree-builder.ts]
diskimages:
  - {name: docs, builder: tree, options: {tree: /usr/share/doc/e2fsprogs}}
providers:
  - {name: local, type: folder, folder: pool, image-type: qcow2, images: [{name: docs, diskimage: docs}]}
`;

async function builder(t: TestContext): Promise<Client> {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  await writeFile(join(site, 'tree-builder.ts'), TREE_BUILDER);
  const servers = `gearman-servers: [{host: 127.0.0.1, port: ${server.port}}]`;
  await writeFile(join(site, 'nodepool.yaml'), `${CONFIGURATION}${servers}\n`);
  const daemon = spawnDaemon([
    process.execPath,
    [join(site, COMMAND), '-d', '-c', join(site, 'nodepool.yaml')],
  ]);
  undoAfter(t, () => daemon.end('SIGTERM'));
  await daemon.logged(/nodepool\.builder: serving /);
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  undoAfter(t, () => client.close());
  return client;
}

const COMMAND = 'node_modules/.bin/nodepool-builder';

describe('the example of a plugin, installed from its tarball', () => {
  it('the plugin example, installed from its tarball, has a provider of at most 60 lines', async () => {
    const lines = (await readFile(join(EXAMPLE, 'folder-provider.ts'), 'utf8')).trimEnd().split('\n');
    assert.ok(lines.length <= 60, `${lines.length} lines`);
  });

  it('the plugin example, installed from its tarball, passes the contract tests', async () => {
    const contract = await readFile(join(EXAMPLE, 'contract.test.ts'), 'utf8');
    const installed = contract.replace('./folder-provider.ts', 'nodepool-builder-provider-folder');
    await writeFile(join(site, 'contract.test.mts'), installed);
    const args = ['--test', '--test-reporter=tap', '--disable-warning=ExperimentalWarning'];
    const report = await run(site, process.execPath, ...args, 'contract.test.mts');
    assert.match(report, /^# pass [1-9]/m);
    assert.match(report, /^# fail 0$/m);
  });

  it('the plugin example, installed from its tarball, is part of a configuration that validate accepts', async () => {
    await writeFile(join(site, 'nodepool.yaml'), await readFile(join(EXAMPLE, 'nodepool.yaml'), 'utf8'));
    const output = await run(site, process.execPath, COMMAND, 'validate', '-c', 'nodepool.yaml');
    assert.match(output, /nodepool\.yaml is valid: 1 disk image, 1 provider/);
  });

  it('the plugin example, installed from its tarball, uploads another plugin’s image for Gearman jobs', async (t) => {
    const client = await builder(t);
    const submit = async (name: string, argument: object = {}): Promise<Record<string, string>> => {
      const result = await client.submit(name, JSON.stringify(argument));
      return result.length === 0 ? {} : (JSON.parse(String(result)) as Record<string, string>);
    };
    await submit('image-build:docs', { 'image-id': 'docs-1' });
    const request = { provider: 'local', 'image-name': 'docs' };
    const { 'external-id': externalId = '' } = await submit('image-upload:docs-1', request);
    const image = join(site, 'pool', externalId);
    assert.match(await run(site, 'qemu-img', 'info', image), /file format: qcow2/);
    const record: unknown = JSON.parse(await readFile(`${image}.json`, 'utf8'));
    const tags = { nodepool_build_id: 'docs-1', nodepool_image_name: 'docs', nodepool_format: 'qcow2' };
    assert.partialDeepStrictEqual(record, { tags });
  });
});
