import { JobFailure, type WorkerJob } from '@nodepool-builder/gearman-node';
import {
  type ClaimRequest,
  ImageError,
  type ImageErrorCode,
  type ImageFile,
  type ImageProvider,
  type ImageRepository,
  type Logger,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import type { ProviderConfiguration, ProviderImageConfiguration } from '../configuration/configuration.ts';
import { subjectOf } from '../daemon/functions.ts';
import { externalName } from './external-name.ts';
import { checksumOf, deleteOtherCopy } from './image-copy.ts';
import { comparisonOf, InvalidArgumentsError, parseUploadArguments } from './job-arguments.ts';
import { jobResult, reportProgress, settleJob, UploadError } from './job-reply.ts';
import { discardRejected, PostUploadHookError, runHook } from './post-upload-hook.ts';
import type { Snapshots } from './snapshots.ts';
import type { Statistics } from './statistics.ts';
import type { UploadRecord } from './upload-records.ts';
import { startTimeLimit } from './upload-time-limit.ts';
import type { UploadTracker } from './upload-tracker.ts';

/** A provider with its configuration. */
export interface ConfiguredProvider {
  readonly configuration: ProviderConfiguration;
  /** Absent if it takes no images. */
  readonly provider?: ImageProvider | undefined;
}

/** Everything that `image-upload` jobs share. */
export interface UploadJobContext {
  readonly repository: ImageRepository;
  readonly providers: Pick<ReadonlyMap<string, ConfiguredProvider>, 'get'>;
  /** The largest disk in bytes that is converted. */
  readonly largestDisk: number;
  readonly tracker: UploadTracker;
  /** Environment of a `post-upload-hook`. */
  readonly environment: Readonly<Record<string, string>>;
  readonly snapshots: Pick<Snapshots, 'find' | 'claim'>;
  readonly statistics: Statistics;
  logger(name: string): Logger;
}

/** A provider that takes images. */
export interface UploadTarget extends ConfiguredProvider {
  readonly provider: ImageProvider;
}

/** Where an image goes. */
interface Target extends UploadTarget {
  readonly image: ProviderImageConfiguration;
}

/** Runs an `image-upload:<image-id>` job. The result is the provider's id of the image. */
export async function runUploadJob(context: UploadJobContext, job: WorkerJob): Promise<string> {
  const imageId = subjectOf(job.function);
  const logger = context.logger('nodepool.builder.UploadWorker');
  return await settleJob(`upload of ${imageId} (job ${job.handle})`, logger, async () => {
    const comparison = comparisonOf(job.payload);
    if (comparison !== undefined) {
      await deleteOtherCopy(context.repository, imageId, comparison, { signal: job.signal, logger });
      return '';
    }
    const { provider, 'image-name': imageName, checksum } = parseUploadArguments(job.payload);
    const target = findTarget(context, provider, imageName);
    const uploadLogger = context.logger(`nodepool.image.upload.${provider}`);
    try {
      if (checksum) {
        const options = { signal: job.signal, logger: uploadLogger };
        await deleteOtherCopy(context.repository, imageId, checksum, options);
      }
      const image = context.repository.get(imageId);
      const externalId = await upload(context, job, imageId, target, uploadLogger);
      return jobResult('external-id', externalId, checksum === '' && image ? checksumOf(image) : checksum);
    } catch (error) {
      uploadLogger.error(`upload of ${imageId} as ${imageName} failed: ${reasonOf(error)}`);
      throw error;
    }
  });
}

async function upload(
  context: UploadJobContext,
  job: WorkerJob,
  imageId: string,
  { configuration, provider, image }: Target,
  logger: Logger,
): Promise<string> {
  const started = performance.now();
  const { repository, snapshots } = context;
  const { largestDisk } = context;
  const within = startTimeLimit(configuration.imageUploadTimeout, job.signal);
  const fileToUpload = (signal: AbortSignal): Promise<ImageFile> =>
    repository.file(imageId, provider.formats, { signal, largestDisk });
  const snapshot = snapshots.find(imageId, provider);
  let file = snapshot === undefined ? await within(fileToUpload) : undefined;
  const { builtAt, files } = repository.get(imageId) ?? {};
  const record = newRecord(job, imageId, configuration, image.name);
  const onProgress = reportProgress(job);
  const run = async (recorded: UploadRecord): Promise<{ externalId: string }> => {
    const request: ClaimRequest = {
      uploadId: recorded['upload-id'],
      imageId,
      imageName: image.name,
      ...(builtAt && { builtAt }),
      externalName: recorded['external-name'],
      metadata: image.meta,
    };
    const transfer = async (signal: AbortSignal): Promise<UploadResult> => {
      const claimed = snapshot && (await snapshots.claim(provider, snapshot, request, signal));
      if (claimed !== undefined) return claimed;
      file ??= await fileToUpload(signal);
      logger.info(`uploading ${file.path} as ${recorded['external-name']}`);
      return await provider.upload({ ...request, file }, { signal, onProgress });
    };
    const hook = configuration.postUploadHook;
    const { externalId, rejection } = await within(async (signal) => {
      const uploaded = await transfer(signal);
      if (hook === undefined) return { ...uploaded, rejection: undefined };
      const path = file?.path ?? files?.[0]?.path ?? '';
      const args = [configuration.name, uploaded.externalId, path];
      const { environment } = context;
      return { ...uploaded, rejection: await runHook(hook, args, { environment, signal, logger }) };
    });
    job.signal.throwIfAborted(); // an aborted hook has not rejected the image; the job comes again
    if (rejection !== undefined)
      throw await discardRejected(provider, request.uploadId, rejection, job.signal);
    return { externalId };
  };
  try {
    const { externalId } = await context.tracker.run(job, record, run);
    logger.info(`image ${imageId} has the external-id ${externalId}`);
    context.statistics.uploaded(image.name, configuration.name, performance.now() - started);
    return externalId;
  } catch (error) {
    if (error instanceof PostUploadHookError || isLocal(error)) {
      throw new JobFailure(reasonOf(error), { cause: error });
    }
    throw new UploadError(reasonOf(error), { cause: error });
  }
}

/** True if an upload failed because its file is gone or has changed, not because of the provider. */
function isLocal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ImageError && LOCAL.has(cause.code)) return true;
  }
  return false;
}

