import { Client, type ServerAddress } from '@nodepool-builder/gearman-node';
import { operatorCancellation } from '@nodepool-builder/image-manager';
import { decodeFailure, GEARADMIN } from '@nodepool-builder/image-manager/protocol';
import { subjectOf, verbOf } from '../protocol/functions.ts';
import type { LocatedJob } from '../site/builder-status.ts';
import { findRunningJob } from '../site/builder-status.ts';
import { cancelJob, explainDenial, thisUser } from '../site/control-jobs.ts';
import { CommandError, errorLine } from '../terms/command-error.ts';
import { pollProgress, withProgress } from './progress.ts';
import { untilStopSignal } from './stop-signal.ts';

/** A job with its argument. */
interface Request {
  readonly servers: readonly ServerAddress[];
  readonly name: string;
  readonly argument: Readonly<Record<string, string>>;
}

/**
 * Submits a job, shows its progress on standard error until it ends, and returns its result. The first SIGINT prints
 * where the job runs, the second one cancels it, and a third one stops waiting, as SIGTERM does at once. During a
 * deletion, which cannot be cancelled, each SIGINT stops waiting.
 *
 * @throws CommandError with the builder's reason; GearmanError
 */
export async function followJob(
  servers: readonly ServerAddress[],
  name: string,
  argument: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const request = { servers, name, argument };
  const client = new Client({ servers, clientId: 'nodepool-builder command' });
  let onInterrupt: (() => boolean) | undefined;
  try {
    return await untilStopSignal(
      (signal) =>
        withProgress(name, async (onProgress, onReading, note) => {
          const left = new AbortController();
          const end = AbortSignal.any([signal, left.signal]);
          const job = client.submit(name, JSON.stringify({ ...argument, reason: true }), { signal: end });
          const following = new AbortController();
          const polling = pollProgress({ servers, name, client }, job.handle, onReading, following.signal);
          const leave = (error: Error): void => left.abort(error);
          onInterrupt = interrupts(request, client, job.handle, { note, leave, signal: end });
          try {
            for await (const event of job) {
              if (event.type === 'status') onProgress({ done: event.numerator, total: event.denominator });
            }
            return await job;
          } catch (error) {
            if (!left.signal.aborted) throw error;
            await client.close();
            await cancelIfStarted(request, await job.handle, thisUser());
            throw left.signal.reason;
          } finally {
            following.abort();
            await polling;
          }
        }),
      () => onInterrupt?.() ?? false,
    );
  } catch (cause) {
    const cancellation = await operatorCancellation(cause, name, client);
    if (cancellation !== undefined) {
      // The job is gone from its server, even if its builder could not be notified or has not stopped it yet.
      await cancelIfStarted(request, cancellation.handle, GEARADMIN).catch(() => {});
    }
    const failure = decodeFailure(cancellation ?? cause);
    if (failure === undefined) throw explainDenial(name, cause);
    const { host, reason, 'cancelled-by': by } = failure;
    if (by !== undefined) throw new CommandError(`${name} was ${reason}`, 'cancelled', { cause });
    const log = `"nodepool-builder logs ${argument['image-id']}"`;
    const isNamed = !name.startsWith('image-build:') || reason.includes(log);
    const whole = isNamed ? '' : `; see ${log}`;
    throw new CommandError(`${name} failed on ${host}: ${reason}${whole}`, 'failed', { cause });
  } finally {
    await client.close();
  }
}

/** The parts of the command that a handler of SIGINT uses. */
interface Interruptible {
  /** Prints a line next to the progress. */
  readonly note: (line: string) => void;
  /** Withdraws a job that no builder has started, and ends the command. */
  readonly leave: (error: CommandError) => void;
  /** Aborts when the command ends early. */
  readonly signal: AbortSignal;
}

/** Makes a handler of SIGINT. It returns false if the command should end. */
function interrupts(
  request: Request,
  client: Client,
  accepted: Promise<string>,
  { note, leave, signal }: Interruptible,
): () => boolean {
  const { servers, name } = request;
  if (verbOf(name) === 'image-delete') return () => false;
  const lookUp = async () => {
    const handle = await accepted;
    const { running } = await client.status(handle);
    return { handle, isRunning: running, job: await findRunningJob(servers, name, handle, signal) };
  };
  let count = 0;
  const tell = async (): Promise<void> => {
    const { isRunning, job } = await lookUp();
    if (count === 1) note(continuation(request, isRunning, job));
  };
  const cancel = async (): Promise<void> => {
    const { handle, isRunning, job } = await lookUp();
    const by = thisUser();
    if (!isRunning) {
      const message = `${name} was cancelled by ${by} before a builder started it`;
      leave(new CommandError(message, 'cancelled'));
      return;
    }
    note(`cancelling ${name}`);
    // If no builder has reported the upload-id in time, it is the handle, because the job has no unique key.
    const uploadId = verbOf(name) === 'image-upload' ? (job?.['upload-id'] ?? handle) : undefined;
    await cancelJob(servers, imageIdOf(request), by, uploadId, signal);
  };
  return () => {
    count += 1;
    if (count > 2) return false;
    (count === 1 ? tell() : cancel()).catch((error: unknown) => {
      if (!signal.aborted) note(errorLine(error));
    });
    return true;
  };
}
function imageIdOf({ name, argument }: Request): string {
  return argument['image-id'] ?? subjectOf(name);
}

/** Notifies the builder that started a job before the job server cancelled it, so that it stops. */
async function cancelIfStarted({ servers, name }: Request, handle: string, by: string): Promise<void> {
  const job = await findRunningJob(servers, name, handle);
  if (job === undefined) return;
  await cancelJob(servers, job['image-id'], by, job['upload-id']).catch((error: unknown) => {
    // It has ended, or our job server has notified the builder.
    if (!(error instanceof CommandError)) throw error;
  });
}

/** Describes what happens to a job whose command is interrupted, and what a second interrupt does. */
function continuation(request: Request, isRunning: boolean, job: LocatedJob | undefined): string {
  const cancels = 'Ctrl-C again cancels it';
  if (!isRunning) return `${request.name} waits for a free builder; ${cancels}`;
  const uploadId = job?.['upload-id'];
  const upload = uploadId === undefined ? '' : ` --upload ${uploadId}`;
  const log = `nodepool-builder logs ${imageIdOf(request)}${upload} --follow`;
  return `${request.name} continues on ${job?.host ?? 'its builder'}; "${log}" shows its log; ${cancels}`;
}
