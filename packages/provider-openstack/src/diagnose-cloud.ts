import type { CheckResult } from '@nodepool-builder/image-builder';
import { attempt, checkClock } from '@nodepool-builder/image-builder/internal';
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

/** Share of a quota from which it counts as nearly used up. */
const NEARLY_FULL = 0.9;

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
    const token = await attempt(credentials, signal, () => session.tokenExpiry(signal));
    if (token.problem) {
      yield token.problem;
      return;
    }
    yield { subject: credentials, status: 'ok', message: describeToken(cloud, token.value) };
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
  yield* checkQuota(name, images, signal);
}

async function checkImport(
  name: string,
  images: ImageApi,
  wanted: string | undefined,
  signal: AbortSignal,
): Promise<CheckResult> {
  const subject = `import methods of provider ${name}`;
  const result = await attempt(subject, signal, async () => images.importMethods(signal).catch(unlessAbsent));
  if (result.problem) return result.problem;
  const offered = result.value ?? [];
  const list = offered.join(', ') || 'none';
  if (wanted === undefined) {
    return { subject, status: 'ok', message: `a PUT of the file is used; the cloud offers: ${list}` };
  }
  if (offered.includes(wanted)) return { subject, status: 'ok', message: `the cloud offers ${wanted}` };
  const message = `the cloud does not offer ${wanted}; it offers ${list}`;
  return { subject, status: 'problem', message, remedy: 'choose one of these, or leave image-import out' };
}

async function* checkQuota(name: string, images: ImageApi, signal: AbortSignal): AsyncGenerator<CheckResult> {
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
  if (usage < NEARLY_FULL * limit) return { subject, status: 'ok', message };
  const remedy = 'delete images that are not needed, or request a larger quota';
  return { subject, status: usage >= limit ? 'problem' : 'warning', message, remedy };
}

async function checkObjectStore(name: string, store: ObjectStore, signal: AbortSignal): Promise<CheckResult> {
  const subject = `object store of provider ${name}`;
  const result = await attempt(subject, signal, () => store.probe(signal));
  if (result.problem) return result.problem;
  return { subject, status: 'ok', message: 'responds; a task imports images from it' };
}
