import type { Disk } from '@azure/arm-compute';
import { readImageTags } from '@nodepool-builder/image-builder/internal';
import { cloudError, type UploadPart, unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { AzureSession } from './azure-session.ts';
import type { AzureEntry } from './azure-settings.ts';
import { FOOTER_SIZE } from './fixed-vhd.ts';
import { type ImagePlan, isOf, type SourceDisk } from './stored-image.ts';

/** Seconds for which a disk accepts pages after access was granted. */
const ACCESS_TIME = 86_400;

/** States of a disk that accepts pages. */
const OPEN_STATES: readonly string[] = ['ReadyToUpload', 'ActiveUpload'];

/** A disk that an upload uses. */
export interface UploadDisk extends SourceDisk {
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  /** `ActiveUpload`, `Unattached` and so on. */
  readonly state: string;
  /** Distinguishes the disk from a later disk of the same name. */
  readonly uniqueId: string;
  /** Size in bytes without the footer. */
  readonly size: number;
  /** Creation state: `Succeeded`, `Creating`, `Failed` and so on. */
  readonly creation: string;
}

/** Managed disks that receive the bytes of uploads. Each disk is deleted after an image was created from it. */
export class UploadDisks {
  readonly #session: AzureSession;
  readonly #entry: AzureEntry;

  constructor(session: AzureSession, entry: AzureEntry) {
    this.#session = session;
    this.#entry = entry;
  }

  async get(name: string, signal: AbortSignal): Promise<UploadDisk | undefined> {
    const { resourceGroup } = this.#session.account;
    const disk = await this.#session
      .call(`query of disk ${name}`, signal, ({ disks }, options) => disks.get(resourceGroup, name, options))
      .catch(unlessAbsent);
    return disk && uploadDisk(disk);
  }

  /** Lists the upload disks of this provider. */
  async list(signal: AbortSignal, uploadId?: string): Promise<UploadDisk[]> {
    const { resourceGroup } = this.#session.account;
    const found = await this.#session.list('list of disks', signal, ({ disks }, options) =>
      disks.listByResourceGroup(resourceGroup, options),
    );
    return found.map(uploadDisk).filter((disk) => isOf(disk, this.#session.name, uploadId));
  }

  /** Lists the disks as parts of interrupted uploads. */
  async listParts(signal: AbortSignal): Promise<UploadPart[]> {
    return (await this.list(signal)).map((disk) => ({
      uploadId: readImageTags(disk.tags)?.uploadId ?? '',
      subject: `disk ${disk.name} (${disk.state})`,
      changedAt: disk.createdAt,
      remove: async (again) => {
        const now = await this.get(disk.name, again);
        if (now?.uniqueId !== disk.uniqueId || now.state !== disk.state) return false;
        await this.delete(now, again);
        return true;
      },
    }));
  }

  /** Creates a disk that accepts pages. Idempotent. */
  async create(name: string, size: number, plan: ImagePlan, signal: AbortSignal): Promise<UploadDisk> {
    const { location, 'azure-disk-type': storage, 'hyper-v-generation': hyperVGeneration } = this.#entry;
    const { resourceGroup } = this.#session.account;
    const disk: Disk = {
      location,
      tags: { ...plan.tags },
      sku: { name: storage },
      osType: plan.osType,
      hyperVGeneration,
      ...(plan.architecture && { supportedCapabilities: { architecture: plan.architecture } }),
      creationData: { createOption: 'Upload', uploadSizeBytes: size + FOOTER_SIZE },
    };
    const created = this.#session.change(`creation of disk ${name}`, signal, ({ disks }, options) =>
      disks.createOrUpdate(resourceGroup, name, disk, options),
    );
    return uploadDisk(await created);
  }

  /** @returns the URL for the pages, which is a secret */
  async grant(name: string, signal: AbortSignal): Promise<string> {
    const { resourceGroup } = this.#session.account;
    const request = `grant of access to disk ${name}`;
    const access = { access: 'Write', durationInSeconds: ACCESS_TIME } as const;
    const { accessSAS: url } = await this.#session.change(request, signal, ({ disks }, options) =>
      disks.grantAccess(resourceGroup, name, access, options),
    );
    if (url !== undefined) return url;
    const subject = `provider ${this.#session.name}: ${request}`;
    throw cloudError('image-failed', subject, 'the response does not contain a URL');
  }

  /** Revokes access, which completes the disk. */
  async revoke(name: string, signal: AbortSignal): Promise<void> {
    const { resourceGroup } = this.#session.account;
    await this.#session.change(`revocation of access to disk ${name}`, signal, ({ disks }, options) =>
      disks.revokeAccess(resourceGroup, name, options),
    );
  }

  /** Revokes access to a disk, then deletes it. A missing disk is not an error. */
  async delete(disk: Pick<UploadDisk, 'name' | 'state'>, signal: AbortSignal): Promise<void> {
    try {
      await this.#delete(disk, signal);
    } catch (error) {
      // Azure documents no error for operations on a disk that another process is deleting.
      const isGone = await this.get(disk.name, signal).then(
        (found) => found === undefined,
        () => false,
      );
      if (!isGone) throw error;
    }
  }

  async #delete(disk: Pick<UploadDisk, 'name' | 'state'>, signal: AbortSignal): Promise<void> {
    const { resourceGroup } = this.#session.account;
    if (disk.state !== 'Unattached') await this.revoke(disk.name, signal).catch(unlessAbsent);
    const deletion = this.#session.change(`deletion of disk ${disk.name}`, signal, ({ disks }, options) =>
      disks.delete(resourceGroup, disk.name, options),
    );
    await deletion.catch(unlessAbsent);
  }
}

/** Returns whether a disk accepts pages. */
export function isOpen({ state, creation }: UploadDisk): boolean {
  return creation !== 'Failed' && OPEN_STATES.includes(state);
}

function uploadDisk(disk: Disk): UploadDisk {
  const { id = '', name = '', tags = {}, diskState: state = '', uniqueId = '', timeCreated } = disk;
  const size = (disk.creationData?.uploadSizeBytes ?? 0) - FOOTER_SIZE;
  const creation = disk.provisioningState ?? '';
  return { id, name, tags, state, uniqueId, size, creation, createdAt: timeCreated ?? new Date(0) };
}
