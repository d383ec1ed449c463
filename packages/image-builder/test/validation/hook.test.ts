import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { RepositoryFixture } from '../../../../test/fixtures/repository-fixture.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import type { ImageFormat } from '../../src/index.ts';
import { makeImage, ScriptedBuilder } from '../scripted-builder.ts';

/** Builds an image with a hook that is a shell script, whose first argument comes from the configuration. */
async function build(
  { repository, outside }: RepositoryFixture,
  script: string,
  formats: readonly ImageFormat[] = ['raw'],
): Promise<string[]> {
  const path = join(outside, 'my hook');
  await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const lines: string[] = [];
  const builder = new ScriptedBuilder(makeImage, { formats, validation: { hook: [path, '--strict mode'] } });
  await builder.build({ imageId: 'debian-1', repository, onLine: (line) => lines.push(line) });
  return lines;
}

describe('a hook', () => {
  test('a validation hook gets all details of the image, and its exit code 0 publishes the image', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const variables = ['IMAGE_ID', 'DISKIMAGE', 'IMAGE_RAW', 'IMAGE_QCOW2', 'IMAGE_VHD_FIXED'];
    const script = [`printf '%s\\n' "$@"`, ...variables.map((name) => `echo "${name}=$NODEPOOL_${name}"`)];
    const lines = await build(fixture, script.join('\n'), ['qcow2', 'raw', 'vhd-fixed']);
    const directory = join(fixture.directory, '.nodepool-builder/staging/');
    const said = lines
      .slice(lines.indexOf('validating the image with its hook') + 2)
      .map((line) => line.replace(directory, '').replace(/stage-\w+/, 'stage'));
    assert.deepEqual(said, [
      '--strict mode',
      'stage/debian-1.raw',
      'IMAGE_ID=debian-1',
      'DISKIMAGE=debian',
      'IMAGE_RAW=stage/debian-1.raw',
      'IMAGE_QCOW2=stage/debian-1.qcow2',
      'IMAGE_VHD_FIXED=stage/debian-1.vhd-fixed',
    ]);
    assert.deepEqual(fixture.events, ['added debian-1']);
  });

  test('a failing validation hook prevents the publication, and its output is quoted', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const failed = build(fixture, 'echo no kernel; exit 3');
    const message =
      /image debian-1 is not published: its hook ".*my hook" ended with exit code 3, saying: no kernel; see/;
    await assert.rejects(failed, withCode('validation-failed', message));
    assert.deepEqual(fixture.events, []);
    assert.deepEqual(await readdir(fixture.directory), ['.nodepool-builder']);
  });

  test('a missing validation hook prevents the publication, and the error says what to do', async (t) => {
    const fixture = await RepositoryFixture.open(t);
    const builder = new ScriptedBuilder(makeImage, { validation: { hook: ['no-such-hook'] } });
    await assert.rejects(
      builder.build({ imageId: 'debian-1', repository: fixture.repository }),
      withCode('command-not-found', /"no-such-hook" is not installed, .*install it or correct its path/),
    );
    assert.deepEqual(fixture.events, []);
  });

  test('a validation hook does not run for an image that was not made', async (t) => {
    const { repository } = await RepositoryFixture.open(t);
    const builder = new ScriptedBuilder(() => Promise.resolve(), { validation: { hook: ['true'] } });
    const lines: string[] = [];
    const built = builder.build({ imageId: 'debian-1', repository, onLine: (line) => lines.push(line) });
    await assert.rejects(built, withCode('image-missing'));
    assert.ok(!lines.some((line) => line.includes('validating')));
  });
});
