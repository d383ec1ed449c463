import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import type { OnInstance } from '../src/index.ts';
import { recipeOf } from '../src/recipe.ts';
import { onInstanceOf } from './on-instance-site.ts';

test('a recipe is another if other steps, scripts or variables make the image, and no other for times', async (t) => {
  const scriptDir = await mkdtemp(join(tmpdir(), 'scripts-'));
  undoAfter(t, () => rm(scriptDir, { recursive: true }));
  await mkdir(join(scriptDir, 'lib'));
  const script = join(scriptDir, 'lib/prepare');
  await writeFile(script, 'one');
  const recipe = (
    settings: Partial<OnInstance> = {},
    environment: Record<string, string> = {},
    envVars = { A: 'B' },
  ): Promise<string> =>
    recipeOf(
      { ...onInstanceOf('base'), ...settings },
      { environment, diskimage: { name: 'custom', formats: [], scriptDir, envVars } },
    );
  const first = await recipe();
  assert.equal(await recipe({ bootTimeout: 1, stopTimeout: 1, keepOnFailure: 1 }, { HOME: '/' }), first);
  const others = [
    await recipe({ steps: [{ run: 'true' }] }),
    await recipe({}, { NODEPOOL_KEY: 'AAAA' }),
    await recipe({}, {}, { A: 'C' }),
  ];
  await writeFile(script, 'two');
  others.push(await recipe());
  assert.equal(new Set([first, ...others]).size, 5);
});
