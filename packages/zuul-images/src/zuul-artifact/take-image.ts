import { link } from 'node:fs/promises';
import {
  type BuildContext,
  ImageError,
  type ImageFormat,
  type Logger,
} from '@nodepool-builder/image-builder';
import { convertImage, portion } from '@nodepool-builder/image-builder/module-kit';
import type { ArtifactAccess } from '../builds/artifact-access.ts';
import { artifactsLeft } from '../builds/artifacts-left.ts';
import type { ImageArtifact } from '../builds/image-artifact.ts';
import { fetchArtifact } from './fetch-artifact.ts';
import { costOf, type FetchStep, type OfferedFormat, planFetch } from './fetch-plan.ts';
import { type KeptFile, KeptFiles } from './kept-files.ts';
import type { WantedBuild } from './wanted-builds.ts';

/** What {@link takeImage} works with. */
export interface TakeOptions {
  readonly access: ArtifactAccess;
  readonly context: BuildContext;
  readonly logger: Logger;
  /** In bytes, as a guest sees it; default 256 GiB. */
  readonly largestDisk?: number | undefined;
}

/**
 * Leaves the image of one build in the formats that are wanted, by the way that is least work. What has come stays in
 * the state directory if another try may go on with it.
 *
 * @throws ImageError
 * @throws the signal's reason
 */
export async function takeImage(wanted: WantedBuild, options: TakeOptions): Promise<void> {
  const { stateDirectory, log, signal } = options.context;
  const { uuid, jobName, pipeline, endTime = 0 } = wanted.build;
  log(
    `build ${uuid} of ${jobName} in pipeline ${pipeline}, which ended at ${new Date(endTime).toISOString()}`,
  );
  const kept = await KeptFiles.open(await stateDirectory(), wanted.build);
  try {
    await makeFormats(wanted, kept, options);
    if (endTime > 0) options.context.setBuiltAt(new Date(endTime));
  } catch (error) {
    if (error instanceof ImageError && !error.retriable && !signal.aborted) await kept.clear();
    throw error;
  }
}

async function makeFormats(
  { build, artifacts }: WantedBuild,
  kept: KeptFiles,
  { access, context, logger, largestDisk }: TakeOptions,
): Promise<void> {
  const { formats, output, progress, log, signal } = context;
  const files = new Map((await kept.files(artifacts)).map((file) => [file.format, file]));
  const plan = await findPlan(build.uuid, artifacts, files, { access, context });
  const total = costOf(plan);
  let done = 0;
  for (const { from, format, cost } of plan) {
    const onProgress = portion((part) => progress(part.done, total), done, done + cost);
    const source = from && files.get(from);
    const artifact = artifacts.find((one) => one.format === format);
    if (source !== undefined) {
      log(`converting ${from} to ${format}`);
      const limit = largestDisk === undefined ? {} : { largestDisk };
      await convertImage(source, format, output(format), { signal, onProgress, ...limit });
    } else if (artifact !== undefined) {
      const file =
        files.get(format) ??
        (await fetchArtifact(artifact, kept, { access, logger, signal, onProgress, largestDisk }));
      files.set(format, file);
      // a link: whoever dies before the image is published finds the file again
      if (formats.includes(format)) await link(file.path, output(format));
    }
    done += cost;
  }
}

async function findPlan(
  uuid: string,
  artifacts: readonly ImageArtifact[],
  files: ReadonlyMap<ImageFormat, KeptFile>,
  { access, context: { formats, signal } }: Pick<TakeOptions, 'access' | 'context'>,
): Promise<readonly FetchStep[]> {
  const missing = artifacts.filter(({ format }) => !files.has(format));
  const { left, gone } = await artifactsLeft(missing, access, signal);
  const offers: readonly OfferedFormat[] = [
    ...Array.from(files.values(), ({ format, usage }) => ({ format, toFetch: 0, size: usage })),
    ...left.map(({ artifact: { format }, size }) => ({
      format,
      ...(size !== undefined && { toFetch: size }),
    })),
  ];
  const plan = planFetch(formats, offers);
  if (plan !== undefined) return plan;
  throw (
    gone[0] ??
    new ImageError(
      'format-unavailable',
      `build ${uuid} returned the image as ${offers.map(({ format }) => format).join(', ')}, and ${formats.join(', ')} ` +
        'cannot be made of that; have the job return what is wanted',
    )
  );
}
