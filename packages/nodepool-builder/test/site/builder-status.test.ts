// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, JobServer } from '@nodepool-builder/gearman-node';
import { DIRECTORY_MODULE, type ProviderModule, type UploadResult } from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '../../../../test/doubles/fake-image-provider.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { Modules } from '../../src/configuration/modules.ts';
import { NodepoolBuilder } from '../../src/daemon/nodepool-builder.ts';
import { readSite } from '../../src/site/builder-status.ts';

test('a client reads a builder’s status: its images, its disk, and its running jobs’ progress', async (t) => {
  const directory = temporaryDirectory(t);
  await mkdir(join(directory, 'images'));
  await writeFile(join(directory, 'images/1.raw'), 'an image');
  const jobServers = [new JobServer(), new JobServer()];
  const servers = await Promise.all(jobServers.map((server) => server.listen(0)));
  t.after(() => Promise.all(jobServers.map((server) => server.close())));
  const uploaded = Promise.withResolvers<void>();
  class WaitingProvider extends FakeImageProvider {
    override async upload(...args: Parameters<FakeImageProvider['upload']>): Promise<UploadResult> {
      args[1]?.onProgress?.({ done: 25, total: 100 });
      await uploaded.promise;
      return await super.upload(...args);
    }
  }
  const module: ProviderModule = {
    ...DIRECTORY_MODULE,
    type: 'waiting',
    images: { open: ({ name }) => new WaitingProvider({ name }) },
  };
  const modules = Modules.builtIn.with([module]);
  const file = join(directory, 'nodepool.yaml');
  await writeFile(
    file,
    JSON.stringify({
      'images-dir': 'images',
      'gearman-servers': servers.map(({ host, port }) => ({ host, port })),
      providers: [
        {
          name: 'cloud',
          type: 'waiting',
          directory: 'pool',
          'image-type': 'raw',
          images: [{ name: 'debian' }],
        },
      ],
    }),
  );
  const { configuration } = await loadConfiguration(file, { modules });
  const builder = await NodepoolBuilder.start({
    configuration,
    modules,
    logger: () => new RecordingLogger(),
  });
  t.after(() => builder.close());
  const client = new Client({ servers });
  t.after(() => client.close());
  const upload = client.submit('image-upload:1', '{"provider": "cloud", "image-name": "debian"}', {
    unique: 'u',
  });
  for await (const event of upload) if (event.type === 'status' && event.numerator === 25) break;
  const {
    builders: [status, ...others],
  } = await readSite(servers);
  assert.deepEqual(others, [], 'a builder at two job servers is one builder');
  const { jobs, 'disk-free': free, 'disk-size': size, ...rest } = status ?? assert.fail('no reply');
  assert.equal(rest.host, hostname());
  assert.equal(rest.pid, process.pid);
  assert.equal(rest['images-dir'], builder.repository.directory);
  assert.equal(rest.images, 1);
  assert.ok(free > 0 && free < size);
  const [running, ...more] = jobs;
  const { started, handle, ...job } = running ?? assert.fail('no job');
  assert.deepEqual(more, []);
  assert.ok(Date.now() - Date.parse(started) < 60_000);
  assert.equal(handle, await upload.handle);
  assert.deepEqual(job, {
    kind: 'upload',
    'image-id': '1',
    provider: 'cloud',
    'image-name': 'debian',
    'upload-id': 'u',
    percent: 25,
  });
  uploaded.resolve();
  await upload;
  const {
    builders: [after],
  } = await readSite(servers);
  assert.deepEqual(after?.jobs, []);
});

test('a job server without a builder has no builder status', async (t) => {
  const server = new JobServer();
  const address = await server.listen(0);
  t.after(() => server.close());
  assert.deepEqual((await readSite([address])).builders, []);
});
