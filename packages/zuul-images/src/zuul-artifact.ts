import {
  BaseImageBuilder,
  type BuilderModule,
  type BuilderServices,
  type DiskImage,
  type ImageFormat,
} from '@nodepool-builder/image-builder';
import type { FullBuildContext } from '@nodepool-builder/image-builder/internal';
import { signalOf } from '@nodepool-builder/image-builder/plugin';
import { makeableFormats } from './builds/image-artifact.ts';
import { checkZuulSettings, tokenFileDiagnostics } from './checks.ts';
import { ZuulPollers } from './polling/zuul-pollers.ts';
import { artifactFormat, artifactFormats, ZUUL_SETTINGS, type ZuulSettings } from './zuul-settings.ts';

/**
 * Fetches the image that a Zuul job has built. An image-id of `importedImageId` names the build. Any other image-id
 * means the newest successful build whose artifacts have not expired.
 */
export class ZuulArtifactBuilder extends BaseImageBuilder {
  override readonly nativeFormats: readonly ImageFormat[];
  readonly #settings: ZuulSettings;
  readonly #services: Pick<BuilderServices, 'checkAttestations'>;

  constructor(
    diskimage: DiskImage,
    settings: ZuulSettings,
    services: Pick<BuilderServices, 'checkAttestations'>,
  ) {
    super(diskimage);
    this.#settings = settings;
    this.#services = services;
    this.nativeFormats = makeableFormats(artifactFormats(settings));
  }

  /**
   * @throws ImageError `build-unknown`, `build-unusable`, `source-unavailable`, `source-refused`, `invalid-configuration`,
   *   `format-unavailable`, `conversion-failed`, `command-not-found`, `attestation-refused`, and errors of
   *   `downloadArtifact`
   */
  protected override async createImage(context: FullBuildContext): Promise<void> {
    // Imported on demand, so that a daemon without these images loads no HTTP client.
    const { fetchImage } = await import('./zuul-artifact/fetch-image.ts');
    await fetchImage(this.#settings, context, this.#services);
  }
}

/** Builder `zuul-artifact`: imports the images that Zuul jobs build, the entries of `zuul-images`. */
export const ZUUL_ARTIFACT_MODULE: BuilderModule<typeof ZUUL_SETTINGS, ZuulSettings> = {
  type: 'zuul-artifact',
  settings: ZUUL_SETTINGS,
  entries: {
    section: {
      key: 'zuul-images',
      description:
        'Images that Zuul jobs build: a list, or a mapping of names to entries. Providers name them as ' +
        '`diskimage`.',
      defaultName: 'job',
    },
  },
  check: (settings, { name }) => checkZuulSettings(settings, name),
  checkHost: (settings) => tokenFileDiagnostics(settings),
  describe: (settings) => {
    const { 'api-url': apiUrl, project, pipelines, job, branch, 'image-name': imageName } = settings;
    const artifacts = settings.artifacts.map(({ format, type }) => ({
      format: artifactFormat(format),
      type,
    }));
    const content = [apiUrl, project, pipelines, job, branch, imageName, artifacts];
    return { content, isImported: true };
  },
  create: (diskimage, settings, services) => new ZuulArtifactBuilder(diskimage, settings, services),
  async *diagnose(settings, { name }, options) {
    const { diagnoseZuul } = await import('./diagnose-zuul.ts'); // loaded only for doctor
    yield* diagnoseZuul(name, settings, signalOf(options));
  },
  start: (site) => new ZuulPollers(site),
};
