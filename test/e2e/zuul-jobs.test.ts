import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { load } from 'js-yaml';
import { freePort } from '../../scripts/free-port.ts';
import { runZuulJob, ZUUL_JOBS } from '../fixtures/ansible-playbook.ts';
import { startBuilder } from '../fixtures/builder-process.ts';
import { startNginx } from '../fixtures/nginx.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import type { ArtifactRow } from '../fixtures/zuul/build-row.ts';
import { ZuulDouble } from '../fixtures/zuul/zuul-double.ts';
import { readZuulJob } from '../fixtures/zuul-job.ts';

/** Of the build. */
const UUID = '0123456789abcdef0123456789abcdef';

/** Where the jobs build. The one that comes second finds the image of the other, and does not build it again. */
let imageRoot: string;
before(async () => {
  imageRoot = await mkdtemp(join(tmpdir(), 'dib-images-'));
});
after(() => rm(imageRoot, { recursive: true, force: true }));

/** Has a job build a tiny image in place of a real one. */
function tinyImage(): Readonly<Record<string, unknown>> {
  return {
    build_diskimage_elements: ['mini-os'],
    build_diskimage_elements_path: [join(import.meta.dirname, '../elements')],
    build_diskimage_formats: ['qcow2', 'raw'],
    build_diskimage_image_root: imageRoot,
    build_diskimage_environment: {
      DIB_NO_TMPFS: '1',
      TMP_DIR: imageRoot,
      DIB_IMAGE_CACHE: join(imageRoot, 'cache'),
      DIB_LOCKFILES: join(imageRoot, 'locks'),
    },
  };
}

async function createDirectory(t: TestContext, ...names: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'zuul-jobs-'));
  undoAfter(t, () => rm(directory, { recursive: true, force: true }));
  await Promise.all(names.map((name) => mkdir(join(directory, name))));
  return directory;
}

test('Nodepool deletes images: what the job publishes is imported, and uploaded', async (t) => {
  const directory = await createDirectory(t, 'home', 'images', 'pool');
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
  const returned = await runZuulJob({ playbooks, variables, home: join(directory, 'home') });
  const { artifacts } = returned.zuul as { artifacts: readonly ArtifactRow[] };
  const image = await readFile(join(imageRoot, 'debian.qcow2'));
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
  const [provider] = example.providers;
  const { project, pipelines, job } = zuulImage;
  const logUrl = `${nginx.url}/`;
  // as Zuul does it when it takes them in
  const joined = artifacts.map((artifact) => ({ ...artifact, url: new URL(artifact.url, logUrl).href }));
  zuul.table().add(joined, { uuid: UUID, project, pipeline: pipelines[0], job }, { logUrl });

  const config = join(directory, 'nodepool.yaml');
  const settings = {
    ...example,
    'images-dir': 'images',
    'gearman-servers': [{ host: '127.0.0.1', port: await freePort() }],
    'zuul-images': [{ ...zuulImage, 'api-url': zuul.url }],
    // raw: so that the image is unpacked
    providers: [{ ...provider, type: 'directory', directory: 'pool', 'image-type': 'raw' }],
  };
  await writeFile(config, JSON.stringify(settings));
  const builder = await startBuilder(config, '--all-in-one');
  undoAfter(t, () => builder.end('SIGTERM'));
  const pool = join(directory, 'pool');
  const upload = await waitUntil('the upload', async () =>
    (await readdir(pool)).find((name) => name.endsWith(`${UUID}.raw`)),
  );
  assert.ok((await readFile(join(pool, upload))).equals(await readFile(join(imageRoot, 'debian.raw'))));
});

/** What the test looks at of the example's `nodepool.yaml`. */
interface Example {
  readonly 'zuul-images': readonly [
    { readonly project: string; readonly pipelines: readonly [string]; readonly job: string },
  ];
  readonly providers: readonly [object];
}
