import { type WorkerJob, WorkFailError } from '@nodepool-builder/gearman-node';
import {
  type BuilderService,
  type ClaimRequest,
  ImageError,
  type ImageErrorCode,
  type ImageFile,
  type ImageProvider,
  type Logger,
  type Progress,
  type Snapshot,
  type UploadResult,
} from '@nodepool-builder/image-builder';
import { inheritedEnvironment, withTimeout } from '@nodepool-builder/image-builder/internal';
import { encodeResult } from '@nodepool-builder/image-manager/protocol';
import type { SiteAttestation } from '../../attestation/site-attestation.ts';
import { UploadAttestation } from '../../attestation/upload-attestation.ts';
import type { Configuration, ProviderImageConfiguration } from '../../configuration/configuration.ts';
import { subjectOf } from '../../protocol/functions.ts';
import { comparisonOf, parseUploadArguments } from '../../protocol/job-arguments.ts';
import { inMessage, JobError, type JobLog, settleJob } from '../../protocol/job-reply.ts';
import type { Providers, UploadTarget } from '../../site/providers.ts';
import { errorLine } from '../../terms/command-error.ts';
import { checksumOf, deleteOtherCopy } from './image-copy.ts';
import { discardRejected, runHook } from './post-upload-hook.ts';
import type { MeteredProgress } from './progress-meter.ts';
import type { JobContext } from './running-jobs.ts';
import { withUploadLog } from './upload-log.ts';
import { newUploadRecord, type UploadRecord, uploadIdOf } from './upload-record.ts';
import type { Uploads } from './uploads.ts';

/** State that `image-upload` jobs share. */
export interface UploadJobContext extends JobContext {
  readonly configuration: Pick<
    Configuration,
    'build-environment' | 'build-log-retention' | 'public-variables' | 'maxDiskSize' | 'compressesQcow2'
  >;
  readonly providers: Pick<Providers, 'get'>;
  readonly uploads: Uploads;
  readonly attestation: Pick<SiteAttestation, 'attester' | 'requiredBy' | 'checkUpload'>;
  /** Services that may delete a snapshot. */
  readonly services: ReadonlyMap<string, Pick<BuilderService<unknown>, 'lockSnapshots'>>;
}

/** Result of an upload, for its job. */
interface FinishedUpload {
  readonly externalId: string;
  /** Bundles about the build, the conversion and the upload; undefined if the site signs nothing. */
  readonly attestations: readonly string[] | undefined;
}

/** Destination of an upload. */
interface Target extends UploadTarget {
  readonly image: ProviderImageConfiguration;
}

/** Runs an `image-upload:<image-id>` job. The result is the provider's id of the image. */
export async function runUploadJob(context: UploadJobContext, job: WorkerJob): Promise<string> {
  const imageId = subjectOf(job.function);
  const logger = context.logger('nodepool.builder.UploadWorker');
  const log: JobLog = { action: `upload of ${imageId}`, logger };
  return await settleJob(log, job, async () => {
    const comparison = comparisonOf(job.payload);
    if (comparison !== undefined) {
      await deleteOtherCopy(context.repository, imageId, comparison, { signal: job.signal, logger });
      return '';
    }
    const { provider, 'image-name': imageName, checksum, attestations } = parseUploadArguments(job.payload);
    const target = findTarget(context, provider, imageName);
    const uploadLogger = context.logger(`nodepool.image.upload.${provider}`);
    Object.assign(log, { action: `upload of ${imageId} as ${imageName}`, logger: uploadLogger });
    const id = uploadIdOf(job);
    const ownLog = {
      directory: context.logDirectory,
      retention: context.configuration['build-log-retention'],
      imageId,
      imageName,
      upload: { id, provider },
      logger: uploadLogger,
    };
    const work = async (
      onProgress: (progress: MeteredProgress) => void,
      signal: AbortSignal,
      both: Logger,
    ): Promise<string> => {
      if (checksum) await deleteOtherCopy(context.repository, imageId, checksum, { signal, logger: both });
      const image = context.repository.get(imageId);
      const done = await upload(context, job, imageId, { ...target, signal, onProgress }, both);
      const known = checksum === '' && image ? checksumOf(image) : checksum;
      return encodeResult('external-id', done.externalId, {
        checksum: known,
        attestations: attestations ? done.attestations : undefined,
      });
    };
    const subject = { diskimage: target.image.diskimage ?? imageName, provider, imageName };
    return await context.running.run(
      job,
      { kind: 'upload', 'image-id': imageId, provider, 'image-name': imageName, 'upload-id': id },
      (onRead, signal) =>
        withUploadLog(ownLog, (both) =>
          context.statistics.upload(subject, { signal, onProgress: onRead }, (onProgress) =>
            work(onProgress, signal, both),
          ),
        ),
    );
  });
}

