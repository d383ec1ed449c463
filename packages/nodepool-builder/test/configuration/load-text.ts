import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

/** Directory of the configuration file, the working directory and the home. */
export let directory: string;
/** The configuration file. */
export let file: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'configuration-'));
  file = join(directory, 'nodepool.yaml');
});
after(() => rm(directory, { recursive: true }));

/** Loads a configuration file with this text. */
export async function load(text: string): ReturnType<typeof loadConfiguration> {
  await writeFile(file, text);
  return await loadConfiguration(file, { place: { env: CLOUD, cwd: directory, home: directory } });
}

/** The environment's cloud, which each provider without its own cloud uses. */
export const CLOUD = {
  OS_AUTH_URL: 'https://keystone.example.org/v3',
  OS_USERNAME: 'nodepool',
  OS_PASSWORD: 'hunter3',
  OS_PROJECT_NAME: 'ci',
};

/** Returns each diagnostic of a rejected file, without the path of the file. */
export async function diagnosticsOf(text: string): Promise<string[]> {
  const error = await load(text).then(
    () => assert.fail('the configuration was accepted'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConfigurationError, String(error));
  return error.diagnostics.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic));
}
