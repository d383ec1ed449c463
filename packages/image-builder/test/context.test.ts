import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import type { FullBuildContext } from '../src/context.ts';
import type { BuildJob, DiskImage } from '../src/index.ts';
import { makeImage, ScriptedBuilder } from './scripted-builder.ts';

/** Builds an image, and passes the context to `look` during the build. */
async function build(
  t: TestContext,
  look: (context: FullBuildContext, fixture: RepositoryFixture) => Promise<void>,
  job: Partial<BuildJob> = {},
  diskimage: Partial<DiskImage> = {},
): Promise<RepositoryFixture> {
  const fixture = await RepositoryFixture.open(t);
  const builder = new ScriptedBuilder(async (context) => {
    await look(context, fixture);
    await makeImage(context);
  }, diskimage);
  await builder.build({ imageId: 'debian-1', repository: fixture.repository, ...job });
  return fixture;
}

/** Returns the output of a command that a builder runs. */
async function outputOf(
  run: FullBuildContext['run'],
  ...args: Parameters<FullBuildContext['run']>
): Promise<string[]> {
  const [command, arguments_, options] = args;
  const lines: string[] = [];
  await run(command, arguments_, { ...options, onLine: (line) => lines.push(line) });
  return lines;
}

test('the build context names the image and its formats', async (t) => {
  await build(
    t,
    async ({ imageId, diskimage, formats }) => {
      assert.deepEqual(
        { imageId, name: diskimage.name, formats },
        { imageId: 'debian-1', name: 'debian', formats: ['qcow2'] },
      );
      assert.equal(diskimage.options?.tree, '/srv');
    },
    {},
    { formats: [], options: { tree: '/srv' } },
  );
});

test('the build directory is on the file system of the images, and is removed', async (t) => {
  let path = '';
  await build(t, async ({ directory, outputPath }, fixture) => {
    path = directory;
    assert.equal(dirname(directory), await realpath(fixture.path('.nodepool-builder/staging')));
    assert.equal(outputPath('raw'), join(directory, 'debian-1.raw'));
    assert.equal(outputPath('squashfs'), join(directory, 'debian-1.squash'));
  });
  assert.ok(!existsSync(path));
});

test('a build’s command runs in the build directory, or in the given one', async (t) => {
  await build(t, async ({ run, directory }, { outside }) => {
    assert.deepEqual(await outputOf(run, 'pwd'), [directory]);
    assert.deepEqual(await outputOf(run, 'pwd', [], { cwd: outside }), [outside]);
  });
});

test('a build’s command has the job’s environment, its own variables, temporary directories and the build’s marker', async (t) => {
  const environment = { PATH: process.env.PATH, ONE: '1', TWO: '2' };
  await build(
    t,
    async ({ run, directory }) => {
      const variables = await outputOf(run, 'env', [], { env: { TWO: 'II' } });
      assert.deepEqual(variables.toSorted(), [
        `NODEPOOL_BUILD_DIRECTORY=${directory}`,
        'ONE=1',
        `PATH=${process.env.PATH}`,
        `TMPDIR=${directory}/tmp`,
        `TMP_DIR=${directory}/tmp`,
        'TWO=II',
      ]);
    },
    { environment },
  );
});

test('a build’s default environment is the process’s own', async (t) => {
  await build(t, async ({ environment }) => assert.equal(environment.PATH, process.env.PATH));
});

test('a failed build’s state directory is kept for the next one, until an image is published', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const found: string[][] = [];
  let isGood = false;
  const builder = new ScriptedBuilder(async (context) => {
    const directory = await context.stateDirectory();
    assert.equal(await context.stateDirectory(), directory);
    found.push(await readdir(directory));
    await writeFile(join(directory, 'begun'), 'content');
    if (isGood) await makeImage(context);
  });
  await assert.rejects(builder.build({ imageId: 'debian-1', repository }));
  isGood = true;
  await builder.build({ imageId: 'debian-2', repository });
  await builder.build({ imageId: 'debian-3', repository });
  assert.deepEqual(found, [[], ['begun'], []]);
});
