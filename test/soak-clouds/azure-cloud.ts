import { readFile } from 'node:fs/promises';
import { IMAGE_TAGS } from '@nodepool-builder/image-builder/plugin';
import { ArmDouble, type ArmFault } from '../doubles/azure/arm-double.ts';
import { ArmError } from '../doubles/azure/arm-model.ts';
import { Azurite } from '../doubles/azure/azurite.ts';
import type { SoakCloud } from '../soak/soak-cloud.ts';

/** Errors as Azure reports them. The last ones affect accepted requests, and make their operation fail. */
const FAULTS: readonly (() => ReturnType<ArmFault>)[] = [
  () => new ArmError('TooManyRequests', 'The request is being throttled.', 429, { 'retry-after': '1' }),
  () => new ArmError('InternalServerError', 'An internal error occurred.', 500),
  () => new ArmError('ServerBusy', 'The server is busy.', 503),
  () => 'lost',
  () => ({ later: new ArmError('InternalExecutionError', 'An internal execution error occurred.', 500) }),
];

const IMAGE = 'Microsoft.Compute/images';

/** Opens the Azure Resource Manager double, with Azurite's page blobs. */
export async function azureCloud(faultRate: number): Promise<SoakCloud> {
  const azurite = await Azurite.start();
  const double = await ArmDouble.start(azurite, { lag: 1, polls: 0, relaysPages: true });
  const { operations, resources } = double.cloud;
  let faults = 0;
  double.fault = ({ name }) => {
    if (Math.random() >= faultRate) return undefined;
    faults += 1;
    // Only an operation can fail later.
    const possible = /^(?:PUT|DELETE|POST) (?!pages)/.test(name) ? FAULTS : FAULTS.slice(0, -1);
    return possible[Math.floor(Math.random() * possible.length)]?.();
  };
  return {
    entry: {
      name: 'azure',
      type: 'azure',
      endpoint: double.endpoint,
      location: 'westeurope',
      'resource-group': 'images',
      'subscription-id': double.subscription,
      'azure-credential': 'managed-identity',
      'image-type': 'raw',
    },
    environment: double.environment,
    images: async () =>
      resources
        .all()
        .filter(({ type }) => type === IMAGE)
        .map(({ id, tags = {}, properties: { provisioningState: state } }) => ({
          externalId: id,
          imageId: tags[IMAGE_TAGS.imageId] ?? '',
          flaw: state === 'Succeeded' ? undefined : String(state),
          isSame: async ({ path, size }) => {
            const content = await double.content(id);
            const rest = content.subarray(size);
            return (
              content.subarray(0, size).equals(await readFile(path)) && rest.equals(Buffer.alloc(rest.length))
            );
          },
        })),
    orphans: async () => {
      const others = resources.all().filter(({ type }) => type !== IMAGE);
      // Operations in the double advance with each poll, including a deletion that nobody waits for.
      for (const { id } of others) await operations.askFor(id);
      return others
        .filter(({ id }) => resources.find(id) !== undefined)
        .map(({ id, properties: { provisioningState: state } }) => `${id} (${String(state)}) is left`);
    },
    traffic: () => ({ requests: double.requests.length, faults }),
    close: async () => {
      await double[Symbol.asyncDispose]();
      await azurite[Symbol.asyncDispose]();
    },
  };
}
