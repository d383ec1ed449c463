// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { JobServer } from '@nodepool-builder/gearman-node';
import {
  BaseImageBuilder,
  type BuilderServices,
  type DiskImage,
  ImageRepository,
} from '@nodepool-builder/image-builder';
import { InstanceRecords, QemuInstanceProvider } from '@nodepool-builder/on-instance';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { Modules } from '../../src/configuration/modules.ts';
import type { NodepoolBuilderOptions } from '../../src/daemon/builder-parts.ts';
import { NodepoolBuilder } from '../../src/daemon/nodepool-builder.ts';

interface Made {
  readonly services: BuilderServices;
}

/** Makes a site for one test, and a function that starts a builder there, which gets no build jobs. */
async function openSite(t: TestContext): Promise<{
  images: string;
  made: Made[];
  start: (options?: Partial<NodepoolBuilderOptions>) => Promise<NodepoolBuilder>;
}> {
  const directory = await mkdtemp(join(tmpdir(), 'on-instance-builds-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const images = join(directory, 'images');
  await mkdir(images);
  const jobServer = new JobServer();
  const { port } = await jobServer.listen(0);
  undoAfter(t, () => jobServer.close());
  const config = join(directory, 'nodepool.yaml');
  await writeFile(
    config,
    `images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${port}}]
diskimages:
  - {name: a, builder: on-instance, on-instance: {base-image: a.raw, steps: [x]}}
  - {name: b, builder: on-instance, on-instance: {base-image: b.raw, steps: [x], keep-on-failure: 60}}
providers: []
`,
  );
  const made: Made[] = [];
  class UnusedBuilder extends BaseImageBuilder {
    constructor(diskimage: DiskImage, _settings: unknown, services: BuilderServices) {
      super(diskimage);
      made.push({ services });
    }

    protected override createImage(): Promise<void> {
      return Promise.reject(new Error('it must not be requested'));
    }
  }
  const { configuration } = await loadConfiguration(config);
  const logger = new RecordingLogger();
  const modules = Modules.builtIn.withBuilders({ 'on-instance': UnusedBuilder });
  const start = async (options: Partial<NodepoolBuilderOptions> = {}): Promise<NodepoolBuilder> => {
    const builder = await NodepoolBuilder.start({
      configuration,
      modules,
      logger: () => logger,
      ...options,
    });
    undoAfter(t, () => builder.close());
    return builder;
  };
  return { images, made, start };
}

describe('a daemon that builds images on instances', () => {
  it('a daemon gives its builders the instance providers, including the local QEMU', async (t) => {
    const { made, start } = await openSite(t);
    await start();
    const [a, b] = made;
    const provider = a?.services.instanceProvider('qemu');
    assert.ok(provider instanceof QemuInstanceProvider);
    assert.equal(b?.services.instanceProvider('qemu'), provider);
  });

  for (const keepOnFailure of [undefined, 3600]) {
    it(`a daemon gives its builders the time from --keep-on-failure: ${keepOnFailure}`, async (t) => {
      const { made, start } = await openSite(t);
      await start({ keepOnFailure });
      assert.deepEqual(
        made.map(({ services }) => services.keepOnFailure),
        [keepOnFailure, keepOnFailure],
      );
    });
  }

  it('a daemon deletes the instances that a dead daemon left', async (t) => {
    const { images, start } = await openSite(t);
    const dead = await ImageRepository.open(images);
    const claim = await new InstanceRecords(dead).claim('1', new AbortController().signal);
    await claim.write({
      provider: 'qemu',
      phase: 'running',
      stepsDone: 0,
      afterRestart: 'destroy',
      recipe: '',
    });
    claim.release();
    await dead.close();
    const { repository } = await start();
    await waitUntil(
      'an empty ledger',
      async () => (await new InstanceRecords(repository).imageIds()).length === 0,
    );
  });
});
