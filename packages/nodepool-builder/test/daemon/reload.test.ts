// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client, JobServer } from '@nodepool-builder/gearman-node';
import {
  BaseImageBuilder,
  type BuildContext,
  DIRECTORY_MODULE,
  type DiskImage,
  type ProviderModule,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '../../../../test/doubles/fake-image-provider.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { Modules } from '../../src/configuration/modules.ts';
import { NodepoolBuilder } from '../../src/daemon/nodepool-builder.ts';

test('a reload closes a removed provider once the last job that uses it has ended', async (t) => {
  const directory = temporaryDirectory(t);
  await mkdir(join(directory, 'images'));
  await writeFile(join(directory, 'images/1.raw'), 'an image');
  const jobServer = new JobServer();
  const { host, port } = await jobServer.listen(0);
  t.after(() => jobServer.close());
  const events: string[] = [];
  const emitter = new EventTarget();
  const report = (event: string): void => {
    events.push(event);
    emitter.dispatchEvent(new Event(event));
  };
  const uploaded = Promise.withResolvers<void>();
  class WaitingProvider extends FakeImageProvider implements Disposable {
    override async upload(...args: Parameters<FakeImageProvider['upload']>): Promise<UploadResult> {
      report('begin');
      await uploaded.promise;
      report('end');
      return await super.upload(...args);
    }

    override close(): void {
      report('close');
    }
  }
  const module: ProviderModule = {
    ...DIRECTORY_MODULE,
    type: 'waiting',
    images: { open: ({ name }) => new WaitingProvider({ name }) },
  };
  const modules = Modules.builtIn.with([module]);
  const configure = async (providers: string) => {
    const file = join(directory, 'nodepool.yaml');
    await writeFile(
      file,
      `{images-dir: images, gearman-servers: [{host: ${host}, port: ${port}}], providers: [${providers}]}`,
    );
    return (await loadConfiguration(file, { modules })).configuration;
  };
  const configuration = await configure(
    '{name: gone, type: waiting, directory: pool, image-type: raw, images: [{name: debian}]}',
  );
  const builder = await NodepoolBuilder.start({
    configuration,
    modules,
    logger: () => new RecordingLogger(),
  });
  t.after(() => builder.close());
  const client = new Client({ servers: [{ host, port }] });
  t.after(() => client.close());

  const begun = once(emitter, 'begin');
  const outcome = client.submit('image-upload:1', '{"provider": "gone", "image-name": "debian"}');
  await begun;
  builder.reload(await configure(''));
  const closed = once(emitter, 'close');
  uploaded.resolve();
  assert.match(String(await outcome), /external-id/);
  await closed;
  await builder.close();
  assert.deepEqual(events, ['begin', 'end', 'close']);
});

test('a reload changes nothing if a builder cannot be created', async (t) => {
  const directory = temporaryDirectory(t);
  await mkdir(join(directory, 'images'));
  const jobServer = new JobServer();
  const { host, port } = await jobServer.listen(0);
  t.after(() => jobServer.close());
  class PickyBuilder extends BaseImageBuilder {
    constructor(diskimage: DiskImage) {
      super(diskimage);
      if (diskimage.name === 'ubuntu') throw new Error('ubuntu cannot be built');
    }

    protected override async createImage({ outputPath }: BuildContext): Promise<void> {
      await writeFile(outputPath('raw'), 'content');
    }
  }
  const modules = Modules.builtIn.withBuilders({ picky: PickyBuilder });
  const configure = async (name: string, logs: string) => {
    const file = join(directory, 'nodepool.yaml');
    await writeFile(
      file,
      `{images-dir: images, build-log-dir: ${logs}, gearman-servers: [{host: ${host}, port: ${port}}],
        diskimages: [{name: debian, builder: picky, formats: [raw]}, {name: ${name}, builder: picky}], providers: []}`,
    );
    return (await loadConfiguration(file, { modules })).configuration;
  };
  const builder = await NodepoolBuilder.start({
    configuration: await configure('fedora', 'logs'),
    modules,
    logger: () => new RecordingLogger(),
  });
  t.after(() => builder.close());
  const changed = await configure('ubuntu', 'other-logs');
  assert.throws(() => builder.reload(changed), /ubuntu cannot be built/);
  const client = new Client({ servers: [{ host, port }] });
  t.after(() => client.close());
  await client.submit('image-build:debian', '{"image-id": "1"}');
  assert.deepEqual(await readdir(join(directory, 'logs')), ['1.log']);
});
