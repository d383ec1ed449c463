import { link } from 'node:fs/promises';
import {
  type BuilderServices,
  ImageError,
  type Logger,
  type Material,
} from '@nodepool-builder/image-builder';
import {
  convertImage,
  type FullBuildContext,
  fileDigest,
  portion,
} from '@nodepool-builder/image-builder/internal';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { openZuulApi } from '../api/zuul-api.ts';
import type { ImageBuild } from '../builds/find-build.ts';
import type { ImageArtifact } from '../builds/image-artifact.ts';
import { nameOf } from '../download/artifact-url.ts';
import type { ArtifactAccess } from '../download/http-source.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import { checkArtifact, type FileCheck } from './artifact-gate.ts';
import { artifactAccessOf, availableArtifacts } from './available-artifacts.ts';
import { fetchArtifact } from './fetch-artifact.ts';
import { fetchPackageList } from './fetch-package-list.ts';
import { costOf, type FetchStep, type OfferedFormat, planFetch } from './fetch-plan.ts';
import { type KeptFile, KeptFiles } from './kept-files.ts';
import { wantedBuilds } from './wanted-builds.ts';

/**
 * Creates the image of a Zuul build in the needed formats.
 *
 * @throws ImageError
 */
export async function fetchImage(
  settings: ZuulSettings,
  context: FullBuildContext,
  services: Pick<BuilderServices, 'checkAttestations'>,
): Promise<void> {
  const { log, diskimage } = context;
  const logger: Logger = { debug: () => {}, info: log, warn: log, error: log };
  const { 'require-attestation': required } = settings;
  const checkFile: FileCheck | undefined =
    required && ((file) => services.checkAttestations(required, file, { signal: context.signal }));
  try {
    const [api, access] = await Promise.all([openZuulApi(settings, logger), artifactAccessOf(settings)]);
    let expired: ImageError | undefined;
    const { name } = diskimage;
    const { 'image-name': imageName = name } = settings;
    for await (const wanted of wantedBuilds(api, { ...settings, name }, context)) {
      try {
        await fetchBuild(wanted, { imageName, access, checkFile, logger }, context);
        return;
      } catch (error) {
        if (!(error instanceof ImageError) || error.code !== 'artifact-expired') throw error;
        log(error.message);
        expired ??= error;
      }
    }
    if (expired !== undefined) throw expired;
  } catch (error) {
    if (!(error instanceof CloudError)) throw error;
    const { code, retriable, message } = error;
    const refused = retriable ? 'source-unavailable' : 'source-refused';
    const imageCode = code === 'invalid-settings' ? 'invalid-configuration' : refused;
    throw new ImageError(imageCode, message, { cause: error });
  }
}

/** Services for the download of a build. */
interface FetchServices {
  /** `image_name` in the metadata of artifacts. */
  readonly imageName: string;
  readonly access: ArtifactAccess;
  /** Check of artifacts; undefined if they need no attestation. */
  readonly checkFile: FileCheck | undefined;
  readonly logger: Logger;
}

/** Creates the image of one build. Downloaded files stay in the state directory if another attempt may use them. */
async function fetchBuild(
  wanted: ImageBuild,
  services: FetchServices,
  context: FullBuildContext,
): Promise<void> {
  const { uuid, jobName, pipeline, endTime = 0 } = wanted.build;
  const ended = new Date(endTime);
  context.log(`build ${uuid} of ${jobName} in pipeline ${pipeline}, which ended at ${ended.toISOString()}`);
  const kept = await KeptFiles.open(await context.stateDirectory(), wanted.build);
  try {
    await makeFormats(wanted, kept, services, context);
    await fetchPackageList(wanted.build, services.imageName, services.access, context);
    if (endTime > 0) context.setBuiltAt(ended);
  } catch (error) {
    if (error instanceof ImageError && !error.retriable && !context.signal.aborted) await kept.clear();
    throw error;
  }
}

