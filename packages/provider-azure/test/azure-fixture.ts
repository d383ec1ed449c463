import { after, type TestContext } from 'node:test';
import type { ArmDoubleOptions } from '../../../test/doubles/azure/arm-cloud.ts';
import { ArmDouble } from '../../../test/doubles/azure/arm-double.ts';
import { Azurite } from '../../../test/doubles/azure/azurite.ts';
import { AzureProvider, type AzureProviderOptions } from '../src/azure-provider.ts';

let running: Promise<Azurite> | undefined;

/** The Azurite of a test file. It ends with its tests. */
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

/** A provider with the double's tokens. */
export function openProvider(
  double: Pick<ArmDouble, 'endpoint' | 'subscription' | 'issueToken'>,
  options: Partial<AzureProviderOptions> = {},
): AzureProvider {
  const { endpoint, subscription } = double;
  const credential = { getToken: () => Promise.resolve(double.issueToken()) };
  return new AzureProvider({
    name: 'azure',
    formats: ['raw'],
    location: 'westeurope',
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    account: () =>
      Promise.resolve({
        subscription,
        resourceGroup: 'images',
        endpoint,
        credential: () => Promise.resolve(credential),
      }),
    pollInterval: 0.01,
    ...options,
  });
}
