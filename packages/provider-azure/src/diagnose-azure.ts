import type { CheckOptions, CheckResult } from '@nodepool-builder/image-builder';
import { attempt } from '@nodepool-builder/image-builder/internal';
import { CloudError, signalOf } from '@nodepool-builder/image-builder/plugin';
import { type AzureAccount, AzureSession, type Permission } from './azure-session.ts';
import type { AzureEntry } from './azure-settings.ts';

interface DiagnosisOptions {
  readonly entry: AzureEntry;
  readonly account: () => Promise<AzureAccount>;
}

/** Share of a quota from which it counts as nearly used up. */
const NEARLY_FULL = 0.9;

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
  const quota = await checkQuota(session, location, diskType, signal);
  if (quota !== undefined) yield quota;
}

async function checkPermissions(
  session: AzureSession,
  gallery: string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  const subject = `permissions of provider ${session.name}`;
  const result = await attempt(subject, signal, () => session.permissions(signal));
  if (result.problem) return result.problem;
  const needed = [...DISK_ACTIONS, ...(gallery === undefined ? IMAGE_ACTIONS : GALLERY_ACTIONS)];
  const lacking = needed.filter((action) => !result.value.some((permission) => permits(permission, action)));
  const { resourceGroup } = session.account;
  if (lacking.length === 0) {
    return { subject, status: 'ok', message: `the roles in resource group ${resourceGroup} are sufficient` };
  }
  return {
    subject,
    status: 'problem',
    message: `the roles in resource group ${resourceGroup} lack ${lacking.join(', ')}`,
    remedy: 'give the identity the role described in docs/azure.md',
  };
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
  const result = await attempt(subject, signal, async () => {
    if (gallery === undefined) {
      await session.list('list of images', signal, ({ images }, options) =>
        images.listByResourceGroup(resourceGroup, options),
      );
    } else {
      await session.call(`query of gallery ${gallery}`, signal, ({ galleries }, options) =>
        galleries.get(resourceGroup, gallery, options),
      );
    }
  });
  if (result.problem) return result.problem;
  const message = gallery === undefined ? `resource group ${resourceGroup} lists its images` : 'it exists';
  return { subject, status: 'ok', message };
}

async function checkQuota(
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
  if (currentValue < NEARLY_FULL * limit) return { subject, status: 'ok', message };
  const remedy = 'delete disks that are not needed, or request a larger quota';
  return { subject, status: currentValue >= limit ? 'problem' : 'warning', message, remedy };
}
