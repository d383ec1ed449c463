import { type WorkerJob, WorkFailError } from '@nodepool-builder/gearman-node';
import type {
  BaseImageBuilder,
  Image,
  ImageRepository,
  OperationOptions,
} from '@nodepool-builder/image-builder';
import {
  checkImageId,
  inheritedEnvironment,
  parseImportedImageId,
} from '@nodepool-builder/image-builder/internal';
import { encodeResult } from '@nodepool-builder/image-manager/protocol';
import { attestationsOf } from '../../attestation/documents.ts';
import { packageListOf } from '../../attestation/origin/package-list.ts';
import type { SiteAttestation } from '../../attestation/site-attestation.ts';
import type { Configuration, DiskImageConfiguration } from '../../configuration/configuration.ts';
import { subjectOf } from '../../protocol/functions.ts';
import { parseBuildArguments } from '../../protocol/job-arguments.ts';
import { inMessage, type JobLog, settleJob } from '../../protocol/job-reply.ts';
import { checksumOf } from './image-copy.ts';
import type { JobContext } from './running-jobs.ts';

/** State that `image-build` jobs share. */
export interface BuildJobContext extends JobContext {
  readonly configuration: Pick<
    Configuration,
    'build-cache-size' | 'build-environment' | 'build-log-retention' | 'maxDiskSize'
  > & { readonly diskimages: readonly Pick<DiskImageConfiguration, 'name' | 'isImported'>[] };
  readonly attestation: Pick<SiteAttestation, 'attester'>;
  /** Returns the builder of a disk image; undefined if the disk image is not configured. */
  builder(diskimage: string): BaseImageBuilder | undefined;
  /** Returns whether any builder offers the image. */
  isOffered(imageId: string, signal: AbortSignal): Promise<boolean>;
  /** Resolves once the functions of a new image are registered. */
  offered(): Promise<void>;
}

/** Runs an `image-build:<diskimage>` job. The functions of the image are registered before the result is sent. */
export async function runBuildJob(context: BuildJobContext, job: WorkerJob): Promise<string> {
  const name = subjectOf(job.function);
  const logger = context.logger('nodepool.builder.BuildWorker');
  const log: JobLog = { action: `build of ${name}`, logger };
  return await settleJob(log, job, async () => {
    const { 'image-id': imageId, ...asked } = parseBuildArguments(job.payload);
    log.action = `build ${inMessage(imageId)} of ${name}`;
    const builder = context.builder(name);
    if (builder === undefined) {
      throw new WorkFailError(`disk image "${name}" is not configured here; add it to diskimages and reload`);
    }
    // The client checked this before it submitted the job, but a job for the same Zuul build may have ended since.
    const { isImported } = context.configuration.diskimages.find((one) => one.name === name) ?? {};
    const isImport = isImported && parseImportedImageId(imageId)?.image === name;
    if (isImport && (await context.isOffered(imageId, job.signal))) {
      logger.info(`build of ${name}: a builder already offers image ${imageId}`);
      return encodeResult('image-id', imageId);
    }
    logger.info(`build of ${name}: image ${inMessage(imageId)}`);
    checkImageId(imageId); // runs before the image has functions
    const image = await context.running.run(
      job,
      { kind: 'build', 'image-id': imageId, diskimage: name },
      (onProgress, signal) => build(context, builder, imageId, { signal, onProgress }),
      lastDuration(context.repository, name),
    );
    await context.offered();
    const { directory } = context.repository;
    const documents = asked.attestations ? await attestationsOf(directory, image.id) : undefined;
    const packages = asked.packages ? await packageListOf(directory, image.id, logger) : undefined;
    return encodeResult('image-id', image.id, {
      checksum: asked.checksum ? checksumOf(image) : undefined,
      attestations: documents?.length ? documents.map(({ text }) => text) : undefined,
      packages,
    });
  });
}

/** Duration of the newest build of a disk image on this host in seconds; undefined without one. */
function lastDuration({ images }: Pick<ImageRepository, 'images'>, name: string): number | undefined {
  return [...images.values()]
    .filter((image) => image.name === name && image.buildTime !== undefined)
    .toSorted((one, other) => other.builtAt.getTime() - one.builtAt.getTime())[0]?.buildTime;
}

async function build(
  { configuration, repository, logDirectory, attestation, statistics, logger }: BuildJobContext,
  builder: BaseImageBuilder,
  imageId: string,
  options: Required<OperationOptions>,
): Promise<Image> {
  const { name } = builder.diskimage;
  const { isImported } = configuration.diskimages.find((one) => one.name === name) ?? {};
  const output = logger(`nodepool.image.build.${name}`);
  const started = performance.now();
  const elapsed = (): number => performance.now() - started;
  statistics.onEvent({ kind: 'build-started', diskimage: name });
  try {
    const attester = await attestation.attester();
    const image = await builder
      .build({
        imageId,
        repository,
        logger: logger('nodepool.builder.BuildWorker'),
        logDirectory,
        logRetention: configuration['build-log-retention'],
        logName: `"nodepool-builder logs ${imageId}"`, // the reader of an error may be on another host
        environment: inheritedEnvironment(process.env, configuration['build-environment']),
        maxDiskSize: configuration.maxDiskSize,
        cacheLimit: configuration['build-cache-size'] * 2 ** 30,
        ...(attester && { attester }),
        ...options,
        onLine: (line) => output.info(line.trim()),
      })
      // An empty line has always marked the end of a program's output. An import has no output.
      .finally(() => isImported || output.info(''));
    await statistics.built(name, elapsed(), image.files);
    statistics.buildEnded(name, elapsed(), options.signal);
    return image;
  } catch (error) {
    statistics.buildEnded(name, elapsed(), options.signal, error);
    throw error;
  }
}
