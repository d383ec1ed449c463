// Only in test:all: it needs Ansible.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { DirectoryProvider } from '@nodepool-builder/image-builder';
import { load } from 'js-yaml';
import { freePort } from '../../scripts/free-port.ts';
import { readPage } from '../docs/markdown.ts';
import { runZuulJob, ZUUL_JOBS } from '../fixtures/ansible-playbook.ts';
import { builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { startNginx } from '../fixtures/nginx.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { openStack } from '../fixtures/openstack/openstack.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import type { ArtifactRow } from '../fixtures/zuul/build-row.ts';
import { ZuulDouble } from '../fixtures/zuul/zuul-double.ts';
import { readZuulJob } from '../fixtures/zuul-job.ts';

/** Id of the build. */
const UUID = '0123456789abcdef0123456789abcdef';

/** Build directory of the jobs. */
let imageRoot: string;
before(async () => {
  imageRoot = await mkdtemp(join(tmpdir(), 'dib-images-'));
});
after(() => rm(imageRoot, { recursive: true, force: true }));

/** Makes a job build a tiny image instead of a real one. */
function tinyImage(): Readonly<Record<string, unknown>> {
  return {
    build_diskimage_elements: ['mini-os'],
    build_diskimage_elements_path: [join(import.meta.dirname, '../elements')],
    build_diskimage_image_root: imageRoot,
    build_diskimage_environment: {
      DIB_NO_TMPFS: '1',
      TMP_DIR: imageRoot,
      DIB_IMAGE_CACHE: join(imageRoot, 'cache'),
      DIB_LOCKFILES: join(imageRoot, 'locks'),
    },
  };
}

/** Returns the path of the image that a job built. */
function builtImage(format: string): string {
  return join(imageRoot, 'debian', UUID, `debian.${format}`);
}

async function createDirectory(t: TestContext, ...names: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'zuul-jobs-'));
  undoAfter(t, () => rm(directory, { recursive: true, force: true }));
  await Promise.all(names.map((name) => mkdir(join(directory, name))));
  return directory;
}

test('a Zuul job’s artifact is imported and uploaded to a cloud where Nodepool deletes images', async (t) => {
  const directory = await createDirectory(t, 'home', 'images');
  const account = await (await openStack()).createAccount();
  const nginx = await startNginx();
  undoAfter(t, () => nginx.stop());
  const zuul = await ZuulDouble.start();
  undoAfter(t, () => zuul[Symbol.asyncDispose]());

  const { playbooks, vars } = await readZuulJob('build-and-publish-debian-image');
  const variables = {
    ...vars,
    ...tinyImage(),
    publish_image_directory: join(nginx.directory, 'images'),
    zuul: { build: UUID },
  };
  const { returned } = await runZuulJob({ playbooks, variables, home: join(directory, 'home') });
  const { artifacts } = returned.zuul as { artifacts: readonly ArtifactRow[] };
  const image = await readFile(builtImage('qcow2'));
  assert.deepEqual(artifacts[0], {
    name: 'qcow2 image',
    url: `images/${UUID}-debian.qcow2`,
    metadata: {
      type: 'zuul_image',
      image_name: 'debian',
      format: 'qcow2',
      sha256: createHash('sha256').update(image).digest('hex'),
      md5sum: createHash('md5').update(image).digest('hex'),
    },
  });
  assert.deepEqual(
    artifacts.map(({ url }) => url),
    [`images/${UUID}-debian.qcow2`, `images/${UUID}-debian.raw.zst`],
  );

  const example = load(
    await readFile(join(ZUUL_JOBS, 'nodepool/nodepool-deletes-images.yaml'), 'utf8'),
  ) as Example;
  const [zuulImage] = example['zuul-images'];
  const { project, pipelines, job } = zuulImage;
  const logUrl = `${nginx.url}/`;
  // as Zuul does when it loads them
  const joined = artifacts.map((artifact) => ({ ...artifact, url: new URL(artifact.url, logUrl).href }));
  zuul.table().add(joined, { uuid: UUID, project, pipeline: pipelines[0], job }, { logUrl });

  const config = join(directory, 'nodepool.yaml');
  const settings = {
    ...example,
    'images-dir': 'images',
    'gearman-servers': [{ host: '127.0.0.1', port: await freePort() }],
    'zuul-images': [{ ...zuulImage, 'api-url': zuul.url }],
    // so that the image is unpacked
    providers: [{ ...example.providers[0], 'image-type': 'raw', rate: 0 }],
  };
  await writeFile(config, JSON.stringify(settings));
  const clouds = join(directory, 'clouds.yaml');
  await writeFile(clouds, cloudsYaml({ example: account.cloud() }));
  const command = builderCommand('-d', '--all-in-one', '-c', config).flat();
  const builder = spawnDaemon(['env', [`OS_CLIENT_CONFIG_FILE=${clouds}`, ...command]]);
  undoAfter(t, () => builder.end('SIGTERM'));
  const upload = await waitUntil('the upload', async () =>
    (await account.images()).find(({ status }) => status === 'active'),
  );
  assert.match(upload.name, /debian/);
  const raw = await readFile(builtImage('raw'));
  assert.equal(upload.checksum, createHash('md5').update(raw).digest('hex'));
});