async function makeFormats(
  wanted: ImageBuild,
  kept: KeptFiles,
  { access, checkFile, logger }: FetchServices,
  context: FullBuildContext,
): Promise<void> {
  const { formats, outputPath, progress, log, signal, maxDiskSize } = context;
  const { artifacts } = wanted;
  const files = new Map((await kept.files(artifacts)).map((file) => [file.format, file]));
  const plan = await planOf(wanted, files, access, context);
  const total = costOf(plan);
  const materials: Material[] = [];
  const fetched: KeptFile[] = [];
  let done = 0;
  for (const { from, format, cost } of plan) {
    const onProgress = portion((part) => progress(part.done, total), done, done + cost);
    const source = from && files.get(from);
    const artifact = artifacts.find((one) => one.format === format);
    if (source !== undefined) {
      log(`converting ${from} to ${format}`);
      await convertImage(source, format, outputPath(format), { signal, onProgress, maxDiskSize });
    } else if (artifact !== undefined) {
      const reserve = async (_: string, bytes: number): Promise<void> =>
        context.reserveSpace(await context.stateDirectory(), bytes);
      const options = { access, logger, reserve, signal, onProgress, maxDiskSize };
      const file = files.get(format) ?? (await fetchArtifact(artifact, kept, options));
      if (checkFile !== undefined) {
        await checkArtifact({ artifact, file, build: wanted.build, kept, access }, checkFile, context);
      }
      files.set(format, file);
      if (context.wantsMaterials) materials.push(await artifactMaterial(wanted, artifact, file, signal));
      fetched.push(file);
    }
    done += cost;
  }
  // At the end, because the next build is fetched if an artifact of this one expires in the meantime.
  for (const material of materials) context.addMaterial(material);
  for (const { format, path } of fetched) {
    // A link is used, so that the next attempt finds the file if this process dies before the image is published.
    if (formats.includes(format)) await link(path, outputPath(format));
  }
}

async function planOf(
  { build, artifacts }: ImageBuild,
  files: ReadonlyMap<string, KeptFile>,
  access: ArtifactAccess,
  { formats, signal }: FullBuildContext,
): Promise<readonly FetchStep[]> {
  const missing = artifacts.filter(({ format }) => !files.has(format));
  const { available, expired } = await availableArtifacts(missing, access, signal);
  const offers: readonly OfferedFormat[] = [
    ...Array.from(files.values(), ({ format, usage }) => ({ format, toFetch: 0, size: usage })),
    ...available.map(({ artifact, size }) => ({ format: artifact.format, toFetch: size })),
  ];
  const plan = planFetch(formats, offers);
  if (plan !== undefined) return plan;
  const offered = offers.map(({ format }) => format).join(', ');
  const message = `build ${build.uuid} returned the image as ${offered}, from which ${formats.join(', ')} cannot be made`;
  throw expired ?? new ImageError('format-unavailable', `${message}; let the job return these formats`);
}

/** Describes an artifact that became an image: its address, its unpacked bytes, and its build in Zuul. */
async function artifactMaterial(
  { build }: ImageBuild,
  artifact: ImageArtifact,
  file: KeptFile,
  signal: AbortSignal,
): Promise<Material> {
  // The job's own digest was verified when the file was downloaded.
  const known = artifact.sha256 ?? file.sha256;
  const sha256 = known ?? (await fileDigest(file.path, { limit: Number.MAX_SAFE_INTEGER, signal }));
  const { uuid, jobName, project, pipeline, branch, change = {} } = build;
  const { ref_url: refUrl, ...others } = change;
  return {
    name: `${artifact.format} artifact of Zuul build ${uuid}`,
    uri: nameOf(artifact.url),
    digest: sha256 === undefined ? {} : { sha256 },
    annotations: {
      'build-uuid': uuid,
      job: jobName,
      project,
      pipeline,
      ...(branch !== undefined && { branch }),
      ...others,
      ...(refUrl !== undefined && { 'ref-url': refUrl }),
    },
  };
}
