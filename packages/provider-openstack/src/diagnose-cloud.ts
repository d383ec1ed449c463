import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, checkClock, checkQuota, runCheck } from '@nodepool-builder/image-builder/internal';
import { unlessAbsent } from '@nodepool-builder/image-builder/plugin';
import type { CloudSettings } from './cloud-settings.ts';
import type { QuotaUsage } from './glance-image.ts';
import { ImageApi } from './image-api.ts';
import { ObjectStore } from './object-store.ts';
import { type CloudOptions, OpenStackSession } from './session/openstack-session.ts';

interface DiagnosisOptions extends CloudOptions {
  /** `providers[].name`. */
  readonly name: string;
  readonly importMethod: string | undefined;
}

/** Glance quotas that limit uploads, with the function that formats their values. */
const QUOTAS: Readonly<Record<string, { readonly what: string; readonly show: (value: number) => string }>> =
  {
    image_count_total: { what: 'images', show: String },
    image_size_total: { what: 'size of all images', show: (mebibytes) => `${mebibytes} MiB` },
    image_stage_total: { what: 'size of staged images', show: (mebibytes) => `${mebibytes} MiB` },
    image_count_uploading: { what: 'concurrent uploads', show: String },
  };

/**
 * Checks a cloud's credentials, token, Glance endpoint, import method and quotas. Opens a session of its own, without
 * retries.
 */
export async function* diagnoseCloud(
  { name, settings: read, logger, session: options, importMethod }: DiagnosisOptions,
  signal: AbortSignal,
): AsyncGenerator<CheckResult> {
  const credentials = `credentials of provider ${name}`;
  const settings = await attempt(credentials, signal, read, "correct clouds.yaml or the provider's entry");
  if (settings.problem) {
    yield settings.problem;
    return;
  }
  const cloud = settings.value;
  const retry = { ...options?.retry, attempts: 1 };
  const session = new OpenStackSession(cloud, { ...options, rate: 0, retry, logger });
  try {
    yield* checkSettings(name, cloud);
    const token = await runCheck(credentials, signal, async () =>
      describeToken(cloud, (await session.tokens?.current(signal))?.expiresAt),
    );
    yield token;
    if (token.status !== 'ok') return;
    yield* checkGlance(name, new ImageApi(session), importMethod, signal);
    if (cloud.imageApiUseTasks) yield await checkObjectStore(name, new ObjectStore(session), signal);
  } finally {
    session.close();
  }
}

function* checkSettings(name: string, { tls }: CloudSettings): Iterable<CheckResult> {
  if (tls.verify) return;
  yield {
    subject: `certificates of provider ${name}`,
    status: 'warning',
    message: 'are not verified: an attacker on the network can read the credentials',
    remedy: 'set cacert in clouds.yaml, and remove verify: false',
  };
}

function describeToken({ auth }: CloudSettings, expiry: number | undefined): string {
  if (expiry === undefined) return 'the cloud needs no credentials';
  const minutes = Math.floor((expiry - Date.now()) / 60_000);
  return `Keystone accepts them (${auth.type}); its token is valid for ${minutes} min`;
}

async function* checkGlance(
  name: string,
  images: ImageApi,
  importMethod: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<CheckResult> {
  const subject = `Glance of provider ${name}`;
  const result = await attempt(subject, signal, () => images.probe(signal));
  if (result.problem) {
    yield result.problem;
    return;
  }
  yield { subject, status: 'ok', message: 'responds, and lists images' };
  const clock = checkClock(`cloud ${images.cloud}`, result.value);
  if (clock !== undefined) yield clock;
  yield await checkImport(name, images, importMethod, signal);
  yield* checkQuotas(name, images, signal);
}

async function checkImport(
  name: string,
  images: ImageApi,
  wanted: string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  const subject = `import methods of provider ${name}`;
  return await runCheck(subject, signal, async () => {
    const offered = (await images.importMethods(signal).catch(unlessAbsent)) ?? [];
    const list = offered.join(', ') || 'none';
    if (wanted === undefined) return `a PUT of the file is used; the cloud offers: ${list}`;
    if (offered.includes(wanted)) return `the cloud offers ${wanted}`;
    const message = `the cloud does not offer ${wanted}; it offers ${list}`;
    return { status: 'problem', message, remedy: 'choose one of these, or leave image-import out' };
  });
}

async function* checkQuotas(
  name: string,
  images: ImageApi,
  signal: AbortSignal,
): AsyncGenerator<CheckResult> {
  const subject = `quota of provider ${name}`;
  const result = await attempt(subject, signal, () => images.usage(signal));
  if (result.problem) {
    yield result.problem;
    return;
  }
  const limited = Object.entries(result.value).filter(([, { limit }]) => limit >= 0);
  const results = limited.flatMap(([quota, usage]) => checkUsage(subject, quota, usage) ?? []);
  if (results.length === 0) yield { subject, status: 'ok', message: 'the cloud reports no limit' };
  else yield* results;
}

function checkUsage(subject: string, quota: string, { limit, usage }: QuotaUsage): CheckResult | undefined {
  const row = QUOTAS[quota];
  if (row === undefined) return undefined;
  const message = `${row.what}: ${row.show(usage)} of ${row.show(limit)}`;
  const remedy = 'delete images that are not needed, or request a larger quota';
  return checkQuota({ subject, message, remedy }, usage, limit);
}

async function checkObjectStore(name: string, store: ObjectStore, signal: AbortSignal): Promise<CheckResult> {
  const subject = `object store of provider ${name}`;
  return await runCheck(subject, signal, async () => {
    await store.probe(signal);
    return 'responds; a task imports images from it';
  });
}
