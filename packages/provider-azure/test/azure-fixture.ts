import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import type { ArmDoubleOptions } from '../../../test/doubles/azure/arm-cloud.ts';
import { ArmDouble } from '../../../test/doubles/azure/arm-double.ts';
import { Azurite } from '../../../test/doubles/azure/azurite.ts';
import { AzureProvider } from '../src/azure-provider.ts';
import { AZURE_SETTINGS, type AzureEntry } from '../src/azure-settings.ts';

let running: Promise<Azurite> | undefined;

/** Returns the Azurite of a test file, which ends with its tests. */
export async function azurite(): Promise<Azurite> {
  running ??= Azurite.start();
  return await running;
}

after(async () => {
  await (await running)?.[Symbol.asyncDispose]();
});

export async function startDouble(
  t: TestContext,
  options: Partial<ArmDoubleOptions> = {},
  port = 0,
): Promise<ArmDouble> {
  const double = await ArmDouble.start(await azurite(), options, port);
  t.after(() => double[Symbol.asyncDispose]());
  return double;
}

/** Returns an entry of `providers` with default settings. */
export function entryOf(settings: Partial<AzureEntry> = {}): AzureEntry {
  const required = { 'resource-group': 'images', location: 'westeurope' };
  return {
    ...readSettings(AZURE_SETTINGS, required, (path) => path),
    name: 'azure',
    images: [],
    ...settings,
  };
}

/** Opens a provider with the double's tokens. */
export function openProvider(
  double: Pick<ArmDouble, 'endpoint' | 'subscription' | 'issueToken'>,
  settings: Partial<AzureEntry> = {},
  records?: string,
): AzureProvider {
  const { endpoint, subscription } = double;
  const directory = records ?? mkdtempSync(join(tmpdir(), 'azure-records-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  const credential = { getToken: () => Promise.resolve(double.issueToken()) };
  return new AzureProvider({
    entry: entryOf(settings),
    formats: ['raw'],
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    account: () =>
      Promise.resolve({
        subscription,
        resourceGroup: 'images',
        endpoint,
        credential: () => Promise.resolve(credential),
      }),
    pollInterval: 0.01,
    directory,
  });
}
