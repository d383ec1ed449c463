import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, checkQuota } from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { GceClients, GceSession } from './gce-session.ts';
import type { GceEntry } from './gce-settings.ts';

/**
 * Required permissions in the project. Always includes `deprecate`, because `meta` of an image may also set a family.
 */
const PROJECT_PERMISSIONS = [
  'compute.globalOperations.get',
  'compute.images.create',
  'compute.images.delete',
  'compute.images.deprecate',
  'compute.images.get',
  'compute.images.list',
  'compute.images.setLabels',
];

/** Required permissions in the bucket. */
const BUCKET_PERMISSIONS = [
  'storage.objects.create',
  'storage.objects.delete',
  'storage.objects.get',
  'storage.objects.list',
];

const REMEDY = 'add them to a role of the service account';

interface Diagnosis {
  readonly session: GceSession;
  readonly entry: GceEntry;
  /** URL of Compute Engine and of the Resource Manager. Default: Google's URLs. */
  readonly endpoint: string | undefined;
  readonly signal: AbortSignal;
}

/** Checks credentials, permissions, bucket and quota without changing anything. */
export async function* diagnoseGce(diagnosis: Diagnosis): AsyncGenerator<CheckResult> {
  const { session, entry, signal } = diagnosis;
  const subject = `credentials of provider ${entry.name}`;
  const opened = await attempt(subject, signal, async () =>
    session.once('ListImages', signal, async ({ images, project }) => {
      await images.list({ project, maxResults: 1 }, { autoPaginate: false, retry: null });
      return project;
    }),
  );
  if (opened.problem) {
    yield opened.problem;
    return;
  }
  yield { subject, status: 'ok', message: `Compute Engine accepts them in project ${opened.value}` };
  yield await checkProject(diagnosis);
  const { 'bucket-name': bucket } = entry;
  if (bucket !== undefined) yield await checkBucket(diagnosis, bucket);
  const quota = await checkImageQuota(diagnosis);
  if (quota !== undefined) yield quota;
}

async function checkProject(diagnosis: Diagnosis): Promise<CheckResult> {
  const { session, entry, endpoint, signal } = diagnosis;
  const subject = `permissions of provider ${entry.name}`;
  try {
    const { permissions: granted = [] } = await session.once('TestIamPermissions', signal, async (clients) =>
      ask<{ permissions?: readonly string[] }>(clients, signal, {
        url: `${endpoint ?? 'https://cloudresourcemanager.googleapis.com'}/v3/projects/${clients.project}:testIamPermissions`,
        method: 'POST',
        data: { permissions: PROJECT_PERMISSIONS },
      }),
    );
    return compare(subject, PROJECT_PERMISSIONS, granted);
  } catch (error) {
    if (!(error instanceof CloudError)) throw error;
    const message = `cannot be queried: ${error.message}`;
    const remedy = 'enable the API cloudresourcemanager.googleapis.com in the project';
    return { subject, status: 'warning', message, remedy };
  }
}

async function checkBucket({ session, entry, signal }: Diagnosis, bucket: string): Promise<CheckResult> {
  const subject = `bucket ${bucket} of provider ${entry.name}`;
  const remedy = 'create it, or set bucket-name to another bucket';
  const result = await attempt(
    subject,
    signal,
    async () =>
      session.once('TestBucketPermissions', signal, async ({ storage }) => {
        const [granted] = await storage.bucket(bucket).iam.testPermissions(BUCKET_PERMISSIONS);
        return Object.keys(granted).filter((permission) => granted[permission]);
      }),
    remedy,
  );
  return result.problem ?? compare(subject, BUCKET_PERMISSIONS, result.value);
}

/** @returns undefined if the credentials may not read the quota, because uploads do not require this permission */
async function checkImageQuota(diagnosis: Diagnosis): Promise<CheckResult | undefined> {
  const { session, entry, endpoint, signal } = diagnosis;
  const subject = `quota of images of provider ${entry.name}`;
  try {
    const { quotas = [] } = await session.once('GetProject', signal, async (clients) =>
      ask<{ quotas?: readonly { metric?: string; limit?: number; usage?: number }[] }>(clients, signal, {
        url: `${endpoint ?? 'https://compute.googleapis.com'}/compute/v1/projects/${clients.project}`,
      }),
    );
    const { limit, usage } = quotas.find(({ metric }) => metric === 'IMAGES') ?? {};
    if (limit === undefined || usage === undefined) return undefined;
    const message = `${usage} of ${limit} are used`;
    const remedy = 'delete images, or request a higher quota IMAGES from Google';
    return checkQuota({ subject, message, remedy }, usage, limit);
  } catch (error) {
    if (error instanceof CloudError) return undefined;
    throw error;
  }
}

function compare(subject: string, wanted: readonly string[], granted: readonly string[]): CheckResult {
  const missing = wanted.filter((permission) => !granted.includes(permission));
  if (missing.length === 0) return { subject, status: 'ok', message: 'no permission is missing' };
  return { subject, status: 'problem', message: `missing: ${missing.join(', ')}`, remedy: REMEDY };
}

/** Sends a request for which the clients have no method. */
async function ask<T>(
  { storage }: GceClients,
  signal: AbortSignal,
  request: { readonly url: string; readonly method?: 'POST'; readonly data?: object },
): Promise<T> {
  const { data } = await storage.authClient.request<T>({ ...request, signal });
  return data;
}