const LOCAL: ReadonlySet<ImageErrorCode> = new Set(['image-not-found', 'image-missing', 'image-changed']);

/** @throws ImageError `invalid-configuration` for an invalid `template-hostname` */
function newRecord(
  job: WorkerJob,
  imageId: string,
  configuration: ProviderConfiguration,
  imageName: string,
): UploadRecord {
  const { name, attributes, templateHostname } = configuration;
  const now = new Date();
  return {
    version: 1,
    provider: name,
    'upload-id': uploadIdOf(job),
    'image-id': imageId,
    'image-name': imageName,
    'external-name': externalName(templateHostname, {
      image: { id: imageId, name: imageName },
      provider: attributes,
      timestamp: Math.floor(now.getTime() / 1000),
    }),
    begun: now.toISOString(),
  };
}

/** Returns the unique key of a job, or its handle: both stay the same when the job is assigned again. */
function uploadIdOf({ unique, handle }: WorkerJob): string {
  return unique === '' ? handle : unique;
}

function findTarget(context: UploadJobContext, providerName: string, imageName: string): Target {
  const found = context.providers.get(providerName);
  if (found === undefined) {
    throw new InvalidArgumentsError(
      `provider "${providerName}" is not configured here; add it to providers and reload`,
    );
  }
  const { configuration, provider } = found;
  if (provider === undefined) {
    const { type } = configuration.module;
    throw new InvalidArgumentsError(
      `provider "${providerName}" is of type ${type}: it takes no images; name another to upload to`,
    );
  }
  const image = configuration.images.find(({ name }) => name === imageName);
  if (image === undefined) {
    throw new JobFailure(
      `provider "${providerName}" has no image "${imageName}"; add it to its images and reload`,
    );
  }
  return { configuration, provider, image };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
