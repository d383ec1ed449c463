import { hostname } from 'node:os';
import {
  type GatedFile,
  type Image,
  ImageError,
  type ImageFile,
  type ImageProvider,
  type Logger,
  type OperationOptions,
  type RequiredAttestation,
} from '@nodepool-builder/image-builder';
import {
  checksumsOf,
  conversionSource,
  createMask,
  hiddenTexts,
  isPublicVariable,
} from '@nodepool-builder/image-builder/internal';
import {
  type BuildFacts,
  checkGate,
  type FoundAttestation,
  openSigner,
  type Package,
  readAttestations,
  readAttestedPackages,
  SiteAttester,
  type TrustedKey,
  type VerifiedSubject,
  verifyChain,
} from '@nodepool-builder/provenance';
import { isSigning } from '../configuration/attestation.ts';
import type { Configuration, DiskImageConfiguration } from '../configuration/configuration.ts';
import { packageVersion } from '../terms/version.ts';
import { readTrusted } from './trusted-keys.ts';

/** The parts of a configuration that attestations depend on. */
export type AttestationConfiguration = Pick<
  Configuration,
  'attestation' | 'require-attestation' | 'diskimages'
>;

/** A subject whose origin must be proven. */
interface GateSubject {
  readonly keys: readonly TrustedKey[];
  /** Beginning of messages. */
  readonly name: string;
  readonly subject: VerifiedSubject;
  readonly attestations: readonly FoundAttestation[];
  /** Reads the packages that a build attested. */
  readonly packages: (build: BuildFacts) => Promise<readonly Package[]>;
}

/**
 * The attestations of a site, according to one configuration. It reads the keys and loads the package for attestations
 * on first use, so that a daemon without these settings starts as fast as before.
 */
export class SiteAttestation {
  readonly #configuration: AttestationConfiguration;
  readonly #logger: Logger;
  #attester: Promise<SiteAttester> | undefined;

  constructor(configuration: AttestationConfiguration, logger: Logger) {
    this.#configuration = configuration;
    this.#logger = logger;
  }

  /**
   * Returns the attester of builds, conversions and uploads; undefined if the site signs nothing.
   *
   * @throws ImageError `invalid-configuration` if its key cannot be used
   */
  async attester(): Promise<SiteAttester | undefined> {
    if (!isSigning(this.#configuration.attestation)) return undefined;
    // After a failure the next job tries again, because the key may have been corrected.
    this.#attester ??= this.#open().catch((error: unknown) => {
      this.#attester = undefined;
      throw error;
    });
    return await this.#attester;
  }

  /** Returns the `require-attestation` of uploads to a provider; undefined if it requires no attestation. */
  requiredBy(entry: {
    readonly 'require-attestation'?: RequiredAttestation;
  }): RequiredAttestation | undefined {
    return entry['require-attestation'] ?? this.#configuration['require-attestation'];
  }

  /** Checks an imported file. @throws ImageError `attestation-refused`, `invalid-configuration` */
  async checkFile(
    required: RequiredAttestation,
    { name, fileName: path, sha256, attestations }: GatedFile,
    options: OperationOptions = {},
  ): Promise<void> {
    const subject = { kind: 'file', path, sha256 } as const;
    const keys = await this.trustedKeys(required);
    await prove(required, { keys, name, subject, attestations, packages: noPackages }, options);
  }

