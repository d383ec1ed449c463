import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, GearmanError } from '@nodepool-builder/gearman-node';

/** Milliseconds between a failure and the next submission. The daemon's main loop runs every 10 s. */
const MAIN_LOOP = 1000;

/** A wanted upload, complete once it has an `externalId`. */
export interface WantedUpload {
  readonly imageId: string;
  readonly provider: string;
  externalId?: string;
}

/** Figures of the run. */
export interface Submissions {
  /** Number of jobs, including those submitted again. */
  submitted: number;
  /** Number of jobs submitted again because the job server was lost or unreachable. */
  lost: number;
  /** Number of jobs submitted again after WORK_FAIL or WORK_EXCEPTION. */
  failed: number;
  done: number;
}

/**
 * Submits uploads as the Gearman-era nodepool daemon does: all at once, each as a foreground job with its own unique
 * key. A job that fails, or whose server is lost, is submitted again as a new one. `submissions` and
 * `wanted` are kept up to date.
 */
export async function submitUploads(
  client: Client,
  wanted: readonly WantedUpload[],
  submissions: Submissions,
  onDone: () => void,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    wanted.map(async (upload) => {
      while (upload.externalId === undefined) {
        signal.throwIfAborted();
        submissions.submitted += 1;
        try {
          upload.externalId = await submit(client, upload, signal);
        } catch (error) {
          if (!(error instanceof GearmanError) || signal.aborted) throw error;
          if (error.retriable) submissions.lost += 1;
          else submissions.failed += 1;
          await delay(MAIN_LOOP, undefined, { signal });
        }
      }
      submissions.done += 1;
      onDone();
    }),
  );
}

async function submit(
  client: Client,
  { imageId, provider }: WantedUpload,
  signal: AbortSignal,
): Promise<string> {
  const argument = JSON.stringify({ provider, 'image-name': 'soak' });
  const unique = randomUUID().replaceAll('-', '');
  const result = await client.submit(`image-upload:${imageId}`, argument, { unique, signal });
  return (JSON.parse(String(result)) as { 'external-id': string })['external-id'];
}
