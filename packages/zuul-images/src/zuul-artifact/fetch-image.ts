import {
  type BuildContext,
  ImageError,
  type ImageErrorCode,
  type Logger,
} from '@nodepool-builder/image-builder';
import { ZuulError } from '../api/zuul-error.ts';
import { artifactAccessOf } from '../builds/artifact-access.ts';
import { buildSourceOf, zuulApiOf } from '../builds/image-source.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import { takeImage } from './take-image.ts';
import { wantedBuilds } from './wanted-builds.ts';

/**
 * Leaves the image of a build of Zuul where the context wants it.
 *
 * @throws ImageError
 * @throws the signal's reason
 */
export async function fetchImage(settings: ZuulSettings, context: BuildContext): Promise<void> {
  const logger = loggerOf(context);
  try {
    const [api, access] = await Promise.all([zuulApiOf(settings, logger), artifactAccessOf(settings)]);
    const source = buildSourceOf(context.imageName, settings);
    let expired: ImageError | undefined;
    for await (const wanted of wantedBuilds(api, source, context)) {
      try {
        await takeImage(wanted, { access, context, logger, largestDisk: context.largestDisk });
        return;
      } catch (error) {
        if (!(error instanceof ImageError) || error.code !== 'artifact-expired') throw error;
        context.log(error.message);
        expired ??= error;
      }
    }
    if (expired !== undefined) throw expired;
  } catch (error) {
    throw error instanceof ZuulError ? imageErrorOf(error) : error;
  }
}

/** Of what goes on in between, the build's log is told. */
function loggerOf({ log }: BuildContext): Logger {
  return { debug: () => {}, info: log, warn: log, error: log };
}

function imageErrorOf(error: ZuulError): ImageError {
  return new ImageError(codeOf(error), error.message, { cause: error });
}

function codeOf({ code, retriable }: ZuulError): ImageErrorCode {
  if (code === 'invalid-settings') return 'invalid-configuration';
  return retriable ? 'zuul-unavailable' : 'zuul-refused';
}
