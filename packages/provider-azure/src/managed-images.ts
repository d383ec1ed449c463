import type { Image } from '@azure/arm-compute';
import { unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { AzureSession } from './azure-session.ts';
import type { AzureEntry } from './azure-settings.ts';
import {
  type ImagePlan,
  type ImageStore,
  imageNameOf,
  parseId,
  type SourceDisk,
  type StoredImage,
} from './stored-image.ts';

/** Managed images of a resource group. Each name contains a digest of the upload id. */
export class ManagedImages implements ImageStore {
  readonly #session: AzureSession;
  readonly #entry: AzureEntry;

  constructor(session: AzureSession, entry: AzureEntry) {
    this.#session = session;
    this.#entry = entry;
  }

  idOf(plan: ImagePlan): string {
    return `${this.#session.scope()}/images/${imageNameOf(plan)}`;
  }

  async find(plan: ImagePlan, signal: AbortSignal): Promise<StoredImage | undefined> {
    return await this.get(this.idOf(plan), signal);
  }

  async prepare(): Promise<void> {}

  async create(plan: ImagePlan, disk: SourceDisk, signal: AbortSignal): Promise<string> {
    const { location, 'hyper-v-generation': hyperVGeneration } = this.#entry;
    const name = imageNameOf(plan);
    const image: Image = {
      location,
      tags: { ...plan.tags },
      hyperVGeneration,
      storageProfile: {
        osDisk: {
          osType: plan.osType,
          osState: 'Generalized',
          managedDisk: { id: disk.id },
          storageAccountType: this.#entry['azure-disk-type'],
        },
        zoneResilient: this.#entry['zone-resilient'],
      },
    };
    const { resourceGroup } = this.#session.account;
    const created = this.#session.change(`creation of image ${name}`, signal, ({ images }, options) =>
      images.createOrUpdate(resourceGroup, name, image, options),
    );
    return (await created).id ?? this.idOf(plan);
  }

  async get(id: string, signal: AbortSignal): Promise<StoredImage | undefined> {
    const place = placeOf(id);
    if (place === undefined) return undefined;
    const found = await this.#session
      .call(`query of image ${place.name}`, signal, ({ images }, options) =>
        images.get(place.resourceGroup, place.name, options),
      )
      .catch(unlessAbsent);
    return found && stored(found);
  }

  async list(
    signal: AbortSignal,
    resourceGroup: string = this.#session.account.resourceGroup,
  ): Promise<StoredImage[]> {
    const found = await this.#session.list('list of images', signal, ({ images }, options) =>
      images.listByResourceGroup(resourceGroup, options),
    );
    return found.map(stored);
  }

  async delete(id: string, signal: AbortSignal): Promise<void> {
    const place = placeOf(id);
    if (place === undefined) return;
    const deletion = this.#session.change(`deletion of image ${place.name}`, signal, ({ images }, options) =>
      images.delete(place.resourceGroup, place.name, options),
    );
    await deletion.catch(unlessAbsent);
  }
}

function placeOf(id: string): { resourceGroup: string; name: string } | undefined {
  const { resourceGroup = '', path = [] } = parseId(id) ?? {};
  const [type, name = '', ...rest] = path;
  return type?.toLowerCase() === 'images' && rest.length === 0 && name !== ''
    ? { resourceGroup, name }
    : undefined;
}

function stored(image: Image): StoredImage {
  const { id = '', name = '', location, tags = {}, provisioningState: state = '' } = image;
  const resourceGroup = parseId(id)?.resourceGroup.toLowerCase() ?? '';
  return { id, name, location, resourceGroup, state, tags };
}
