import { JobFailure, type WorkerJob } from '@nodepool-builder/gearman-node';
import type { ImageProvider, ImageRepository, Logger, UploadRequest } from '@nodepool-builder/image-builder';
import type { ProviderConfiguration } from '../configuration/configuration.ts';
import { subjectOf } from '../daemon/functions.ts';
import { InvalidArgumentsError, parseUploadArguments } from './job-arguments.ts';
import { settleJob, UploadError } from './job-outcome.ts';
import { reportProgress } from './job-progress.ts';

/** A provider as it is configured, and what carries images to it. */
export interface ConfiguredProvider {
  readonly configuration: ProviderConfiguration;
  /** Undefined for a type that this release cannot upload to. */
  readonly provider: ImageProvider | undefined;
}

/** What an `image-upload` job works with. */
export interface UploadJobContext {
  readonly repository: ImageRepository;
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  logger(name: string): Logger;
}

/** Does `image-upload:<image-id>`: the result is the provider's own id of the image. */
export async function runUploadJob(context: UploadJobContext, job: WorkerJob): Promise<string> {
  const imageId = subjectOf(job.function);
  const logger = context.logger('nodepool.builder.UploadWorker');
  return await settleJob(`upload of ${imageId} (job ${job.handle})`, logger, async () => {
    const { provider: providerName, 'image-name': imageName } = parseUploadArguments(job.payload);
    const { provider, metadata } = findProvider(context, providerName, imageName);
    const file = await context.repository.file(imageId, provider.formats, { signal: job.signal });
    const uploadLogger = context.logger(`nodepool.image.upload.${providerName}`);
    uploadLogger.info(`uploading ${file.path} as ${imageName}`);
    const request: UploadRequest = { uploadId: uploadIdOf(job), imageId, imageName, file, metadata };
    try {
      const result = await provider.upload(request, { signal: job.signal, onProgress: reportProgress(job) });
      uploadLogger.info(`${file.path} is ${result.externalId} there`);
      return JSON.stringify({ 'external-id': result.externalId });
    } catch (error) {
      throw new UploadError(error instanceof Error ? error.message : String(error), { cause: error });
    }
  });
}

/** A job that is handed out again is the same upload: its unique key is the same, or else its handle. */
function uploadIdOf({ unique, handle }: WorkerJob): string {
  return unique === '' ? handle : unique;
}

function findProvider(
  context: UploadJobContext,
  providerName: string,
  imageName: string,
): { provider: ImageProvider; metadata: Readonly<Record<string, string>> } {
  const found = context.providers.get(providerName);
  if (found === undefined) {
    throw new InvalidArgumentsError(
      `provider "${providerName}" is not configured here; add it to providers and reload`,
    );
  }
  const image = found.configuration.images.find(({ name }) => name === imageName);
  if (image === undefined) {
    throw new JobFailure(
      `provider "${providerName}" has no image "${imageName}"; add it to its images and reload`,
    );
  }
  if (found.provider === undefined) {
    throw new UploadError(
      `provider "${providerName}" is of type ${found.configuration.type}, which this release cannot upload to; use another builder for it`,
    );
  }
  return { provider: found.provider, metadata: image.meta };
}