  /**
   * Refuses to upload an image whose origin is not proven. Reads the whole file, because a recorded digest proves
   * nothing.
   *
   * @param directory `images-dir`
   * @returns the file that was checked, with its checksums: the one to upload, or to convert
   * @throws ImageError `attestation-refused`, `invalid-configuration`
   */
  async checkUpload(
    required: RequiredAttestation,
    image: Image,
    directory: string,
    provider: Pick<ImageProvider, 'name' | 'formats'>,
    options: OperationOptions,
  ): Promise<ImageFile | undefined> {
    const name = `the upload of image ${image.id} to ${provider.name}`;
    if (image.files.length === 0) {
      const reason = 'it has no file, and snapshots are not attested; set formats of the disk image';
      throw refusal(name, reason);
    }
    const present = provider.formats.flatMap(
      (format) => image.files.find((file) => file.format === format) ?? [],
    )[0];
    const file = present ?? conversionSource(image.files);
    if (file === undefined) return undefined; // no such format can be made, which the upload reports
    if (present === undefined && !isSigning(this.#configuration.attestation)) {
      const remedy = 'set attestation.key, or have the image built in a format of the provider';
      throw refusal(name, `the conversion from ${file.format} would not be attested; ${remedy}`);
    }
    const keys = await this.trustedKeys(required); // an unusable key is reported before the file is read
    const attestations = await readAttestations(directory, image.id);
    const checksums = await checksumsOf(file.path, options);
    const files = [{ path: file.path, format: file.format, sha256: checksums.sha256 }];
    const subject = { kind: 'image', imageId: image.id, files } as const;
    const packages: GateSubject['packages'] = (build) => readAttestedPackages(directory, image.id, build);
    await prove(required, { keys, name, subject, attestations, packages }, options);
    return { ...file, checksums };
  }

  /** @throws ImageError `invalid-configuration` for a key that cannot be used */
  async trustedKeys(required: RequiredAttestation): Promise<readonly TrustedKey[]> {
    return await usable(() => readTrusted(this.#configuration.attestation, required));
  }

  async #open(): Promise<SiteAttester> {
    const { attestation = {} as never, diskimages } = this.#configuration;
    const signer = await usable(() => openSigner(attestation));
    const host = hostname();
    const attester = new SiteAttester({
      signer,
      builderId: attestation['builder-id'] ?? `nodepool-builder://${host}`,
      version: packageVersion(),
      host,
      billOfMaterials: attestation['bill-of-materials'],
      parameters: ({ name }) => {
        const configured = diskimages.find((diskimage) => diskimage.name === name);
        return configured === undefined ? {} : parametersOf(configured);
      },
      logger: this.#logger,
    });
    this.#logger.info(`builds and uploads are attested with the key ${signer.keyId}`);
    return attester;
  }
}

/** Throws unless the subject's origin is proven and follows all rules. */
async function prove(
  required: RequiredAttestation,
  { keys, name, subject, attestations, packages }: GateSubject,
  { signal }: OperationOptions,
): Promise<void> {
  const rule = await checkGate(required, verifyChain(subject, attestations, keys), packages);
  signal?.throwIfAborted();
  if (rule !== undefined) throw refusal(name, rule);
}

function refusal(name: string, reason: string): ImageError {
  return new ImageError('attestation-refused', `${name} is refused by require-attestation: ${reason}`);
}

/** Throws, because an imported file has no package list here. */
async function noPackages(): Promise<never> {
  throw new Error('an imported file has no package list here');
}

/** Converts the error of a key into an `invalid-configuration` error. */
async function usable<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (cause) {
    throw new ImageError('invalid-configuration', (cause as Error).message, { cause });
  }
}

/** External parameters of a build: the disk image's configuration, without secrets. */
function parametersOf(diskimage: DiskImageConfiguration): Readonly<Record<string, unknown>> {
  const {
    digest,
    builder,
    settings,
    release,
    options = {},
    elementsDir,
    scriptDir,
    publicVariables,
  } = diskimage;
  const mask = createMask(hiddenTexts(diskimage));
  return {
    'configuration-digest': digest,
    builder,
    settings: maskedTexts(settings ?? {}, (_, text) => mask(text)),
    options: maskedTexts(options, (key, text) =>
      text === '' || isPublicVariable(key, publicVariables) ? mask(text) : '***',
    ),
    ...(release !== undefined && { release }),
    ...(elementsDir !== undefined && { 'elements-dir': elementsDir }),
    ...(scriptDir !== undefined && { 'script-dir': scriptDir }),
  };
}

function maskedTexts(value: unknown, mask: (key: string, text: string) => string): unknown {
  const text = JSON.stringify(value, (key, one: unknown) => (typeof one === 'string' ? mask(key, one) : one));
  return JSON.parse(text);
}