async function upload(
  context: UploadJobContext,
  job: WorkerJob,
  imageId: string,
  {
    configuration,
    provider,
    image,
    signal: stop,
    onProgress,
  }: Target & { readonly signal: AbortSignal; readonly onProgress: (progress: MeteredProgress) => void },
  logger: Logger,
): Promise<FinishedUpload> {
  const { repository } = context;
  const attestation = await UploadAttestation.open(context.attestation, configuration, repository);
  const { maxDiskSize, compressesQcow2: compress, 'build-environment': variables } = context.configuration;
  const { 'public-variables': publicVariables } = context.configuration;
  const within = timeLimit(configuration.entry['image-upload-timeout'], stop);
  let gated: ImageFile | undefined;
  const prepareFile = async (signal: AbortSignal): Promise<ImageFile> => {
    const found = await repository.file(imageId, provider.formats, {
      signal,
      maxDiskSize,
      compress,
      onProgress: ({ waiting }) => {
        onProgress({ done: 0, total: 100, ...(waiting !== undefined && { waiting }) });
        if (waiting !== undefined) logger.info(`conversion of image ${imageId}: waiting for ${waiting}`);
      },
      attester: attestation?.attester,
    });
    return found.path === gated?.path ? gated : found; // the gate has checked these bytes
  };
  const local = repository.get(imageId);
  const { builtAt, files, snapshots = [] } = local ?? {};
  const required = context.attestation.requiredBy(configuration.entry);
  if (local !== undefined && required !== undefined) {
    gated = await within((signal) =>
      context.attestation.checkUpload(required, local, repository.directory, provider, { signal }),
    );
    logger.info(`image ${imageId} has the attestations that ${provider.name} requires`);
  }
  // The provider made the snapshot, so no attestation covers its bytes.
  const snapshot =
    'claim' in provider && required === undefined
      ? snapshots.find((each) => each.provider === provider.name)
      : undefined;
  let file = snapshot === undefined ? await within(prepareFile) : undefined;
  const run = async (record: UploadRecord): Promise<UploadResult> => {
    const request: ClaimRequest = {
      uploadId: record['upload-id'],
      imageId,
      imageName: image.name,
      ...(builtAt && { builtAt }),
      externalName: record['external-name'],
      metadata: { ...image.meta, ...(await attestation?.metadata(imageId)) },
    };
    const { uploaded, rejection } = await within(async (signal) => {
      let result = snapshot && (await claim(context, provider, snapshot, request, signal));
      if (result === undefined) {
        file ??= await prepareFile(signal);
        const { size } = file;
        logger.info(`uploading ${file.path} as ${request.externalName}`);
        const onPart = (progress: Progress): void => onProgress({ ...progress, size });
        const documents = await attestation?.documents(imageId, file.format);
        const attestations = documents && { attestations: documents };
        result = await provider.upload({ ...request, file, ...attestations }, { signal, onProgress: onPart });
      }
      const hook = configuration.entry['post-upload-hook'];
      let reason: string | undefined;
      if (hook !== undefined) {
        const args = [configuration.name, result.externalId, file?.path ?? files?.[0]?.path ?? ''];
        const environment = inheritedEnvironment(process.env, variables);
        reason = await runHook(hook, args, { environment, publicVariables, signal, logger });
      }
      // A snapshot that the provider made has no file that could be attested.
      if (reason === undefined && attestation !== undefined && file !== undefined) {
        reason = await attestation.attest({ request, file, uploaded: result, provider }, signal);
      }
      return { uploaded: result, rejection: reason };
    });
    stop.throwIfAborted(); // the image was not rejected; the job runs again
    if (rejection === undefined) return uploaded;
    throw await discardRejected(provider, request, rejection, stop);
  };
  const record = newUploadRecord(job, imageId, configuration, image.name);
  try {
    const { externalId } = await context.uploads.run(job, record, run, stop);
    logger.info(`image ${imageId} has the external-id ${externalId}`);
    return { externalId, attestations: attestation?.bundles };
  } catch (error) {
    if (error instanceof WorkFailError) throw error;
    if (isLocal(error)) throw new WorkFailError(errorLine(error), { cause: error });
    throw new JobError(errorLine(error), { cause: error });
  }
}

