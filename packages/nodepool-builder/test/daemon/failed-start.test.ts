// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Admin, JobServer } from '@nodepool-builder/gearman-node';
import { DibBuilder, ImageRepository } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { NodepoolBuilder } from '../../src/daemon/nodepool-builder.ts';
import { Modules } from '../../src/modules.ts';

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
