// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, JobServer } from '@nodepool-builder/gearman-node';
import { DirectoryProvider } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { NodepoolBuilder } from '../../src/daemon/nodepool-builder.ts';
import { uploadRecord, writeUploadRecord } from './jobs/upload-record.ts';

/** Grace period in milliseconds, long enough for a job to arrive. */
const GRACE = 500;

interface Site {
  readonly pool: string;
  readonly uploads: string;
  readonly jobServer: JobServer;
  readonly logger: RecordingLogger;
  readonly start: () => Promise<NodepoolBuilder>;
}

/** Makes a site whose builder was killed during upload `upload-1` of image 1. */
async function siteOfDeadBuilder(t: TestContext): Promise<Site> {
  const directory = temporaryDirectory(t);
  const [images, pool, config] = ['images', 'pool', 'nodepool.yaml'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await Promise.all([mkdir(images), mkdir(pool)]);
  const path = join(images, '1.raw');
  await writeFile(path, 'an image');
  const file = { format: 'raw', path, size: 8 } as const;
  const provider = new DirectoryProvider({ name: 'cloud', formats: ['raw'], directory: pool });
  await provider.upload({ uploadId: 'upload-1', imageId: '1', imageName: 'debian', file });

  const uploads = join(images, '.nodepool-builder/uploads');
  const logger = new RecordingLogger();
  await writeUploadRecord(uploads, uploadRecord({ 'image-id': '1' }));

  const jobServer = new JobServer();
  const { port } = await jobServer.listen(0);
  t.after(() => jobServer.close());
  await writeFile(
    config,
    `
images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${port}}]
providers: [{name: cloud, type: directory, directory: pool, image-type: raw, images: [{name: debian}]}]
`,
  );
  const start = async (): Promise<NodepoolBuilder> => {
    const { configuration } = await loadConfiguration(config);
    const builder = await NodepoolBuilder.start({
      configuration,
      logger: () => logger,
      uploadGracePeriod: GRACE,
    });
    t.after(() => builder.close());
    return builder;
  };
  return { pool, uploads, jobServer, logger, start };
}

it('an upload whose job does not come back is discarded', async (t) => {
  const { pool, uploads, start } = await siteOfDeadBuilder(t);
  assert.ok((await readdir(pool)).includes('debian-1.raw'));
  await start();
  while ((await readdir(uploads)).length > 0) await delay(10);
  assert.deepEqual(await readdir(pool), []);
});

it('an upload whose job comes back is resumed, and its image exists once', async (t) => {
  const { pool, uploads, jobServer, start } = await siteOfDeadBuilder(t);
  const client = new Client({ servers: [jobServer.address as { host: string; port: number }] });
  t.after(() => client.close());
  const job = client.submit('image-upload:1', '{"provider": "cloud", "image-name": "debian"}', {
    unique: 'upload-1',
  });
  const builder = await start();
  assert.equal(String(await job), '{"external-id": "debian-1.raw"}');
  while ((await readdir(uploads)).length > 0) await delay(10);
  await delay(2 * GRACE); // shows that no discard follows
  assert.deepEqual((await readdir(pool)).filter((name) => name.endsWith('.raw')).toSorted(), [
    'debian-1.raw',
    'debian-latest.raw',
  ]);
  await builder.close();
});
