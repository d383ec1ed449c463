import { randomUUID } from 'node:crypto';
import {
  KnownAccessLevel,
  KnownArchitecture,
  KnownDiskCreateOption,
  KnownDiskStorageAccountTypes,
  KnownHyperVGeneration,
} from '@azure/arm-compute';
import {
  type ArmCall,
  type ArmCloud,
  type ArmHandler,
  type ArmResponse,
  type StoredResource,
  visible,
} from './arm-cloud.ts';
import { ArmError, isObject, objectAt, tagsOf, textAt } from './arm-model.ts';

/** Sizes that a disk for an upload may have, in bytes: 20 MiB and 32 TiB, each with the footer. */
const SIZES = { least: 20_972_032, most: 35_183_298_347_520 } as const;

const MEBIBYTE = 1_048_576;
const GIBIBYTE = 1024 * MEBIBYTE;

/** Valid names of managed disks and images. */
export const NAME: RegExp = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$/;

export const OS_TYPES = { linux: 'Linux', windows: 'Windows' } as const;

/** Requests for disks, by method. For requests with an action, its name follows after a space. */
export const DISK_OPERATIONS: Readonly<Record<string, ArmHandler>> = {
  GET: async (cloud, { id }) => {
    await cloud.operations.askFor(id);
    return { status: 200, body: visible(cloud.resources.get(id)) };
  },
  PUT: putDisk,
  DELETE: (cloud, { id }) => {
    const state = cloud.resources.find(id)?.properties.diskState;
    if (state === 'ActiveUpload' || state === 'ActiveSAS') {
      const reason = `Disk ${id} has an outstanding shared access signature. Call EndGetAccess before deleting it.`;
      throw new ArmError('OperationNotAllowed', reason, 409);
    }
    return cloud.delete(id);
  },
  'POST beginGetAccess': beginAccess,
  'POST endGetAccess': endAccess,
};

function putDisk(cloud: ArmCloud, call: ArmCall): ArmResponse {
  const { id, name } = call;
  const body = cloud.body('disk', call);
  const location = cloud.location(body);
  const tags = tagsOf(body);
  if (!NAME.test(name)) throw new ArmError('InvalidParameter', `The disk name ${name} is invalid.`);
  const properties = objectAt(body, 'properties');
  const creation = objectAt(properties, 'creationData');
  const { uploadSizeBytes: size } = creation;
  if (textAt(creation, 'createOption', KnownDiskCreateOption) !== 'Upload') {
    throw new ArmError('NotSupported', 'The double only has disks for uploads.');
  }
  if (typeof size !== 'number' || size < SIZES.least || size > SIZES.most || (size - 512) % MEBIBYTE !== 0) {
    throw new ArmError('InvalidParameter', `The value '${String(size)}' of uploadSizeBytes is out of range.`);
  }
  if (isObject(body.sku)) textAt(body.sku, 'name', KnownDiskStorageAccountTypes);
  if (properties.osType !== undefined) textAt(properties, 'osType', OS_TYPES);
  if (properties.hyperVGeneration !== undefined)
    textAt(properties, 'hyperVGeneration', KnownHyperVGeneration);
  const { supportedCapabilities: capabilities } = properties;
  if (isObject(capabilities) && capabilities.architecture !== undefined) {
    textAt(capabilities, 'architecture', KnownArchitecture);
  }
  const known = cloud.resources.find(id);
  if (known !== undefined) {
    if (JSON.stringify(known.properties.creationData) !== JSON.stringify(creation)) {
      const reason = "Changing property 'disk.creationData' is not allowed.";
      throw new ArmError('PropertyChangeNotAllowed', reason, 409);
    }
    return { status: 200, body: visible(cloud.resources.put({ ...known, tags })) };
  }
  const disks = cloud.resources
    .all()
    .filter(({ type, location: other }) => type === DISK && other === location);
  if (disks.length >= cloud.options.diskQuota) {
    const reason = `The disk count would exceed the quota limit of ${cloud.options.diskQuota} in ${location}.`;
    throw new ArmError('OperationNotAllowed', reason, 409);
  }
  return cloud.create({
    id,
    name,
    type: DISK,
    location,
    tags,
    sku: body.sku ?? { name: 'Standard_LRS' },
    properties: {
      ...properties,
      diskState: 'ReadyToUpload',
      diskSizeBytes: size - 512,
      diskSizeGB: Math.ceil((size - 512) / GIBIBYTE),
      timeCreated: new Date().toISOString(),
      uniqueId: randomUUID(),
    },
  });
}

export const DISK = 'Microsoft.Compute/disks';

async function beginAccess(cloud: ArmCloud, call: ArmCall): Promise<ArmResponse> {
  const body = cloud.body('grantAccessData', call);
  const seconds = body.durationInSeconds;
  const access = textAt(body, 'access', KnownAccessLevel);
  if (typeof seconds !== 'number' || seconds < 1) {
    throw new ArmError('InvalidParameter', "The value of parameter 'durationInSeconds' is invalid.");
  }
  const disk = cloud.resources.get(call.id);
  const { properties } = disk;
  const states = access === 'Write' ? ['ReadyToUpload', 'ActiveUpload'] : ['Unattached', 'ActiveSAS'];
  if (!states.includes(String(properties.diskState)) || properties.provisioningState !== 'Succeeded') {
    const reason = `Access cannot be granted to disk ${call.name} in the state ${String(properties.diskState)}.`;
    throw new ArmError('OperationNotAllowed', reason, 409);
  }
  const operation = cloud.operations.start(`${call.id}/access`, async () => {
    const size = objectAt(properties, 'creationData').uploadSizeBytes as number;
    const content = disk.content ?? (await cloud.pages.create(size));
    cloud.resources.put({ ...cloud.resources.get(call.id), content });
    properties.diskState = access === 'Write' ? 'ActiveUpload' : 'ActiveSAS';
    return { accessSAS: await cloud.pages.grant(content, access === 'Write' ? 'rw' : 'r', seconds) };
  });
  return { status: 202, operation };
}

function endAccess(cloud: ArmCloud, { id }: ArmCall): ArmResponse {
  const { content, properties } = cloud.resources.get(id);
  const operation = cloud.operations.start(`${id}/access`, async () => {
    if (content !== undefined) await cloud.pages.revoke(content);
    if (properties.diskState !== 'ReadyToUpload') properties.diskState = 'Unattached';
  });
  return { status: 202, operation };
}

/**
 * Returns a disk that an image can be created from.
 *
 * @param id from the request
 * @throws ArmError if it does not exist, or still accepts pages
 */
export function sourceDisk(cloud: ArmCloud, id: unknown): StoredResource {
  const disk = cloud.resources.get(typeof id === 'string' ? id : '');
  if (disk.type !== DISK || disk.properties.diskState !== 'Unattached') {
    const reason = `Disk ${disk.name} cannot be the source of an image in the state ${String(disk.properties.diskState)}.`;
    throw new ArmError('OperationNotAllowed', reason, 409);
  }
  return disk;
}

/** @throws ArmError if the disk is gone, or does not end with the footer of a VHD */
export async function checkContent(cloud: ArmCloud, { id, content, name }: StoredResource): Promise<void> {
  cloud.resources.get(id);
  if (content !== undefined && (await cloud.pages.isVhd(content))) return;
  const reason = `The specified cookie value in VHD footer indicates that disk '${name}' is not a supported VHD.`;
  throw new ArmError('InvalidVhd', reason);
}
