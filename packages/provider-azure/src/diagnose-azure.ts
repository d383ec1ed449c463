import type { CheckOptions, CheckResult } from '@nodepool-builder/image-builder';
import { attempt, checkQuota, runCheck } from '@nodepool-builder/image-builder/internal';
import { CloudError, signalOf } from '@nodepool-builder/image-builder/plugin';
import { type AzureAccount, AzureSession, type Permission } from './azure-session.ts';
import type { AzureEntry } from './azure-settings.ts';

interface DiagnosisOptions {
  readonly entry: AzureEntry;
  readonly account: () => Promise<AzureAccount>;
}

const DISKS = 'Microsoft.Compute/disks';
const IMAGES = 'Microsoft.Compute/images';
const GALLERIES = 'Microsoft.Compute/galleries';

/** Actions that uploads require. */
const DISK_ACTIONS = ['read', 'write', 'delete', 'beginGetAccess/action', 'endGetAccess/action'].map(
  (action) => `${DISKS}/${action}`,
);

const IMAGE_ACTIONS = ['read', 'write', 'delete'].map((action) => `${IMAGES}/${action}`);

const GALLERY_ACTIONS = [
  `${GALLERIES}/read`,
  `${GALLERIES}/images/read`,
  `${GALLERIES}/images/write`,
  `${GALLERIES}/images/versions/read`,
  `${GALLERIES}/images/versions/write`,
  `${GALLERIES}/images/versions/delete`,
];

/** Disk quotas, by the prefix of the storage type. */
const QUOTAS: readonly (readonly [storage: string, quota: string])[] = [
  ['StandardSSD_LRS', 'StandardSSDDiskCount'],
  ['StandardSSD_ZRS', 'StandardSSDZRSDiskCount'],
  ['Premium_LRS', 'PremiumDiskCount'],
  ['Premium_ZRS', 'PremiumZRSDiskCount'],
  ['Standard_LRS', 'StandardDiskCount'],
];

/** Checks credentials, permissions, the resource group or gallery, and disk quotas, without retries. */
export async function* diagnoseAzure(
  { entry, account }: DiagnosisOptions,
  options: CheckOptions,
): AsyncGenerator<CheckResult> {
  const { name, location, 'gallery-name': gallery, 'azure-disk-type': diskType } = entry;
  const signal = signalOf(options);
  const credentials = `credentials of provider ${name}`;
  const opened = await attempt(credentials, signal, async () => {
    const session = await AzureSession.open(await account(), { name, retries: 0 });
    return { session, expiry: await session.authenticate(signal) };
  });
  if (opened.problem) {
    yield opened.problem;
    return;
  }
  const { session, expiry } = opened.value;
  const minutes = Math.floor((expiry.getTime() - Date.now()) / 60_000);
  yield {
    subject: credentials,
    status: 'ok',
    message: `Microsoft Entra ID accepts them; the token is valid for ${minutes} min`,
  };
  yield await checkPermissions(session, gallery, signal);
  yield await checkTarget(session, gallery, signal);
  const quota = await checkDisks(session, location, diskType, signal);
  if (quota !== undefined) yield quota;
}

async function checkPermissions(
  session: AzureSession,
  gallery: string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  const subject = `permissions of provider ${session.name}`;
  return await runCheck(subject, signal, async () => {
    const granted = await session.permissions(signal);
    const needed = [...DISK_ACTIONS, ...(gallery === undefined ? IMAGE_ACTIONS : GALLERY_ACTIONS)];
    const lacking = needed.filter((action) => !granted.some((permission) => permits(permission, action)));
    const roles = `the roles in resource group ${session.account.resourceGroup}`;
    if (lacking.length === 0) return `${roles} are sufficient`;
    const remedy = 'give the identity the role described in docs/azure.md';
    return { status: 'problem', message: `${roles} lack ${lacking.join(', ')}`, remedy };
  });
}

function permits({ actions = [], notActions = [] }: Permission, action: string): boolean {
  const matches = (pattern: string): boolean => {
    const source = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
    return new RegExp(`^${source.join('.*')}$`, 'i').test(action);
  };
  return actions.some(matches) && !notActions.some(matches);
}

async function checkTarget(
  session: AzureSession,
  gallery: string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  const { resourceGroup } = session.account;
  const subject = gallery === undefined ? `images of provider ${session.name}` : `gallery ${gallery}`;
  return await runCheck(subject, signal, async () => {
    if (gallery === undefined) {
      await session.list('list of images', signal, ({ images }, options) =>
        images.listByResourceGroup(resourceGroup, options),
      );
      return `resource group ${resourceGroup} lists its images`;
    }
    await session.call(`query of gallery ${gallery}`, signal, ({ galleries }, options) =>
      galleries.get(resourceGroup, gallery, options),
    );
    return 'it exists';
  });
}

async function checkDisks(
  session: AzureSession,
  location: string,
  diskType: string,
  signal: AbortSignal,
): Promise<CheckResult | undefined> {
  const subject = `quota of provider ${session.name}`;
  const result = await attempt(subject, signal, async () => {
    try {
      return await session.list('list of quotas', signal, ({ usage }, options) =>
        usage.list(location, options),
      );
    } catch (error) {
      if (error instanceof CloudError && error.code === 'forbidden') return undefined;
      throw error;
    }
  });
  if (result.problem) return result.problem;
  if (result.value === undefined) {
    // Uploads need no permission outside the resource group.
    const remedy = 'for this check, grant Microsoft.Compute/locations/usages/read in the subscription';
    return { subject, status: 'warning', message: 'the credentials may not read the quota', remedy };
  }
  const wanted = QUOTAS.find(([storage]) => storage === diskType)?.[1];
  const found = result.value.find(({ name }) => name?.value === wanted);
  if (found?.currentValue === undefined || found.limit === undefined) return undefined;
  const { currentValue, limit } = found;
  const message = `${currentValue} of ${limit} disks of ${diskType} in ${location}`;
  const remedy = 'delete disks that are not needed, or request a larger quota';
  return checkQuota({ subject, message, remedy }, currentValue, limit);
}