/** Runs a part of an upload within the rest of `image-upload-timeout`. */
type WithinTimeLimit = <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Starts `image-upload-timeout`, which covers all parts of an upload, including conversion. */
function timeLimit(seconds: number | undefined, signal: AbortSignal): WithinTimeLimit {
  if (seconds === undefined) return (work) => work(signal);
  const started = performance.now();
  return async (work) => {
    const rest = seconds - (performance.now() - started) / 1000;
    return await withTimeout(rest, signal, work, (cause) => {
      const message = `the upload took longer than ${seconds} s; check the provider, or raise image-upload-timeout`;
      return new JobError(message, { cause, retriable: true });
    });
  };
}

/**
 * Claims a snapshot for an upload. Until then it belongs to its image on this host, and the service of its builder
 * deletes it once the image is gone. The snapshot's own properties name the owner, so that a crash loses nothing.
 *
 * @returns undefined if the snapshot is gone or belongs to another upload
 */
async function claim(
  { services }: UploadJobContext,
  provider: ImageProvider,
  { externalId }: Snapshot,
  request: ClaimRequest,
  signal: AbortSignal,
): Promise<UploadResult | undefined> {
  const releases: (() => void)[] = [];
  try {
    for (const service of services.values()) {
      const release = await service.lockSnapshots?.(request.imageId, signal);
      if (release !== undefined) releases.push(release);
    }
    return await provider.claim?.(externalId, request, { signal });
  } finally {
    for (const release of releases) release();
  }
}

/** Returns whether an upload failed because its file is gone or has changed, not because of the provider. */
function isLocal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ImageError && LOCAL.has(cause.code)) return true;
  }
  return false;
}

const LOCAL: ReadonlySet<ImageErrorCode> = new Set(['image-not-found', 'image-missing', 'image-changed']);

function findTarget({ providers }: UploadJobContext, providerName: string, imageName: string): Target {
  const found = providers.get(providerName);
  if (found === undefined) {
    const problem = `provider "${inMessage(providerName)}" is not configured here`;
    throw new JobError(`${problem}; add it to providers and reload`);
  }
  const { configuration, provider } = found;
  if (provider === undefined) {
    const { type } = configuration.module;
    throw new JobError(
      `provider "${providerName}" of type ${type} does not store images; name another to upload to`,
    );
  }
  const image = configuration.entry.images.find(({ name }) => name === imageName);
  if (image === undefined) {
    const problem = `provider "${providerName}" has no image "${inMessage(imageName)}"`;
    throw new WorkFailError(`${problem}; add it to its images and reload`);
  }
  return { configuration, provider, image };
}
