import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { load } from 'js-yaml';
import { codeBlocks, readPage } from '../docs/markdown.ts';
import { builderCommand, programCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { createAuthority } from '../fixtures/certificate-authority.ts';
import { gearmandHelp } from '../fixtures/gearmand-command.ts';
import { docsImage, endAfter, type Settings } from '../fixtures/managed-site.ts';
import { connectHosts, type NetworkHost } from '../fixtures/network-hosts.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

const DOCS = { name: 'docs', diskimage: 'docs' };

const SERVER = '192.0.2.1';

/** The example in the documentation. */
async function accessList(): Promise<string> {
  const blocks = codeBlocks(await readPage('docs/configuration.md'), 'yaml');
  const block = blocks.find((text) => text.includes('administer:'));
  assert.ok(block);
  return block;
}

/** Host A runs the job server and the manager, and host B a builder. Each has a certificate. */
async function startHosts(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'tls-hosts-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const network = await connectHosts(2);
  undoAfter(t, () => network.remove());
  const [a, b] = network.hosts as [NetworkHost, NetworkHost];
  const authority = await createAuthority(join(directory, 'authority'));
  const [server, manager, builder] = await Promise.all([
    authority.issue('gearmand', SERVER),
    authority.issue('zuul.example.org'),
    authority.issue('builder.example.org'),
  ]);
  const list = join(directory, 'access.yaml');
  await writeFile(list, await accessList());

  const tls = ['--tls-cert', server.cert, '--tls-key', server.key, '--tls-ca', authority.ca];
  const gearmand = ['gearmand', '-L', SERVER, ...tls, '--access-list', list];
  const jobServer = endAfter(t, spawnDaemon(a.on(builderCommand(...gearmand))));

  const connect = ['-c', `exec 3<>/dev/tcp/${SERVER}/4730`];
  await waitUntil('the job server to listen', () =>
    a.run(['bash', connect]).then(
      () => true,
      () => false,
    ),
  );

  const pool = join(directory, 'pool');
  await mkdir(pool);
  const configure = async (name: string, own: Settings, settings: Settings = {}): Promise<string> => {
    const images = join(directory, name);
    await mkdir(images);
    const file = join(directory, `${name}.yaml`);
    await writeFile(
      file,
      JSON.stringify({
        'images-dir': images,
        'gearman-servers': [{ host: SERVER, 'ssl-ca': authority.ca, ...own }],
        manager: { store: join(directory, 'manager.sqlite') },
        diskimages: [docsImage()],
        providers: [{ name: 'pool', type: 'directory', directory: pool, images: [DOCS] }],
        ...settings,
      }),
    );
    return file;
  };
  return { a, b, jobServer, pool, manager, builder, configure };
}

test('builder, manager and commands work with the access list in the documents, on two hosts over TLS', async (t) => {
  const { a, b, jobServer, pool, manager, builder, configure } = await startHosts(t);
  const zuul = endAfter(
    t,
    spawnDaemon(
      b.on(programCommand(join(import.meta.dirname, '../fixtures/zuul/zuul-program.ts'), 'build-arm', 'arm')),
    ),
  );
  const { url, imageId } = JSON.parse(await zuul.logged(/^\{/)) as { url: string; imageId: string };
  const zuulImage = {
    name: 'arm',
    'api-url': url,
    project: 'opendev/system-config',
    pipelines: ['periodic'],
    job: 'build-arm',
    artifacts: [{ format: 'raw', type: 'image-raw' }],
  };
  const onB = await configure(
    'builder',
    { 'ssl-cert': builder.cert, 'ssl-key': builder.key },
    { 'zuul-images': [zuulImage] },
  );
  const onA = await configure('manager', { 'ssl-cert': manager.cert, 'ssl-key': manager.key });
  const command = async (...args: readonly string[]): Promise<string> =>
    await a.run(builderCommand(...args, '-c', onA));

  const daemon = endAfter(t, spawnDaemon(b.on(builderCommand('-d', '-c', onB))));
  await daemon.logged(/connected to the job server/);

  // The builder itself requests the image of the Zuul build.
  await waitUntil(imageId, async () => {
    assert.doesNotMatch(jobServer.log.join('\n'), /may not/);
    return (await command('image-list', '--offered')).includes(imageId);
  });

  assert.match(await command('plan'), /build +docs/);
  assert.equal((await command('image-build', 'docs', '--image-id', 'docs-1')).trim(), 'docs-1');
  await command('image-upload', 'docs-1', '--provider', 'pool');
  assert.ok((await readdir(pool)).includes('docs-docs-1.qcow2'));
  await command('image-delete', 'docs-1');
  // The builder deregisters the functions after its result.
  await waitUntil(
    'the image to be gone',
    async () => !(await command('image-list', '--offered')).includes('docs-1'),
  );

  const managing = endAfter(t, spawnDaemon(a.on(builderCommand('manage', '-c', onA))));
  await managing.logged(/elected leader/);
  await waitUntil('the upload by the manager', async () =>
    (await readdir(pool)).some((name) => /^docs-docs-\d{10}-\w{8}\.qcow2$/.test(name)),
  );
  assert.match(await command('dib-image-list'), /docs-\d{10}-\w{8}/);
  await command('alien-image-list');
  assert.deepEqual(
    [...daemon.log, ...managing.log, ...jobServer.log].filter((line) => /may not|ACCESS_DENIED/.test(line)),
    [],
  );
});

test('a builder with a wrong certificate is rejected, and logs which job server rejected it', async (t) => {
  const { b, jobServer, configure } = await startHosts(t);
  const plain = await configure('plain', { 'ssl-ca': undefined });
  const certified = await configure('uncertified', {});
  for (const config of [plain, certified]) {
    const daemon = endAfter(t, spawnDaemon(b.on(builderCommand('-d', '-c', config))));
    await daemon.logged(/the connection to 192\.0\.2\.1:4730 was lost/);
    await daemon.end('SIGKILL');
  }
  assert.doesNotMatch(jobServer.log.join('\n'), /may not/);
});

test('the access list in --help is the one in the documents', async () => {
  const help = await gearmandHelp();
  const lines = help.split('\n').filter((line) => /^ {2}\S+: \{ /.test(line));
  assert.deepEqual(load(lines.join('\n')), load(await accessList()));
});
