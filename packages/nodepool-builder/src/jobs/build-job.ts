import { JobFailure, type WorkerJob } from '@nodepool-builder/gearman-node';
import type { BaseImageBuilder, Image, ImageRepository, Logger } from '@nodepool-builder/image-builder';
import { parseImportedImageId } from '@nodepool-builder/image-builder/module-kit';
import { subjectOf } from '../daemon/functions.ts';
import { checksumOf } from './image-copy.ts';
import { parseBuildArguments } from './job-arguments.ts';
import { jobResult, reportProgress, settleJob } from './job-reply.ts';
import type { Statistics } from './statistics.ts';

/** Everything that `image-build` jobs share. */
export interface BuildJobContext {
  readonly repository: ImageRepository;
  /** Returns the builder of a disk image; undefined if the disk image is not configured. */
  builder(diskimage: string): BaseImageBuilder | undefined;
  readonly buildLogDir: string | undefined;
  /** Number of logs to keep for each disk image. */
  readonly buildLogRetention: number;
  /** Size limit of a log, in bytes. */
  readonly buildLogLimit: number;
  /** Environment of builds. */
  readonly environment: Readonly<Record<string, string>>;
  /** Limit for the virtual size of a disk in conversions, in bytes. */
  readonly largestDisk: number;
  readonly statistics: Statistics;
  logger(name: string): Logger;
  /** True if any builder offers the image. */
  isOffered(imageId: string, signal: AbortSignal): Promise<boolean>;
  /** Resolves once the functions of a new image are registered. */
  offered(): Promise<void>;
}

/** Runs an `image-build:<diskimage>` job. The functions of the image are registered before the result is sent. */
export async function runBuildJob(context: BuildJobContext, job: WorkerJob): Promise<string> {
  const name = subjectOf(job.function);
  const logger = context.logger('nodepool.builder.BuildWorker');
  return await settleJob(`build of ${name} (job ${job.handle})`, logger, async () => {
    const { 'image-id': imageId, checksum = false } = parseBuildArguments(job.payload);
    const builder = context.builder(name);
    if (builder === undefined) {
      throw new JobFailure(`disk image "${name}" is not configured here; add it to diskimages and reload`);
    }
    if (await isImported(context, builder, imageId, job.signal)) {
      logger.info(`build of ${name}: a builder already offers image ${imageId}`);
      return jobResult('image-id', imageId);
    }
    logger.info(`build of ${name}: image ${imageId}`);
    const image = await measured(context.statistics, name, () => build(context, builder, imageId, job));
    await context.offered();
    return jobResult('image-id', image.id, checksum ? checksumOf(image) : undefined);
  });
}

/**
 * True if another builder has imported this build of Zuul. The client checked before it submitted the job; since
 * then, a job for the same build may have ended, but none can run in parallel.
 */
async function isImported(
  context: BuildJobContext,
  { diskimage: { name }, importsBuilds }: BaseImageBuilder,
  imageId: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (!importsBuilds || parseImportedImageId(imageId)?.image !== name) return false;
  return await context.isOffered(imageId, signal);
}

async function build(
  context: BuildJobContext,
  builder: BaseImageBuilder,
  imageId: string,
  job: WorkerJob,
): Promise<Image> {
  const output = context.logger(`nodepool.image.build.${builder.diskimage.name}`);
  try {
    return await builder.build({
      imageId,
      repository: context.repository,
      logger: context.logger('nodepool.builder.BuildWorker'),
      ...(context.buildLogDir !== undefined && { logDirectory: context.buildLogDir }),
      logRetention: context.buildLogRetention,
      logLimit: context.buildLogLimit,
      environment: context.environment,
      largestDisk: context.largestDisk,
      signal: job.signal,
      onProgress: reportProgress(job),
      onLine: (line) => output.info(line.trim()),
    });
  } finally {
    output.info(''); // an empty line has always marked the end of the output
  }
}

async function measured(statistics: Statistics, name: string, work: () => Promise<Image>): Promise<Image> {
  const started = performance.now();
  const elapsed = (): number => performance.now() - started;
  try {
    const image = await work();
    await statistics.built(name, elapsed(), image.files);
    statistics.buildEnded(name, elapsed());
    return image;
  } catch (error) {
    statistics.buildEnded(name, elapsed(), error);
    throw error;
  }
}
