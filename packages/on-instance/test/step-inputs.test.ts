import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import type { OnInstance } from '../src/index.ts';
import { configurationDigest } from '../src/step-inputs.ts';
import { onInstanceOf } from './on-instance-site.ts';

test('the configuration digest changes with steps, scripts and variables, but not with timeouts', async (t) => {
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
    configurationDigest(
      { ...onInstanceOf('base'), ...settings },
      { environment, diskimage: { name: 'custom', formats: [], scriptDir, envVars } },
      '/opt/nodepool-scripts',
    );
  const first = await recipe();
  assert.equal(
    await recipe({ 'boot-timeout': 1, 'stop-timeout': 1, 'keep-on-failure': 1 }, { HOME: '/' }),
    first,
  );
  const others = [
    await recipe({ steps: ['true'] }),
    await recipe({}, { NODEPOOL_KEY: 'AAAA' }),
    await recipe({}, {}, { A: 'C' }),
  ];
  await writeFile(script, 'two');
  others.push(await recipe());
  assert.equal(new Set([first, ...others]).size, 5);
});
