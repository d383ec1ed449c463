import { KnownArchitecture, KnownHyperVGeneration, KnownStorageAccountType } from '@azure/arm-compute';
import { type ArmCall, type ArmCloud, type ArmHandler, type ArmResponse, visible } from './arm-cloud.ts';
import { ArmError, isObject, type Json, objectAt, tagsOf, textAt } from './arm-model.ts';
import { checkContent, NAME, OS_TYPES, sourceDisk } from './disk-operations.ts';

const OS_STATES = { generalized: 'Generalized', specialized: 'Specialized' } as const;

const get: ArmHandler = async (cloud, { id }) => {
  await cloud.operations.askFor(id);
  return { status: 200, body: visible(cloud.resources.get(id)) };
};

/** Requests for managed images. */
export const IMAGE_OPERATIONS: Readonly<Record<string, ArmHandler>> = {
  GET: get,
  PUT: putImage,
  DELETE: (cloud, { id }) => cloud.delete(id),
};

function putImage(cloud: ArmCloud, call: ArmCall): ArmResponse {
  const { id, name } = call;
  const body = cloud.body('image', call);
  const location = cloud.location(body);
  const tags = tagsOf(body);
  if (!NAME.test(name)) throw new ArmError('InvalidParameter', `The image name ${name} is invalid.`);
  const properties = objectAt(body, 'properties');
  const os = objectAt(properties, 'storageProfile', 'osDisk');
  textAt(os, 'osType', OS_TYPES);
  textAt(os, 'osState', OS_STATES);
  if (properties.hyperVGeneration !== undefined)
    textAt(properties, 'hyperVGeneration', KnownHyperVGeneration);
  const source = objectAt(os, 'managedDisk').id;
  refuseOtherSource(cloud, id, source, ['storageProfile', 'osDisk', 'managedDisk']);
  const disk = sourceDisk(cloud, source);
  const { supportedCapabilities: capabilities } = disk.properties;
  if (isObject(capabilities) && capabilities.architecture === 'Arm64') {
    throw new ArmError('InvalidParameter', 'Managed images do not support the architecture Arm64.');
  }
  if (disk.location !== location) {
    throw new ArmError('InvalidParameter', `The disk is in ${disk.location}, and the image in ${location}.`);
  }
  const type = 'Microsoft.Compute/images';
  return cloud.create(
    { id, name, type, location, tags, properties: { ...properties }, content: disk.content },
    () => checkContent(cloud, disk),
  );
}

/** The source of an image does not change. */
function refuseOtherSource(cloud: ArmCloud, id: string, source: unknown, path: readonly string[]): void {
  const known = cloud.resources.find(id);
  if (known === undefined || known.properties.provisioningState === 'Failed') return;
  if (objectAt(known.properties, ...path).id === source) return;
  const reason = `Changing property '${path.join('.')}.id' is not allowed.`;
  throw new ArmError('PropertyChangeNotAllowed', reason, 409);
}

/** Requests for galleries, which an administrator creates. */
export const GALLERY_OPERATIONS: Readonly<Record<string, ArmHandler>> = { GET: get };

/** Requests for image definitions in a gallery. */
export const DEFINITION_OPERATIONS: Readonly<Record<string, ArmHandler>> = {
  GET: get,
  PUT: (cloud, call) => {
    const { id, name } = call;
    const body = cloud.body('galleryImage', call);
    const location = cloud.location(body);
    if (!/^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9])?$/.test(name)) {
      throw new ArmError('InvalidParameter', `The name ${name} of the image definition is invalid.`);
    }
    cloud.resources.get(id.split('/').slice(0, -2).join('/'));
    const properties = objectAt(body, 'properties');
    textAt(properties, 'osType', OS_TYPES);
    textAt(properties, 'osState', OS_STATES);
    if (properties.hyperVGeneration !== undefined)
      textAt(properties, 'hyperVGeneration', KnownHyperVGeneration);
    if (properties.architecture !== undefined) textAt(properties, 'architecture', KnownArchitecture);
    for (const key of ['publisher', 'offer', 'sku']) textAt(objectAt(properties, 'identifier'), key);
    const type = 'Microsoft.Compute/galleries/images';
    return cloud.create({ id, name, type, location, tags: tagsOf(body), properties: { ...properties } });
  },
};

/** Requests for versions of an image definition. */
export const VERSION_OPERATIONS: Readonly<Record<string, ArmHandler>> = {
  GET: get,
  PUT: putVersion,
  DELETE: (cloud, { id }) => cloud.delete(id),
};

function putVersion(cloud: ArmCloud, call: ArmCall): ArmResponse {
  const { id, name } = call;
  const body = cloud.body('galleryImageVersion', call);
  const location = cloud.location(body);
  const tags = tagsOf(body);
  const numbers = name.split('.').map(Number);
  if (!/^\d+\.\d+\.\d+$/.test(name) || numbers.some((number) => number > 2_147_483_647)) {
    throw new ArmError(
      'InvalidParameter',
      `The version ${name} is not Major.Minor.Patch of 32-bit integers.`,
    );
  }
  cloud.resources.get(id.split('/').slice(0, -2).join('/'));
  const properties = objectAt(body, 'properties');
  checkRegions(cloud, isObject(properties.publishingProfile) ? properties.publishingProfile : {});
  const source = objectAt(properties, 'storageProfile', 'osDiskImage', 'source').id;
  refuseOtherSource(cloud, id, source, ['storageProfile', 'osDiskImage', 'source']);
  const disk = sourceDisk(cloud, source);
  const publishingProfile = {
    ...(isObject(properties.publishingProfile) && properties.publishingProfile),
    publishedDate: new Date().toISOString(),
  };
  const type = 'Microsoft.Compute/galleries/images/versions';
  const resource = { id, name, type, location, tags, properties: { ...properties, publishingProfile } };
  return cloud.create({ ...resource, content: disk.content }, () => checkContent(cloud, disk));
}

function checkRegions(cloud: ArmCloud, { targetRegions, storageAccountType }: Json): void {
  if (storageAccountType !== undefined)
    textAt({ storageAccountType }, 'storageAccountType', KnownStorageAccountType);
  for (const region of Array.isArray(targetRegions) ? targetRegions : []) {
    if (isObject(region)) cloud.location({ location: textAt(region, 'name') });
  }
}
