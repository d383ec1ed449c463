import { setTimeout as delay } from 'node:timers/promises';
import { Admin, Client } from '@nodepool-builder/gearman-node';
import { KilledBuilder } from './killed-builder.ts';
import { KilledGearmand } from './killed-gearmand.ts';
import { type Submissions, submitUploads, type WantedUpload } from './nodepool-uploads.ts';
import { compareCloud, type SoakCloud } from './soak-cloud.ts';
import { createSoakSite, type SoakSite } from './soak-site.ts';

/** Polling interval of the clouds, in milliseconds. */
const INTERVAL = 1000;

/** Amount of work and of disturbances. */
export interface SoakPlan {
  readonly images: number;
  /** Max time in milliseconds that a builder serves before it is killed. */
  readonly maxLifetime: number;
  /** Number of kills of the builder. With `Infinity`, it is killed until the last job has ended. */
  readonly builderKills: number;
  /** Number of kills of gearmand, spread evenly over the uploads. */
  readonly gearmandKills: number;
  /** Time limit in milliseconds for each cleanup of the clouds after the last reply and the last kill. */
  readonly settlingTime: number;
}

/** Progress. */
export interface SoakProgress extends Readonly<Submissions> {
  readonly uploads: number;
  readonly builderKills: number;
  readonly gearmandKills: number;
  readonly seconds: number;
}

/** Result. */
export interface SoakReport extends SoakProgress {
  /** Seconds from the last reply to correct clouds or the time limit. */
  readonly settlingSeconds: number;
  /** A sentence for each image that is not in a cloud exactly once, and for each remaining job. */
  readonly faults: readonly string[];
  /** Log of all the builder's processes. */
  readonly log: readonly string[];
}

/**
 * Makes a builder upload images to clouds while it and gearmand are killed, and compares the clouds at the end.
 *
 * @param clouds closed at the end
 * @param onProgress - called after each upload
 * @param signal - ends it early, with everything that it started
 */
export async function soak(
  plan: SoakPlan,
  clouds: readonly SoakCloud[],
  onProgress: (progress: SoakProgress) => void = () => {},
  signal?: AbortSignal,
): Promise<SoakReport> {
  const opened: (() => Promise<void>)[] = clouds.map((cloud) => async () => await cloud.close?.());
  const stop = new AbortController();
  const stopped = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  try {
    const gearmand = await KilledGearmand.start();
    opened.push(() => gearmand.stop());
    const site = await createSoakSite(gearmand.port, plan.images, clouds);
    opened.push(() => site.remove());
    const client = new Client({
      servers: [{ host: '127.0.0.1', port: gearmand.port }],
      clientId: 'nodepool',
    });
    opened.push(() => client.close());
    const builder = new KilledBuilder(site, plan.maxLifetime);
    opened.push(() => builder.stop());

    const wanted = wantedUploads(site, clouds);
    const submissions: Submissions = { submitted: 0, lost: 0, failed: 0, done: 0 };
    const start = performance.now();
    const progress = (): SoakProgress => ({
      ...submissions,
      uploads: wanted.length,
      builderKills: builder.kills,
      gearmandKills: gearmand.kills,
      seconds: (performance.now() - start) / 1000,
    });
    const onDone = (): void => {
      onProgress(progress());
      if (submissions.done > (wanted.length * (gearmand.kills + 1)) / (plan.gearmandKills + 1))
        gearmand.kill();
    };
    const answered = new AbortController();
    const untilKilled = Number.isFinite(plan.builderKills) ? [stopped] : [stopped, answered.signal];
    await Promise.all([
      submitUploads(client, wanted, submissions, onDone, stopped).finally(() => answered.abort()),
      builder.killUntil(AbortSignal.any(untilKilled), plan.builderKills),
    ]);
    await gearmand.restarted();
    const answeredAll = progress();
    const find = (): Promise<readonly string[]> =>
      findFaults(site, clouds, wanted, gearmand.port, builder.log);
    const faults = await settle(find, plan.settlingTime, stopped);
    const settlingSeconds = progress().seconds - answeredAll.seconds;
    return { ...answeredAll, settlingSeconds, faults, log: builder.log };
  } finally {
    stop.abort(new Error('the soak is over'));
    for (const close of opened.toReversed()) await close();
  }
}

/** Returns each image for each provider. */
function wantedUploads(site: SoakSite, clouds: readonly SoakCloud[]): WantedUpload[] {
  return [...site.images.keys()].flatMap((imageId) =>
    clouds.map(({ entry }) => ({ imageId, provider: entry.name })),
  );
}

/** Returns the differences. A builder removes orphans some time after a crash, on a busy machine one by one. */
async function settle(
  find: () => Promise<readonly string[]>,
  limit: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  let [fewest, deadline] = [Number.POSITIVE_INFINITY, performance.now() + limit];
  for (; ; await delay(INTERVAL, undefined, { signal })) {
    // A check that fails under load is repeated, and only the last result counts.
    const faults = await find().catch((error: Error) => error);
    if (!(faults instanceof Error) && faults.length < fewest) {
      [fewest, deadline] = [faults.length, performance.now() + limit];
    }
    if (fewest === 0) return [];
    if (performance.now() > deadline) return faults instanceof Error ? [faults.message] : faults;
  }
}

async function findFaults(
  { images }: SoakSite,
  clouds: readonly SoakCloud[],
  wanted: readonly WantedUpload[],
  port: number,
  log: readonly string[],
): Promise<string[]> {
  const admin = new Admin({ host: '127.0.0.1', port });
  try {
    const jobs = (await admin.status()).filter(({ total }) => total > 0);
    const differences = await Promise.all(clouds.map((cloud) => compareCloud(cloud, images, wanted, log)));
    return [
      ...differences.flat(),
      ...jobs.map(({ name, total }) => `gearmand: ${total} jobs of ${name} are left`),
    ];
  } finally {
    await admin.close();
  }
}
