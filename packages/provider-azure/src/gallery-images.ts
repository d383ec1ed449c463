import type { GalleryImage, GalleryImageVersion } from '@azure/arm-compute';
import { unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { AzureSession } from './azure-session.ts';
import type { AzureEntry } from './azure-settings.ts';
import {
  type ImagePlan,
  type ImageStore,
  isOf,
  parseId,
  type SourceDisk,
  type StoredImage,
} from './stored-image.ts';

interface Place {
  readonly resourceGroup: string;
  readonly gallery: string;
  readonly definition: string;
  readonly version: string;
}

/** Versions of image definitions in a gallery. Each name under `providers[].images` has its own definition. */
export class GalleryImages implements ImageStore {
  readonly #session: AzureSession;
  readonly #entry: AzureEntry;

  constructor(session: AzureSession, entry: AzureEntry) {
    this.#session = session;
    this.#entry = entry;
  }

  idOf(plan: ImagePlan, disk?: SourceDisk): string | undefined {
    const time = plan.request.builtAt ?? disk?.createdAt;
    return time && this.#id(plan, versionOf(plan, time));
  }

  async find(plan: ImagePlan, signal: AbortSignal, disk?: SourceDisk): Promise<StoredImage | undefined> {
    const { uploadId } = plan.request;
    const isOurs = (image: StoredImage | undefined): image is StoredImage =>
      image !== undefined && isOf(image, this.#session.name, uploadId);
    const id = this.idOf(plan, disk);
    const first = id && (await this.get(id, signal));
    if (first && isOurs(first)) return first;
    const versions = await this.#versions(definitionOf(plan), signal).catch(unlessAbsent);
    return versions?.find(isOurs);
  }

  async create(plan: ImagePlan, disk: SourceDisk, signal: AbortSignal): Promise<string> {
    const { location, 'target-regions': further = [], 'gallery-replicas': replicas } = this.#entry;
    const { 'azure-disk-type': diskType, 'zone-resilient': isZoneResilient } = this.#entry;
    const standard = isZoneResilient ? 'Standard_ZRS' : 'Standard_LRS';
    const version: GalleryImageVersion = {
      location,
      tags: { ...plan.tags },
      publishingProfile: {
        targetRegions: [...new Set([location, ...further])].map((name) => ({
          name,
          regionalReplicaCount: replicas,
          storageAccountType: diskType === 'Premium_LRS' ? diskType : standard,
        })),
      },
      storageProfile: { osDiskImage: { source: { id: disk.id } } },
      safetyProfile: { allowDeletionOfReplicatedLocations: true },
    };
    const name = await this.#freeVersion(plan, disk, signal);
    const definition = definitionOf(plan);
    const { resourceGroup } = this.#session.account;
    const created = await this.#session.change(
      `creation of version ${definition} ${name}`,
      signal,
      ({ galleryImageVersions: versions }, options) =>
        versions.createOrUpdate(resourceGroup, this.#gallery, definition, name, version, options),
    );
    return created.id ?? this.#id(plan, name);
  }

  async get(id: string, signal: AbortSignal): Promise<StoredImage | undefined> {
    const place = placeOf(id);
    if (place === undefined) return undefined;
    const { resourceGroup, gallery, definition, version } = place;
    const found = await this.#session
      .call(`query of version ${definition} ${version}`, signal, ({ galleryImageVersions }, options) =>
        galleryImageVersions.get(resourceGroup, gallery, definition, version, options),
      )
      .catch(unlessAbsent);
    return found && stored(found);
  }

  async list(
    signal: AbortSignal,
    group: string = this.#session.account.resourceGroup,
  ): Promise<StoredImage[]> {
    const definitions = await this.#session.list(
      'list of image definitions',
      signal,
      ({ galleryImages }, options) => galleryImages.listByGallery(group, this.#gallery, options),
    );
    const found: StoredImage[] = [];
    for (const { name = '', architecture } of definitions) {
      const versions = (await this.#versions(name, signal, group).catch(unlessAbsent)) ?? [];
      found.push(...versions.map((version) => ({ ...version, architecture })));
    }
    return found;
  }

  async delete(id: string, signal: AbortSignal): Promise<void> {
    const place = placeOf(id);
    if (place === undefined) return;
    const { resourceGroup, gallery, definition, version } = place;
    const deletion = this.#session.change(
      `deletion of version ${definition} ${version}`,
      signal,
      ({ galleryImageVersions }, options) =>
        galleryImageVersions.delete(resourceGroup, gallery, definition, version, options),
    );
    await deletion.catch(unlessAbsent);
  }

  async #versions(
    definition: string,
    signal: AbortSignal,
    group: string = this.#session.account.resourceGroup,
  ): Promise<StoredImage[]> {
    const found = await this.#session.list('list of versions', signal, ({ galleryImageVersions }, options) =>
      galleryImageVersions.listByGalleryImage(group, this.#gallery, definition, options),
    );
    return found.map(stored);
  }

  /** Creates the image definition if it does not exist. It remains after its last version is deleted. */
  async prepare(plan: ImagePlan, signal: AbortSignal): Promise<void> {
    const { location, 'hyper-v-generation': hyperVGeneration, tags } = this.#entry;
    const { resourceGroup } = this.#session.account;
    const name = definitionOf(plan);
    const known = await this.#session
      .call(`query of image definition ${name}`, signal, ({ galleryImages }, options) =>
        galleryImages.get(resourceGroup, this.#gallery, name, options),
      )
      .catch(unlessAbsent);
    if (known !== undefined && known.provisioningState !== 'Creating') return;
    const definition: GalleryImage = {
      location,
      tags: { ...tags },
      osType: plan.osType,
      osState: 'Generalized',
      hyperVGeneration,
      ...(plan.architecture && { architecture: plan.architecture }),
      identifier: {
        publisher: 'nodepool',
        offer: this.#session.name.replaceAll(/[^A-Za-z0-9_.-]/g, '-'),
        sku: name,
      },
      description: 'Created by nodepool-builder',
    };
    await this.#session.change(`creation of image definition ${name}`, signal, ({ galleryImages }, options) =>
      galleryImages.createOrUpdate(resourceGroup, this.#gallery, name, definition, options),
    );
  }

  /** Returns the version for the upload, or the next one if another upload uses it. */
  async #freeVersion(plan: ImagePlan, { createdAt }: SourceDisk, signal: AbortSignal): Promise<string> {
    const wanted = versionOf(plan, plan.request.builtAt ?? createdAt);
    const [major, minor, patch = ''] = wanted.split('.');
    for (let number = Number(patch); ; number++) {
      const name = `${major}.${minor}.${number}`;
      const taken = await this.get(this.#id(plan, name), signal);
      if (taken === undefined || isOf(taken, this.#session.name, plan.request.uploadId)) return name;
    }
  }

  get #gallery(): string {
    return this.#entry['gallery-name'] ?? '';
  }

  #id(plan: ImagePlan, version: string): string {
    const gallery = `${this.#session.scope()}/galleries/${this.#gallery}`;
    return `${gallery}/images/${definitionOf(plan)}/versions/${version}`;
  }
}

/** Returns the name of the image definition. Azure requires letters or digits at both ends. */
function definitionOf({ request }: ImagePlan): string {
  const name = request.imageName.replaceAll(/[^A-Za-z0-9_.-]/g, '-').slice(0, 80);
  return /[A-Za-z0-9](?:.*[A-Za-z0-9])?/.exec(name)?.[0] ?? 'image';
}

/**
 * Computes the version of an upload. A newer build gets a higher version, because a machine without a version gets the
 * highest one. The patch number is the second of the day and four digits from the upload's key.
 */
function versionOf({ key }: ImagePlan, builtAt: Date): string {
  const [year, month, day] = [builtAt.getUTCFullYear(), builtAt.getUTCMonth() + 1, builtAt.getUTCDate()];
  const midnight = Date.UTC(year, month - 1, day);
  const second = Math.floor((builtAt.getTime() - midnight) / 1000);
  return `${year}.${month * 100 + day}.${second * 10_000 + (Number.parseInt(key.slice(0, 8), 16) % 10_000)}`;
}

function placeOf(id: string): Place | undefined {
  const { resourceGroup = '', path = [] } = parseId(id) ?? {};
  const [galleries, gallery = '', images, definition = '', versions, version = '', ...rest] = path;
  const types = [galleries, images, versions].join('/').toLowerCase();
  if (types !== 'galleries/images/versions' || version === '' || rest.length > 0) return undefined;
  return { resourceGroup, gallery, definition, version };
}

function stored(version: GalleryImageVersion): StoredImage {
  const { id = '', location, tags = {}, provisioningState: state = '', publishingProfile } = version;
  const place = placeOf(id);
  const { gallery = '', definition = '', version: number = '' } = place ?? {};
  const resourceGroup = place?.resourceGroup.toLowerCase() ?? '';
  const { excludeFromLatest = false, endOfLifeDate } = publishingProfile ?? {};
  return {
    id,
    properties: { gallery, definition, version: number },
    name: undefined,
    location,
    resourceGroup,
    state,
    tags,
    createdAt: publishingProfile?.publishedDate,
    isRetired: excludeFromLatest || (endOfLifeDate !== undefined && endOfLifeDate.getTime() <= Date.now()),
  };
}