/** Uploads a version of the image to a pool, like an earlier job. Returns its external-id. */
async function uploadVersion(pool: string, daysAgo: number): Promise<string> {
  const path = join(pool, 'image');
  await writeFile(path, `of ${daysAgo} days ago`);
  const { externalId } = await new DirectoryProvider({ name: 'pool', directory: pool }).upload({
    uploadId: `job-${createHash('sha256').update(`${daysAgo}`).digest('hex')}`,
    imageId: `${daysAgo}d`, // without a number for the order, as in Zuul's jobs
    imageName: 'debian',
    file: { format: 'qcow2', path, size: (await stat(path)).size },
    builtAt: new Date(Date.now() - daysAgo * 86_400_000),
    shared: true,
  });
  await rm(path);
  return externalId;
}

/** Leaves a partial upload, as a killed job does. */
async function leavePartial(pool: string, uploadId: string, hoursAgo: number): Promise<string> {
  const name = `.upload-${uploadId}.00000000.part`;
  await writeFile(join(pool, name), '');
  const time = Date.now() / 1000 - hoursAgo * 3600;
  await utimes(join(pool, name), time, time);
  return name;
}

test('a Zuul job uploads, deletes old images, and removes what an aborted job left, where Zuul deletes images', async (t) => {
  const directory = await createDirectory(t, 'home', 'pool');
  const [home, pool] = [join(directory, 'home'), join(directory, 'pool')];
  const oldest = await uploadVersion(pool, 10);
  const former = await uploadVersion(pool, 5);
  const aborted = await leavePartial(pool, `job-${'0'.repeat(64)}`, 7);
  const running = await leavePartial(pool, `job-${'1'.repeat(64)}`, 0);
  // Zuul merges standard error, including warnings, into standard output.
  const warning = 'echo "nodepool-builder: a warning" >&2';
  const command = ['sh', '-c', `${warning}; exec "$@"`, '-', ...builderCommand().flat()];
  // The credentials exist only during the upload, and are deleted with their directory.
  const spy = ['sh', '-c', 'cp --preserve=mode "$OS_CLIENT_CONFIG_FILE" "$HOME" && exec "$@"', '-'];

  const { playbooks, vars } = await readZuulJob('build-and-upload-debian-image');
  const { returned, output } = await runZuulJob({
    playbooks,
    home,
    variables: {
      ...vars,
      ...tinyImage(),
      image_providers: [`directory:${pool}`],
      configure_clouds_config: { clouds: { example: { auth: { password: 'correct-horse' } } } },
      upload_image_command: [...spy, ...command],
      upload_image_metadata: { os_distro: 'debian', built_by: 'Zuul=it' },
      prune_images_command: command,
      reap_images_command: command,
      zuul: { build: UUID },
    },
  });

  const {
    uploaded_images: [upload],
    pruned_images: [pruned],
    reaped_images: [reaped],
  } = returned as unknown as Returned;
  const newest = `${upload['external-id']}`;
  const image = await readFile(builtImage('qcow2'));
  assert.ok((await readFile(join(pool, newest))).equals(image));
  const manifest = JSON.parse(await readFile(join(pool, `${newest}.json`), 'utf8'));
  assert.deepEqual(manifest.metadata, { os_distro: 'debian', built_by: 'Zuul=it' });
  assert.deepEqual(
    pruned.map((record) => record['external-id']),
    [oldest],
  );
  assert.deepEqual(
    reaped.map(({ subject }) => subject),
    [`file ${aborted}`],
  );
  const files = await readdir(pool);
  for (const name of [newest, former, running]) assert.ok(files.includes(name), name);
  for (const name of [oldest, aborted]) assert.ok(!files.includes(name), name);

  assert.match(await readFile(join(home, 'clouds.yaml'), 'utf8'), /password: correct-horse/);
  assert.equal((await stat(join(home, 'clouds.yaml'))).mode & 0o777, 0o600);
  assert.ok(!output.includes('correct-horse'));
  assert.deepEqual(
    (await readdir(home)).filter((name) => name.startsWith('ansible.')),
    [],
  );

  const example = load(await readFile(join(ZUUL_JOBS, 'nodepool/zuul-deletes-images.yaml'), 'utf8')) as {
    readonly providers: readonly [object];
  };
  const config = join(directory, 'nodepool.yaml');
  const providers = [{ ...example.providers[0], type: 'directory', directory: 'pool' }];
  await writeFile(config, JSON.stringify({ ...example, providers }));
  const [, explain = ''] = /^nodepool-builder (.* --explain)$/m.exec(await readPage('docs/zuul.md')) ?? [];
  const latest = await runCommand(...explain.replace('nodepool.yaml', config).split(' '));
  assert.equal(latest.stdout, `${newest}\n`);
  assert.match(latest.stderr, new RegExp(`^${former} .*\\s+reason: not chosen: it was built`, 'm'));
});

/** Parts of the example's `nodepool.yaml` that the test reads. */
interface Example {
  readonly 'zuul-images': readonly [
    { readonly project: string; readonly pipelines: readonly [string]; readonly job: string },
  ];
  readonly providers: readonly [object];
}

/** Returns the job's result for each provider. */
interface Returned {
  readonly reaped_images: readonly [readonly Record<string, string>[]];
  readonly uploaded_images: readonly [Record<string, string>];
  readonly pruned_images: readonly [readonly Record<string, string>[]];
}
