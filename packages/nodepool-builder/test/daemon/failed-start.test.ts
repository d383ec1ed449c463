// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Admin, JobServer } from '@nodepool-builder/gearman-node';
import { type BuilderModule, DibBuilder, ImageRepository } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { Modules } from '../../src/configuration/modules.ts';
import { NodepoolBuilder } from '../../src/daemon/nodepool-builder.ts';

test('a builder that fails to start closes its connections and unlocks images-dir', async (t) => {
  const directory = temporaryDirectory(t);
  const images = join(directory, 'images');
  await mkdir(images);
  const jobServer = new JobServer();
  const { port } = await jobServer.listen(0);
  t.after(() => jobServer.close());
  await writeFile(
    join(directory, 'nodepool.yaml'),
    `
images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${port}}]
diskimages: [{name: debian, builder: of-another-program}]
`,
  );
  const { configuration } = await loadConfiguration(join(directory, 'nodepool.yaml'), {
    modules: Modules.builtIn.withBuilders({ 'of-another-program': DibBuilder }),
  });
  await assert.rejects(NodepoolBuilder.start({ configuration, logger: () => new RecordingLogger() }), {
    code: 'builder-unknown',
  });

  const admin = new Admin({ host: '127.0.0.1', port });
  assert.equal((await admin.workers()).length, 1, 'only this test is connected');
  await admin.close();
  await (await ImageRepository.open(images)).close();
});

const NO_SETTINGS = { type: 'object', properties: {} } as const;

for (const failing of ['configure', 'dispose', 'dispose at once'] as const) {
  test(`a builder closes its connections and unlocks images-dir if a plugin’s ${failing} throws`, async (t) => {
    const directory = temporaryDirectory(t);
    const images = join(directory, 'images');
    await mkdir(images);
    const jobServer = new JobServer();
    const { port } = await jobServer.listen(0);
    t.after(() => jobServer.close());
    const config = join(directory, 'nodepool.yaml');
    await writeFile(config, `{images-dir: images, gearman-servers: [{host: 127.0.0.1, port: ${port}}]}`);
    const failAt = (place: string): void => assert.notEqual(place, failing, 'the plugin is broken');
    const plugin: BuilderModule<typeof NO_SETTINGS> = {
      type: 'broken',
      settings: NO_SETTINGS,
      create: (diskimage) => new DibBuilder(diskimage),
      start: async () => ({
        configure: () => failAt('configure'),
        [Symbol.asyncDispose]: () => {
          failAt('dispose at once'); // without a promise
          return Promise.resolve('dispose').then(failAt);
        },
      }),
    };
    const modules = Modules.builtIn.with([plugin]);
    const { configuration } = await loadConfiguration(config, { modules });
    const served = NodepoolBuilder.start({ configuration, modules, logger: () => new RecordingLogger() });
    await assert.rejects(
      served.then((builder) => builder.close()),
      /the plugin is broken/,
    );

    await (await ImageRepository.open(images)).close();
    const admin = new Admin({ host: '127.0.0.1', port });
    t.after(() => admin.close());
    assert.equal((await admin.workers()).length, 1, 'only this test is connected');
  });
}
