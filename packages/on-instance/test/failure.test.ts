import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ImageError, type Instance } from '@nodepool-builder/image-builder';
import type { FullBuildContext } from '@nodepool-builder/image-builder/internal';
import { explainedError } from '../src/failure.ts';

test('a screenshot next to the build log has the extension of its image type', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'failure-'));
  t.after(() => rm(directory, { recursive: true }));
  const buildLog = {
    path: join(directory, '1.log'),
    name: '"nodepool-builder logs 1"',
    write: async () => {},
    mask: (text: string) => text,
  } as unknown as FullBuildContext['buildLog'];
  const instance = {
    consoleLog: async () => '',
    screenshot: (path: string) => writeFile(path, 'a display'),
  } as unknown as Instance;
  const error = new ImageError('command-failed', 'step "false" ended with exit code 1');
  const explain = async (type?: 'jpg'): Promise<unknown> => {
    const machine = type === undefined ? instance : { ...instance, screenshotType: type };
    return await explainedError(error, machine, { buildLog }, undefined);
  };
  assert.match(String(await explain()), /its display is in .*\/1\.png; see "nodepool-builder logs 1"$/);
  assert.match(String(await explain('jpg')), /its display is in .*\/1\.jpg; see/);
  assert.deepEqual((await readdir(directory)).toSorted(), ['1.jpg', '1.png']);
});
